"""A bad request of gaudi3-train ends with exit code 2; nothing is written."""

from __future__ import annotations

from pathlib import Path

import pytest
import typer.main

from gaudi3_scale.calling import call
from gaudi3_scale.cli import app
from gaudi3_scale.errors import TrainerError

#: (words of the command line, words of what is said)
REQUESTS = (
    ("fitt", "No such command 'fitt'"),
    ("fit --nope", "No such option: --nope: see `program fit --help`."),
    ("fit --config none.yml", "The configuration none.yml cannot be read"),
    ("fit --config bytes.yml", "The configuration bytes.yml is no UTF-8 at byte 0: save it as UTF-8."),
    ("fit list.yml", "is not of the form KEY=VALUE: give a file as --config list.yml."),
    ("fit --config list.yml", "The configuration list.yml is a list, not a mapping"),
    ("fit train.max_step=5", "did you mean 'train.max_steps'?"),
    ("fit train.max_steps", "is not of the form KEY=VALUE"),
    ("fit train.max_steps=[", "is not valid YAML: put it in quotes"),
    ("prepare data.source=none.txt", "data.source is 'none.txt', which does not exist on this node"),
    ("prepare data.source=", "data.source is '', but it should have at least 1 character."),
    ("tokenizer --to x.json --vocab-size 3", "Invalid value for '--vocab-size'"),
    ("tokenizer --vocab-size 300", "Missing option '--to'"),
    ("export", "Missing option '--to'"),
    ("register none", "Missing option '--name'"),
    ("registry promote demo@1 prod", "The alias is 'prod': give candidate, canary or champion."),
    ("verify-resume --steps 0", "Invalid value for '--steps'"),
    ("verify-resume --world-sizes 2,x", "--world-sizes is '2,x'"),
    ("checkpoints none", "There are no checkpoints in none/checkpoints"),
    ("config --nope", "No such option: --nope"),
    ("environment --nope", "No such option: --nope"),
    ("doctor --consent kill", "--consent is 'kill'"),
    ("doctor --consent kill-holder", "give --cards too"),
    ("doctor --json none/x.json", "--json is none/x.json, whose folder does not exist"),
    ("doctor --python none", "--python is none, which is no program"),
    ("goodput none", "none has no goodput.jsonl with a readable line"),
    ("batch-warmup --at x", "--at is 'x'"),
    ("batch-warmup --most 3", "--most is 3: give 2, 4, 8"),
    ("batch-warmup --seeds 0", "Invalid value for '--seeds'"),
    ("batch-warmup --job none", "There is no checkpoint in none"),
    ("cost none.yml", "The inputs none.yml cannot be read"),
    ("cost list.yml", "In list.yml, the whole is [1]"),
    ("chargeback none", "none has no goodput.jsonl with a readable line"),
    ("chargeback --format xml none", "Invalid value for '--format'"),
    ("kubernetes", "JOB is missing: give the YAML file of the job"),
    ("kubernetes none.yml", "The configuration none.yml cannot be read"),
    ("slurm", "JOB is missing: give the YAML file of the job"),
    ("slurm none.yml", "The configuration none.yml cannot be read"),
    ("migrate none.py", "none.py does not exist: give the program's file."),
    ("recipe-cache pack none", "Missing option '--to'"),
    ("plan --devices 0", "--devices is '0'"),
    ("plan --platform h300", "The platform 'h300' is not known"),
    ("plan --tokens many", "tokens is 'many'"),
    ("plan --tokens 1T --mfu 3", "--mfu is '3'"),
    ("tune --space none.yml", "The search space none.yml cannot be read"),
    ("tune --trials 0", "--trials is 0: give at least 2."),
    ("tune --max-memory-gib -1", "Invalid value for '--max-memory-gib'"),
    ("tune --objective fast", "Invalid value for '--objective'"),
)


@pytest.mark.parametrize(("line", "sentence"), REQUESTS, ids=[line for line, _ in REQUESTS])
def test_a_bad_request_ends_with_2(
    line: str,
    sentence: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    Path("bytes.yml").write_bytes(b"\xff\xfe\x00")
    Path("list.yml").write_text("- 1\n")
    before = sorted(tmp_path.rglob("*"))
    said = ""
    try:
        code: object = call(app, "program", line.split())
    except TrainerError as error:
        code, said = error.exit_code, str(error)
    except SystemExit as end:
        code = end.code
    said += capsys.readouterr().err
    assert code == 2, said
    assert sentence in said and len(said.splitlines()) == 1 and said.endswith((".", "?")), said
    assert sorted(tmp_path.rglob("*")) == before


def test_every_command_has_a_bad_request() -> None:
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    assert set(commands) <= {line.split()[0] for line, _ in REQUESTS}
