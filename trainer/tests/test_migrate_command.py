"""`gaudi3-train migrate`: where it writes, what it says, and its exit codes."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gaudi3_scale.cli import app

PROGRAM = "from optimum.habana import GaudiTrainer\nGaudiTrainer(model=m, args=a)\n"


def run(*words: object) -> tuple[int, str, str]:
    """Exit code (2 for a sentence), what is printed, and what is said."""
    result = CliRunner().invoke(app, ["migrate", *map(str, words)])
    said = str(result.exception) if result.exception else ""
    return getattr(result.exception, "exit_code", result.exit_code), result.stdout, f"{result.stderr}{said}"


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return path


def test_the_difference_is_printed_and_nothing_written(program: Path) -> None:
    code, printed, said = run(program)
    assert code == 0 and "+Trainer(model=m, args=a)\n" in printed and "line 1" in said
    assert program.read_text() == PROGRAM


def test_it_writes_where_it_is_told(program: Path, tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    code, printed, _said = run(program, "--output", tmp_path / "new.py", "--json", report)
    assert code == 0 and printed == "" and "Trainer(model=m" in (tmp_path / "new.py").read_text()
    assert json.loads(report.read_text())["left"] == 0
    assert run(program, "--write")[0] == 0 and "optimum" not in program.read_text().split("\n")[0]


def test_a_program_is_replaced_whole_or_not_at_all(
    program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program.chmod(0o755)
    (tmp_path / "link.py").symlink_to(program)

    def full(_file: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        code, _printed, said = run(program, "--write")
    assert code == 2 and "--write is" in said and "No space left on device" in said
    assert program.read_text() == PROGRAM
    assert run(tmp_path / "link.py", "--write")[0] == 0
    assert "GaudiTrainer" not in program.read_text() and program.stat().st_mode & 0o777 == 0o755
    assert (tmp_path / "link.py").is_symlink() and sorted(each.name for each in tmp_path.iterdir()) == [
        "link.py",
        "program.py",
    ]


@pytest.mark.parametrize(("place", "sentence"), [(".", "is a folder: give a file"), ("/dev/full", "No space left")])
def test_a_report_that_cannot_be_written_is_one_sentence(program: Path, place: str, sentence: str) -> None:
    code, _printed, said = run(program, "--json", program.parent / place)
    assert code == 2 and "--json is" in said and sentence in said


def test_what_is_left_for_a_person_is_another_exit_code(program: Path) -> None:
    program.write_text(PROGRAM + "from optimum.habana.distributed import DistributedRunner\n")
    code, _printed, said = run(program)
    assert code == 3 and "line 3     person" in said


def test_a_command_is_rewritten_too(program: Path) -> None:
    code, _printed, said = run(
        program, "--", "python", "gaudi_spawn.py", "--world_size", "2", "program.py", "--use_habana"
    )
    assert code == 0 and "command: torchrun --nproc_per_node 2 program.py\n" in said


def test_a_job_is_printed_or_refused(program: Path) -> None:
    code, _printed, said = run(program, "--to", "trainer")
    assert code == 2 and "no causal language model" in said
    program.write_text("from transformers import AutoModelForCausalLM\n" + PROGRAM)
    words = ["--model_name_or_path=M", "--train_file=T", "--output_dir=O", "--max_steps=5", "--block_size=64"]
    code, printed, _said = run(program, "--to", "trainer", "--", *words)
    assert code == 0 and "max_steps: 5" in printed


def test_helpers_need_a_folder(program: Path, tmp_path: Path) -> None:
    (tmp_path / "helper.py").write_text(PROGRAM)
    program.write_text(PROGRAM + "from helper import x\n")
    code, _printed, said = run(program, "--output", tmp_path / "new.py")
    assert code == 2 and "helper.py is rewritten too" in said
    (tmp_path / "new").mkdir()
    assert run(program, "--output", tmp_path / "new")[0] == 0
    assert sorted(each.name for each in (tmp_path / "new").iterdir()) == ["helper.py", "program.py"]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--write", "--output", "x"], "exclude each other"),
        (["--json", "/nowhere/r.json"], "whose folder does not exist"),
        (["--gaudi-config", "/nowhere"], "cannot be read"),
        (["--output", "/nowhere/x.py"], "cannot be written"),
    ],
)
def test_a_wrong_option_is_one_sentence(options: list[str], sentence: str, program: Path) -> None:
    code, _printed, said = run(program, *options)
    assert code == 2 and sentence in said


def test_without_libcst_it_says_what_to_install(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [each for each in sys.modules if each.partition(".")[0] in ("libcst", "gaudi3_migration")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "libcst", None)
    code, _printed, said = run(program)
    assert code == 2 and "pip install 'libcst>=1.8,<2'" in said
