"""Results of gaudi3-benchmark compared, drawn, signed and verified."""

from __future__ import annotations

import json
import math
import re
import subprocess
from pathlib import Path

import pytest
from benchmark_results import CPU, GAUDI, SIMULATED, case, measured, result
from conftest import ROOT
from typer.testing import CliRunner

from gaudi3_benchmark import pictures
from gaudi3_benchmark.cli import app
from gaudi3_benchmark.comparison import compare
from gaudi3_benchmark.intervals import median_interval, ratio_interval
from gaudi3_benchmark.result import Result, Row, write
from gaudi3_scale.errors import ConfigError, TrainerError

D = math.log(1.1)
SPREAD = (math.exp(-D), 1.0, math.exp(D))
"""Three rounds whose logarithms have the variance D squared."""


def test_the_interval_of_a_ratio_is_welchs() -> None:
    found = ratio_interval([[2 * each] for each in SPREAD], [[each] for each in SPREAD])
    half = 2.776445 * math.sqrt(2 * D**2 / 3)  # Student's 97.5th percentile with 4 degrees of freedom
    assert found.middle == pytest.approx(2)
    assert (found.low, found.high) == pytest.approx((2 * math.exp(-half), 2 * math.exp(half)), rel=1e-6)
    # One side without scatter leaves the other one's 2 degrees of freedom.
    alone = ratio_interval([[2.0]] * 3, [[each] for each in SPREAD])
    assert alone.high / 2 == pytest.approx(math.exp(4.302653 * D / math.sqrt(3)), rel=1e-6)


def test_a_single_round_is_taken_in_five_parts_and_a_single_step_shows_nothing() -> None:
    times = [1.0] * 3 + [1.1] * 3 + [1.2] * 3 + [1.3] * 3 + [1.4] * 3
    assert median_interval([times]) == pytest.approx(median_interval([[1.0], [1.1], [1.2], [1.3], [1.4]]))
    assert median_interval([[1.0]]) == (0, 1, math.inf)
    assert ratio_interval([[2.0]], [[1.0], [1.0]]).comparison == "no difference shown"


def ratios(scale: float) -> Result:
    return result([measured(case(), [scale * each for each in SPREAD])], GAUDI)


@pytest.mark.parametrize(
    ("scale", "verdict"), [(0.5, "faster"), (2.0, "slower"), (0.9, "no difference shown"), (1.0, "no difference shown")]
)
def test_the_verdict(scale: float, verdict: str) -> None:
    (row,) = compare(ratios(1), ratios(scale)).rows
    assert row.verdict == verdict
    assert row.ratio is not None and row.ratio.middle == pytest.approx(1 / scale)


def test_only_equal_cases_are_compared(tmp_path: Path) -> None:
    old = result([measured(case(2), SPREAD), measured(case(4), SPREAD)])
    new = result([measured(case(2), SPREAD), Row(case=case(8), outcome="out_of_memory")])
    new = new.model_copy(update={"environment": CPU.model_copy(update={"driver": "1.24.0"})})
    found = compare(old, new)
    assert [row.case for row in found.rows] == ["llama-tiny, size 64, batch 2, bf16-mixed"]
    assert len(found.left_out) == 2 and found.differences == (("driver", "none", "1.24.0"),)
    for other in (case(2, size=32), case(2, config={"num_hidden_layers": 1}), case(2, recompute="full")):
        with pytest.raises(ConfigError, match=r"have no case in common \(the first has llama-tiny, size 64, batch 2"):
            compare(old, result([measured(other, SPREAD)]))
    with pytest.raises(ConfigError, match=r"disagree on what llama-tiny.* is: parameters is 1,000 and 999"):
        compare(old, result([measured(case(2), SPREAD, parameters=999)]))
    (short,) = compare(result([measured(case(2), SPREAD)]), result([Row(case=case(2), outcome="out_of_memory")])).rows
    assert (short.ratio, short.verdict) == (None, "measured -> out of memory")


def test_a_simulated_device_is_compared_with_none_that_is_real() -> None:
    rows = [measured(case(), SPREAD)]
    for one, other in ((SIMULATED, GAUDI), (GAUDI, SIMULATED), (CPU, SIMULATED)):
        with pytest.raises(ConfigError, match="are not compared with a device's"):
            compare(result(rows, one), result(rows, other))
    text = compare(result(rows, SIMULATED), result(rows, SIMULATED)).text()
    assert text.startswith("Both are of the simulated hpu: what follows is not a measurement of Gaudi.\n")


def test_the_commands_compare_and_report(tmp_path: Path) -> None:
    old, new = tmp_path / "old.json", tmp_path / "new.json"
    write(ratios(1), old)
    write(ratios(0.5), new)
    done = CliRunner().invoke(app, ["compare", str(old), str(new)])
    assert done.exit_code == 0
    assert "llama-tiny, size 64, batch 2, bf16-mixed  2.000 [1.611, 2.482]  faster" in done.output
    done = CliRunner().invoke(app, ["compare", str(old), str(new), "--format", "json"])
    assert json.loads(done.output)["rows"][0]["verdict"] == "faster"
    text = CliRunner().invoke(app, ["report", str(new)]).output
    assert "256 [202, 324] tokens/s" in text and "peak GiB" in text and "0.1 %" in text  # MFU: 2 of 1,835 TFLOP/s
    done = CliRunner().invoke(app, ["report", str(new), "--to", str(tmp_path / "a.html")])
    page = (tmp_path / "a.html").read_text()
    assert page.count("data:image/png;base64,") == 2 and "<script" not in page and "http" not in page
    assert "256 [202, 324] tokens/s" in page and "<h1>Training steps on GAUDI3</h1>" in page


def test_the_picture_has_a_line_for_each_precision() -> None:
    rows = [measured(case(batch, precision=name), SPREAD) for batch in (1, 2, 4) for name in ("32-true", "bf16-mixed")]
    figure = pictures.rates(result([*rows, Row(case=case(8), outcome="out_of_memory")], GAUDI))
    (axes,) = figure.axes
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["32-true", "bf16-mixed"]  # type: ignore[union-attr]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["1", "2", "4"]
    assert axes.get_ylabel() == "tokens per second"


def key(folder: Path, name: str) -> tuple[Path, str]:
    """A new key and its public half."""
    path = folder / name
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", str(path)], check=True)
    return path, path.with_suffix(".pub").read_text().strip()


def test_a_signed_result_is_known_by_its_signer_and_a_forged_one_is_refused(tmp_path: Path) -> None:
    mine, public = key(tmp_path, "mine")
    other, _ = key(tmp_path, "other")
    (signers := tmp_path / "signers").write_text(f"lab@example.org {public}\n")
    path = tmp_path / "a.json"
    write(ratios(1), path)
    check = ["verify", str(path), "--signers", str(signers)]
    missing = CliRunner().invoke(app, check)
    assert isinstance(missing.exception, ConfigError) and "a.json.sig, which is no file" in str(missing.exception)

    assert CliRunner().invoke(app, ["sign", str(path), "--key", str(mine)]).exit_code == 0
    assert CliRunner().invoke(app, check).output == "signed by lab@example.org, measured on GAUDI3\n"

    whole = path.read_text()
    assert whole.count('"parameters": 1000') == 1
    path.write_text(whole.replace('"parameters": 1000', '"parameters": 1001'))
    forged = CliRunner().invoke(app, check)
    assert isinstance(forged.exception, TrainerError) and "is not what lab@example.org signed" in str(forged.exception)

    path.write_text(whole)
    assert CliRunner().invoke(app, ["sign", str(path), "--key", str(other)]).exit_code == 0
    foreign = CliRunner().invoke(app, check)
    assert isinstance(foreign.exception, TrainerError) and "is of a key that" in str(foreign.exception)

    for_another_purpose = ["ssh-keygen", "-q", "-Y", "sign", "-f", str(mine), "-n", "file", str(path)]
    (tmp_path / "a.json.sig").unlink()
    subprocess.run(for_another_purpose, check=True)
    assert isinstance(CliRunner().invoke(app, check).exception, TrainerError)


def test_an_unfinished_result_is_not_signed(tmp_path: Path) -> None:
    mine, _ = key(tmp_path, "mine")
    write(result([measured(case(), [1.0])], rounds=2), tmp_path / "a.json")
    done = CliRunner().invoke(app, ["sign", str(tmp_path / "a.json"), "--key", str(mine)])
    assert isinstance(done.exception, ConfigError) and "is not finished: go on with" in str(done.exception)


def test_what_the_document_imports_is_there() -> None:
    document = (ROOT / "docs" / "use" / "benchmark.md").read_text(encoding="utf-8")
    (line,) = re.findall(r"^(from gaudi3_.*)$", document, re.MULTILINE)
    exec(line, {})
