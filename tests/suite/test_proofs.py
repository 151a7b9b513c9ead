"""The list of proofs: what it names exists, a proof is run as it says, and pages older than their sources are named."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.suite import proof, proofs
from tests.suite.proofs import ROOT, Entry

LISTED = proofs.read()
COMMITTED = sorted((ROOT / proofs.PAGES).glob("*.md"))
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


def git(root: Path, *arguments: str) -> str:
    who = ["-c", "user.name=nobody", "-c", "user.email=nobody@example.org", "-c", "commit.gpgsign=false"]
    done = subprocess.run(["git", "-C", str(root), *who, *arguments], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def commit(root: Path, **files: str) -> str:
    """Write files whose names are given with _ for /, and commit them."""
    for name, text in files.items():
        path = root / name.replace("_", "/")
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--allow-empty", "--message", "one step")
    return git(root, "rev-parse", "--short=10", "HEAD")


def write_page(root: Path, name: str, commit: str) -> None:
    (root / proofs.PAGES).mkdir(exist_ok=True)
    (root / proofs.PAGES / f"{name}.md").write_text(
        f"# Some\n\nWritten by `make proof-{name}` on 2026-11-27, commit {commit}, seed 1,\nwith Python.\n"
    )


@pytest.fixture
def made(tmp_path: Path) -> Path:
    """A repository of two sources."""
    root = tmp_path / "made"
    root.mkdir()
    git(root, "init", "--quiet")
    commit(root, a_code="one", b_code="one")
    return root


def test_a_page_is_old_once_its_sources_have_changed(made: Path) -> None:
    first = git(made, "rev-parse", "--short=10", "HEAD")
    of_a, of_b = entry(sources=["a"]), entry(sources=["a", "b"])
    write_page(made, "some", first)
    commit(made)
    assert (proofs.why_old(made, of_a), proofs.why_old(made, of_b)) == ("", "")
    commit(made, b_code="two")
    assert proofs.why_old(made, of_a) == ""
    assert proofs.why_old(made, of_b) == f"sources changed by 1 commit since {first}"
    commit(made, a_code="three")
    assert proofs.why_old(made, of_a) == f"sources changed by 1 commit since {first}"
    assert proofs.why_old(made, of_b) == f"sources changed by 2 commits since {first}"
    write_page(made, "some", git(made, "rev-parse", "--short=10", "HEAD"))
    assert (proofs.why_old(made, of_a), proofs.why_old(made, of_b)) == ("", "")


def test_a_page_that_cannot_be_trusted_is_old(made: Path) -> None:
    first = git(made, "rev-parse", "--short=10", "HEAD")
    assert proofs.why_old(made, entry()) == "no page yet"
    write_page(made, "some", "unknown")
    assert proofs.why_old(made, entry()) == "its page names no commit"
    write_page(made, "some", f"{first} with changes")
    assert proofs.why_old(made, entry()) == f"made with changes to {first}"
    git(made, "checkout", "--quiet", "-b", "other")
    lost = commit(made, a_code="other")
    git(made, "checkout", "--quiet", "-")
    write_page(made, "some", lost)
    assert proofs.why_old(made, entry()) == f"commit {lost} is not in the history"


def test_old_pages_are_listed_with_how_long_they_take_and_the_others_after_them(made: Path) -> None:
    first = git(made, "rev-parse", "--short=10", "HEAD")
    for name in ("new", "old"):
        write_page(made, name, first)
    commit(made, b_code="two")
    given = {
        "new": Entry("new", "Cases.", "a minute", ["t"], ["a"]),
        "old": Entry("old", "Cases.", "an hour", ["t"], ["b"]),
        "none": Entry("none", "Cases.", "a minute", ["t"], ["b"], page=False),
    }
    head, old, last = proofs.ages(made, given)
    assert head == "Proofs to run again, each by `make proof-NAME`:"
    assert old.split() == ["old", *f"sources changed by 1 commit since {first}".split(), "an", "hour"]
    assert last == "Up to date: new"
    assert proofs.ages(made, {"new": given["new"]}) == [last]


def test_a_checkout_without_a_history_says_so(made: Path, tmp_path: Path) -> None:
    commit(made, a_code="two")
    assert proofs.no_history(made) == ""
    subprocess.run(
        ["git", "clone", "--quiet", "--depth=1", made.as_uri(), str(tmp_path / "shallow")],
        check=True,
        capture_output=True,
    )
    assert proofs.no_history(tmp_path / "shallow") == "this checkout is shallow: it has no commits of the past"
    assert proofs.no_history(tmp_path) == "this is no git checkout"


@pytest.mark.parametrize("page", COMMITTED, ids=lambda page: page.stem)
def test_a_page_is_of_a_listed_proof_and_names_a_commit_of_the_history(page: Path) -> None:
    assert LISTED[page.stem].page
    named, _with_changes = proofs.commit_of(page.read_text(encoding="utf-8"))
    assert named, "the page names no commit"
    if reason := proofs.no_history(ROOT):
        pytest.skip(reason)
    assert proofs.is_in_history(ROOT, named), f"commit {named} is not in the history: run the proof again"


def test_make_lists_the_pages() -> None:
    if reason := proofs.no_history(ROOT):
        pytest.skip(reason)
    done = subprocess.run(
        [sys.executable, str(ROOT / "tests/suite/proofs.py"), "ages"], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1].startswith("Up to date: ")


@pytest.mark.parametrize("running", [True, False])
def test_a_case_that_failed_before_it_held_is_told_in_the_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, running: bool
) -> None:
    monkeypatch.setattr(proof, "ROOT", tmp_path)
    monkeypatch.setenv("GAUDI3_PROOF", "made" if running else "")
    (tmp_path / "source").write_text("1")
    made = proof.Proof("made", {"a": ["one", "two"]}, sources=["source"])
    made.failed("one")
    made.note("two", {"x": 2})
    made.failed("one")
    assert made.failures() == ({"one": 2} if running else {}) and set(made.held()) == {"two"}
    made.note("one", {"x": 1})
    made.write_table("Made", "Text.", ["x"])
    if running:
        page = (tmp_path / "proofs/made.md").read_text()
        assert "all 2 cases held; 1 failed before they held (how often): one (2)" in page
    (tmp_path / "source").write_text("2")
    assert made.failures() == {} and made.held() == {}


def test_a_table_has_the_sums_of_a_kind_of_cases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proof, "ROOT", tmp_path)
    monkeypatch.setenv("GAUDI3_PROOF", "made")
    (tmp_path / "source").write_text("1")
    made = proof.Proof("made", {"a": ["a-1", "a-2", "a-3"], "b": ["b-1"]}, sources=["source"])
    for case, row in {"b-1": {"x": 8}, "a-1": {"x": 1}, "a-2": {"x": 2}, "a-3": {proof.NOT_RUN: "no card"}}.items():
        made.note(case, row)
    made.write_table("Made", "Text.", ["x"], lambda case: case[0])
    table = (tmp_path / "proofs/made.md").read_text().partition("|---|---|\n")[2]
    assert table == "| a | 3 |\n| a-3 | not run: no card |\n| b | 8 |\n"


def test_a_case_with_sources_of_its_own_is_void_with_those_alone(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proof, "ROOT", made)
    monkeypatch.setenv("GAUDI3_PROOF", "some")
    some = proof.Proof(
        "some", {"a": ["a", "b"]}, sources=["a", "b"], own=lambda case: (made / case / "code").read_text()
    )
    first = git(made, "rev-parse", "--short=10", "HEAD")
    some.note("a", {"x": 1})
    second = commit(made, b_code="two")
    some.note("b", {"x": 2})
    some.write_table("Some", "Text.", ["x"])
    page = (made / "proofs/some.md").read_text()
    assert f" commit {first}, seed" in page
    assert page.endswith(f"| case | x | commit |\n|---|---|---|\n| a | 1 | {first} |\n| b | 2 | {second} |\n")
    (made / "b/code").write_text("three")
    assert set(some.held()) == {"a"}
    git(made, "checkout", "--quiet", "--force", "--orphan", "other")
    commit(made, b_code="two")
    assert some.held() == {}
