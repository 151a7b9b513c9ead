"""trl itself on the batch of `test_preference_loss`; `make proof-preference`."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import preference_trl as trl
import pytest
from preferences import TALKS, TEXTS, batch_of, computed
from test_chat import PLAIN, folder

from gaudi3_scale.data.masking import IGNORED

ROOT = Path(__file__).resolve().parents[2]
PYTHON = ROOT / ".cache/trl/bin/python"
FROZEN = Path(__file__).with_name("preference_trl.json")

pytestmark = pytest.mark.proof


def test_trl_computes_the_same_of_the_same_tokens(tmp_path: Path) -> None:
    home = folder(tmp_path / "tokenizer", PLAIN)
    given = json.dumps({"texts": TEXTS, "messages": TALKS})
    command = [PYTHON, Path(__file__).with_name("preference_trl.py"), home]
    done = subprocess.run(command, input=given, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    frozen = json.loads(FROZEN.read_text())
    assert found["trl"] == frozen["trl"] == "1.16.0"
    for case in trl.CASES:
        records = TALKS if case == "messages" else TEXTS
        (tmp_path / case).mkdir()
        batch = batch_of(records, home, tmp_path / case)
        ids, read = found[case].pop("ids"), found[case].pop("read")
        for number, row in enumerate(ids):  # the rows of all chosen answers come before those of the rejected ones
            side, pair = divmod(number, len(records))
            inputs, labels = batch[pair, 2 * side].tolist(), batch[pair, 2 * side + 1].tolist()
            begin = read[number]
            assert inputs[: len(row) - 1] == row[:-1]
            assert labels == [IGNORED] * (begin - 1) + row[begin:] + [IGNORED] * (len(labels) + 1 - len(row))
        ours = computed(case, batch)
        assert ours["loss"] == pytest.approx(found[case]["loss"], rel=0, abs=1e-5)
        assert ours == pytest.approx(found[case], rel=1e-5, abs=1e-5)
        assert frozen[case] == pytest.approx(found[case], rel=1e-5, abs=1e-5)
