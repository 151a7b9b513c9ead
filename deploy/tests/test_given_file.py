"""Files that a user names: a named pipe is not waited for, an endless device not read, and a shell's pipe is read."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from gaudi3_deploy import given_file
from gaudi3_deploy.cli import main

ROOT = Path(__file__).resolve().parents[2]
#: Where each command names a file, or a folder of files, and what it says of one that is none.
COMMANDS = {
    "audit --file {}": "The record {} cannot be read (@): give --file, or run something first.",
    "audit --verify --file {}": "The record {} cannot be read (@): give --file, or run something first.",
    "teams check {}": "{} cannot be read (@): give a file.",
    "teams slurm {teams} --assoc {} --qos /dev/null --cluster a": "{} cannot be read (@): give a file.",
    "versions check --facts {}": "The versions in {} cannot be read (@): give a YAML or JSON file of facts, as ",
    "certificate verify {}": "{} cannot be read (@): give a file NODE.certificate.json.",
    "mirror holes {folder} {records}": "{folder}/lock.json cannot be read (@): mend that first.",
    "mirror holes {mirror} {}": "{} cannot be read (@): give OSV records as JSON, a folder or a zip.",
    "mirror holes {mirror} {folder}": "{folder}/lock.json cannot be read (@): give OSV records as JSON, ",
    "mirror holes {mirror} {records} --ledger {}": "{} is no ledger of holes (@): correct it.",
    "fabric lint {} --syntax eos": "Switch lock: {} cannot be read (Not a regular file): give the file with its ",
    "fabric lint /dev/null --site {}": "{} cannot be read (@): give a file.",
    "upgrade plan 1.23.0-695 --reports {folder}": "The report {} cannot be read (@): make it again.",
    "upgrade check {} --reports {folder}": "The plan {} cannot be read (@): `gaudi3-deploy upgrade plan` writes one.",
    "check demo --cloud onprem --var-file {}": "The variables in {} cannot be read (@): give a YAML or JSON file.",
    "check demo --cloud onprem --ssh-key {}": "The public key of {} cannot be read (@): give a file such as ",
    "run {} --on hosts": "The job {} cannot be read (@): give a YAML file of the role trainer's variables.",
    "mirror fill {mirror} --release 1.23.0-695 --system Ubuntu-24.04 --requirements {}": "{} cannot be read (@): ",
}


@contextlib.contextmanager
def not_hanging() -> Iterator[None]:
    """Interrupt what waits for a pipe's other end, which nobody opens."""

    def give_up(*_: object) -> None:
        raise AssertionError("it waits for somebody to write")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(60)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_named_pipe_is_refused(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pipe = tmp_path / "odd/lock.json"
    for name in ("odd", "mirror"):
        (tmp_path / name).mkdir()
    os.mkfifo(pipe)
    (tmp_path / "teams.yml").write_text("teams: {vision: {users: [anna]}}")
    (tmp_path / "records.json").write_text("[]")
    (tmp_path / "mirror/lock.json").write_text('{"schema": 1, "release": "1.23.0-695", "files": []}')
    places = {name: str(tmp_path / name) for name in ("teams.yml", "records.json", "mirror", "odd")}
    places = {"teams": places["teams.yml"], "records": places["records.json"], "folder": places["odd"], **places}
    words = [word.format(pipe, **places) for word in command.split()]
    monkeypatch.setattr(sys, "argv", ["gaudi3-deploy", "--terraform-dir", str(ROOT / "terraform"), *words])
    monkeypatch.setenv("GAUDI3_DEPLOYMENTS", str(tmp_path / "deployments"))
    monkeypatch.setenv("COLUMNS", "400")
    with not_hanging(), pytest.raises(SystemExit) as ended:
        main()
    said = capsys.readouterr().err
    expected = COMMANDS[command].replace("@", "not a regular file").format(pipe, **places)
    assert ended.value.code == 2 and expected in said, said


def test_an_endless_device_is_refused_and_the_empty_one_read() -> None:
    with pytest.raises(OSError, match="Not a regular file"):
        given_file.read_text(Path("/dev/zero"))
    assert given_file.read_text(Path("/dev/null")) == ""


def test_what_a_command_of_the_shell_gives_is_read() -> None:
    program = "import sys; from pathlib import Path; from gaudi3_deploy import given_file as f\n"
    program += "print(f.read_text(Path(sys.argv[1])), end='')"
    done = subprocess.run(
        ["bash", "-c", '"$0" -c "$1" <(printf "one\\r\\n"; cat)', sys.executable, program],
        input="two\n", env={**os.environ, "PYTHONPATH": str(ROOT / "deploy/src")}, text=True, capture_output=True,
        check=False,
    )  # fmt: skip
    assert (done.stdout, done.stderr) == ("one\ntwo\n", "")


def test_what_is_written_takes_the_place_of_no_link_pipe_or_terminal(tmp_path: Path) -> None:
    """As root a file in the place of /dev/stdout would be one for the whole machine."""
    file, link, pipe = tmp_path / "file", tmp_path / "link", tmp_path / "pipe"
    given_file.write_text(file, "one\n")
    given_file.write_text(file, "two\n")
    link.symlink_to("file")
    given_file.write_text(link, "three\n")
    assert link.is_symlink() and file.read_text() == "three\n"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    given_file.write_text(pipe, "four\n")
    assert pipe.is_fifo() and os.read(reader, 100) == b"four\n"
    os.close(reader)
    code = "import pathlib; from gaudi3_deploy import given_file as f; f.write_text(pathlib.Path('/dev/stdout'), 'x')"
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "deploy/src")}
    with (tmp_path / "taken").open("wb") as taken:
        subprocess.run([sys.executable, "-c", code], stdout=taken, env=environment, check=True)
    assert (tmp_path / "taken").read_bytes() == b"x"
    piped = subprocess.run([sys.executable, "-c", code], capture_output=True, env=environment, check=True)
    assert piped.stdout == b"x"
    assert Path("/dev/stdout").is_symlink()
    with pytest.raises(IsADirectoryError):
        given_file.write_text(tmp_path, "five")


def test_a_file_in_memory_is_written_anew_and_a_circle_of_links_is_refused(tmp_path: Path) -> None:
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        file = Path(folder) / "plan.json"
        given_file.write_text(file, "a longer one\n")
        given_file.write_text(file, "two\n")
        assert file.read_text() == "two\n"
    (tmp_path / "one").symlink_to("two")
    (tmp_path / "two").symlink_to("one")
    with pytest.raises(OSError, match="Too many levels of symbolic links"):
        given_file.write_text(tmp_path / "one", "text")
    assert (tmp_path / "one").is_symlink()
