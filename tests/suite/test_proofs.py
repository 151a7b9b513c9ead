"""The list of proofs: what it names exists, and a proof is run as it says."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.suite import proofs
from tests.suite.proofs import ROOT, Entry

LISTED = proofs.read()
#: Without what a make above handed down, under which these tests may run.
ENVIRONMENT = {name: value for name, value in os.environ.items() if name not in {"MAKEFLAGS", "MAKELEVEL", "MFLAGS"}}


@pytest.mark.parametrize("name", LISTED)
def test_what_the_list_names_is_there(name: str) -> None:
    entry = LISTED[name]
    assert entry.tests and [test for test in entry.tests if not (ROOT / entry.folder / test).is_file()] == []
    tracked = [
        subprocess.run(["git", "ls-files", "--", source], cwd=ROOT, capture_output=True, text=True, check=True).stdout
        for source in entry.sources
    ]
    assert [source for source, files in zip(entry.sources, tracked, strict=True) if not files] == []


def test_what_a_proof_needs_is_made_by_the_makefile() -> None:
    makefile = (ROOT / "Makefile").read_text()
    targets = re.findall(r"^([^\s#:]+):(?!=)", makefile, re.M)
    rules = [re.compile(re.escape(target).replace("%", "[^/]+")) for target in targets]
    needs = {need for entry in LISTED.values() for need in entry.needs}
    assert {"hpu", "image"} < needs
    assert sorted(need for need in needs if not any(rule.fullmatch(need) for rule in rules)) == []


def test_make_is_told_to_run_nothing_by_its_letters() -> None:
    flags = ["n", "kn --no-print-directory", "q", "t -j2"]
    assert [each for each in flags if not proofs.only_shown(each)] == []
    flags = ["", "w", " -- NODES=2", "NODES=2", "--no-print-directory", "k -j2"]
    assert [each for each in flags if proofs.only_shown(each)] == []


def test_make_shows_the_call_of_pytest_and_runs_nothing_if_told_so(tmp_path: Path) -> None:
    """By a Makefile with the rule alone, whose pytest is a stand-in: no proof begins, whatever is wrong."""
    rule = re.search(r"^proof-%: .*\n\t.*\n", (ROOT / "Makefile").read_text(), re.M)
    assert rule
    (tmp_path / "Makefile").write_text(f"BIN := {Path(sys.executable).parent}\n{rule[0]}\nFORCE:\n/.dev:\n")
    (tmp_path / "pytest").write_text(f'#!/bin/sh\necho "$*" >> {tmp_path}/log\n')
    (tmp_path / "pytest").chmod(0o755)
    environment = ENVIRONMENT | {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    make = ["make", "--no-print-directory", "-f", str(tmp_path / "Makefile"), "proof-healing-race"]
    shown = "cd trainer && GAUDI3_PROOF=healing-race pytest -v -m proof -k race tests/test_healing.py\n"
    for flag, runs in (("--dry-run", False), ("--silent", True)):
        done = subprocess.run([*make, flag], cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
        assert done.stdout.endswith(shown)
        assert (tmp_path / "log").exists() is runs
    assert (tmp_path / "log").read_text() == "-v -m proof -k race tests/test_healing.py\n"


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What stand-ins for make and pytest were called with."""
    monkeypatch.setattr(proofs, "ROOT", tmp_path)
    monkeypatch.delenv("MAKEFLAGS", raising=False)
    log = tmp_path / "log"
    for place in ("make", "bin/pytest", "old/python", "new/python"):
        program = tmp_path / place
        program.parent.mkdir(exist_ok=True)
        program.write_text(
            f'#!/bin/sh\necho "$(basename $PWD) $GAUDI3_PROOF {place} $* ${{PATH%%:*}}" >> {log}\nexit ${{CODE:-0}}\n'
        )
        program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin", prepend=os.pathsep)
    monkeypatch.delenv("GAUDI3_PROOF", raising=False)
    return log


def entry(**keys: Any) -> Entry:
    return Entry(
        **{"name": "some", "shows": "Cases.", "takes": "a minute", "tests": ["test_a.py"], "sources": ["a"]} | keys
    )


def test_a_proof_gets_what_it_needs_and_is_run_in_its_folder(log: Path, tmp_path: Path) -> None:
    (tmp_path / "trainer").mkdir()
    some = entry(folder="trainer", needs=["hpu", "image"], select="not race", options=["-s"])
    assert proofs.run(some, str(tmp_path / "make"), {}) == 0
    assert [line.rsplit(" ", 1)[0] for line in log.read_text().splitlines()][1:] == [
        "trainer some bin/pytest -v -s -m proof or not proof -k not race test_a.py"
    ]
    assert " make --no-print-directory hpu image " in log.read_text().splitlines()[0]


def test_a_proof_of_several_interpreters_ends_with_the_first_that_fails(
    log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = entry(pythons=["old/python", "new/python"])
    assert proofs.run(both, "false", {}) == 0
    there = tmp_path.name
    assert log.read_text().splitlines() == [
        f"{there} some {name}/python -m pytest -v -m proof or not proof test_a.py {tmp_path}/{name}"
        for name in ("old", "new")
    ]
    log.unlink()
    monkeypatch.setenv("CODE", "3")
    assert proofs.run(both, "false", {}) == 3
    assert len(log.read_text().splitlines()) == 1


def test_a_proof_is_not_run_without_what_it_needs_nor_where_make_only_shows(log: Path) -> None:
    assert proofs.run(entry(needs=["hpu"]), "false", {}) == 1
    assert proofs.run(entry(), "false", {"MAKEFLAGS": "n"}) == 0
    assert not log.exists()


def test_a_proof_that_is_not_listed_is_refused_with_those_that_are() -> None:
    refused = proofs.main(["run", "kill-matrx"])
    assert isinstance(refused, str) and refused.startswith("There is no proof kill-matrx. There are: kill-matrix, ")


def test_a_call_is_shown_as_it_can_be_typed() -> None:
    (call,) = entry(pythons=["old/python"], select="not race").commands()
    assert call.shown().startswith('GAUDI3_PROOF=some PATH="$PWD/old:$PATH" old/python -m pytest -v ')
    assert shlex.split(call.shown())[-3:] == ["-k", "not race", "test_a.py"]
