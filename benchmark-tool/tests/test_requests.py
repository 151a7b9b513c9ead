"""A bad request of gaudi3-benchmark ends with exit code 2; nothing is written."""

from __future__ import annotations

from pathlib import Path

import pytest
import typer.main

from gaudi3_benchmark.cli import app
from gaudi3_scale.calling import call
from gaudi3_scale.errors import TrainerError

FIELD = "a=["
#: (words of the command line, words of what is said)
REQUESTS = (
    ("runn", "No such command 'runn'"),
    ("run", "Missing option '--to'"),
    ("run --to r.json", "--shape is missing"),
    ("run --to r.json --shape none", "--shape is 'none', which is no known shape"),
    ("run --to r.json --shape llama-tiny --device tpu", "--device is 'tpu'"),
    ("run --to none/r.json --shape llama-tiny", "whose folder does not exist"),
    ("run --to list.yml --shape llama-tiny", "--to is list.yml, which exists"),
    ("run --to r.json --shape llama-tiny --batch 0", "Invalid value for '--batch'"),
    ("run --to r.json --shape llama-tiny --precision fp8 --device cpu", "precision is 'fp8'"),
    ("run --to r.json --shape llama-tiny --set x --device cpu", "--set is 'x': give KEY=VALUE"),
    (
        f"run --to r.json --shape llama-tiny --set {FIELD} --device cpu",
        "whose value is not valid YAML: put it in quotes",
    ),
    ("shapes --nope", "No such option: --nope"),
    ("report none.json", "none.json cannot be read"),
    ("report bytes.yml", "bytes.yml cannot be read (it is no text)"),
    ("compare none.json none.json", "none.json cannot be read"),
    ("sign none.json --key none", "none.json cannot be read"),
    ("verify none.json --signers none", "--signers is none, which is no file"),
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
