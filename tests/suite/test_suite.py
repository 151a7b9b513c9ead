"""The way the tests are run: costs and counts, proofs that go on where they were, floors that only rise."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.suite import floors, proof, proofs, run

ROOT = Path(__file__).resolve().parents[2]


def test_counts_of_several_runs_are_summed_up() -> None:
    text = (
        "3 passed, 1 skipped in 0.12s\nsome words about 7 failed things\n"
        "  │ === 1 failed, 1 passed in 4.82s ===\n"
        "=== 1 failed, 2 passed, 1 error in 61.00s (0:01:01) ===\n"
    )
    assert run.count(text) == {"passed": 5, "skipped": 1, "failed": 2}


def test_every_part_is_a_target_of_the_makefile() -> None:
    targets = {line.split(":")[0] for line in (ROOT / "Makefile").read_text().splitlines() if ":" in line}
    assert {name for lane in (*run.LANES, run.LOOSE) for name in lane} <= targets


def test_every_proof_is_run_by_a_target_of_the_makefile() -> None:
    """What is marked `proof` is left out of `make test`: without a target of its own nobody ever runs it."""
    listed = proofs.read().values()
    run_by_targets = {ROOT / each.folder / test for each in listed for test in each.tests}
    marked = re.compile(
        r"^@pytest\.mark\.proof|\b[A-Z]+\.(parameters|sampled)\(|marks=pytest\.mark\.proof|^pytestmark = .*proof", re.M
    )
    folders = [
        "tests",
        "trainer/tests",
        "benchmark-tool/tests",
        "doctor/tests",
        "migration/tests",
        "watch/tests",
        "website/tests",
        "simulator/tests",
        "simulator/torch/tests",
        "deploy/tests",
    ]
    files = {path for folder in folders for path in (ROOT / folder).rglob("test_*.py")}
    found = {path for path in files if marked.search(path.read_text())}
    assert len(found) >= 8
    assert sorted(found - run_by_targets) == []


def left_out(makefile: str) -> set[Path]:
    """What recipes keep pytest from, without what another call of it is given."""
    ignored, given = set(), set()
    for line in re.findall(r"^\t.*(?:pytest|\$\(call covered,).*", makefile, re.M):
        folder = re.search(r"cd (\S+) &&", line)
        top = ROOT / (folder[1] if folder else ".")
        ignored |= {top / word for word in re.findall(r"--ignore (\S+)", line)}
        given |= {top / word for word in re.sub(r"--ignore \S+", "", line).split()}
    return ignored - given


def test_what_one_target_leaves_out_another_one_runs() -> None:
    makefile = (ROOT / "Makefile").read_text()
    assert left_out(makefile) == set()
    assert left_out(makefile.replace("\tcd simulator && pytest -q tests/hlml\n", "")) == {ROOT / "simulator/tests/hlml"}


def test_a_failed_part_is_shown_and_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "LOGS", tmp_path)
    make = tmp_path / "make"
    make.write_text(
        "#!/bin/sh\ncase $2 in good) echo '4 passed in 0.10s';; *) echo a reason; exit 3;; esac\n", encoding="utf-8"
    )
    make.chmod(0o755)
    suite = run.Suite([["good"], ["bad"]], str(make))
    suite.run()
    assert [(part.name, part.code) for part in suite.parts()] == [("good", 0), ("bad", 3)]
    assert suite.summary() == "4 passed, 1 failed"
    assert "exit code 3" in suite.table()


def test_a_lane_that_is_at_its_end_goes_on_with_what_is_loose(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "LOGS", tmp_path)
    make = tmp_path / "make"
    order = tmp_path / "order"
    # The long part ends when the last of the loose ones has.
    make.write_text(
        f"#!/bin/sh\necho $2 >> {order}\n[ $2 != long ] || while ! grep -q later {order}; do sleep 0.05; done\n"
    )
    make.chmod(0o755)
    monkeypatch.setattr(run, "WORKERS", 2)
    suite = run.Suite([["long"], ["first", "second"]], str(make), ["loose", "later"])
    suite.run()
    assert [part.code for part in suite.parts()] == [0] * 5
    assert [name for name in order.read_text().split() if name != "long"] == ["first", "second", "loose", "later"]


def test_the_sample_in_turn_has_had_every_case_after_a_few_commits(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    for commits in range(7, 10):
        monkeypatch.setattr(proof, "_commits", lambda commits=commits: commits)
        seen.append(proof.in_turn("abcdefgh", 3))
    assert seen == [["f", "g", "h"], ["a", "b", "c"], ["d", "e", "f"]]


def test_the_cpu_time_of_a_part_is_that_of_its_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "LOGS", tmp_path)
    busy = "import time; end = time.process_time() + 0.5\nwhile time.process_time() < end: pass"
    make = tmp_path / "make"
    make.write_text(f"#!/bin/sh\n{sys.executable} -c '{busy}'\n")
    make.chmod(0o755)
    suite = run.Suite([["busy"]], str(make))
    suite.run()
    assert 0.5 <= suite.parts()[0].cpu < 2


@pytest.fixture
def short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> proof.Proof:
    """A proof of four cases in two strata over one source file."""
    monkeypatch.setattr(proof, "ROOT", tmp_path)
    monkeypatch.setenv("GAUDI3_PROOF", "short")
    (tmp_path / "source").write_text("one")
    return proof.Proof("short", {"a": ["a1", "a2"], "b": ["b1", "b2"]}, sources=["source"])


def test_the_sample_has_a_case_of_each_stratum(short: proof.Proof) -> None:
    assert sorted(case[0] for case in short.sample) == ["a", "b"]
    again = proof.Proof("short", {"a": ["a1", "a2"], "b": ["b1", "b2"]}, sources=["source"])
    assert again.sample == short.sample
    marked = {each.id for each in short.parameters(dict.fromkeys(short.cases)) if each.marks}
    assert marked == set(short.cases) - short.sample
    chosen = proof.Proof("short", {"a": ["a1", "a2"], "b": ["b1", "b2"]}, sources=["source"], sample=["b2"])
    assert chosen.sample == {"b2"}


def test_a_proof_goes_on_where_it_was_until_the_sources_change(short: proof.Proof, tmp_path: Path) -> None:
    short.note("a1", {"seconds": 1})
    with pytest.raises(pytest.skip.Exception):
        short.skip_if_held("a1")
    short.skip_if_held("a2")
    (tmp_path / "source").write_text("two")
    short.skip_if_held("a1")
    assert short.held() == {}


def test_what_an_installation_leaves_among_the_sources_changes_no_proof(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(proof, "ROOT", tmp_path)
    (tmp_path / "src/product.egg-info").mkdir(parents=True)
    (tmp_path / "src/code.py").write_text("one")
    made = proof.Proof("made", {"all": ["a"]}, sources=["src"])
    before = made.key()
    (tmp_path / "src/product.egg-info/PKG-INFO").write_text("Version: 1")
    assert made.key() == before
    (tmp_path / "src/code.py").write_text("two")
    assert made.key() != before


def test_the_table_is_written_when_every_case_held(short: proof.Proof, tmp_path: Path) -> None:
    page = tmp_path / "proofs" / "short.md"
    for case in short.cases:
        short.write_table("Short", "What it shows.", ["seconds"])
        assert not page.exists()
        short.note(case, {"seconds": len(case)})
    short.write_table("Short", "What it shows.", ["seconds"])
    text = page.read_text()
    assert f"seed {proof.SEED}" in text and "all 4 cases held" in text
    assert text.endswith("| a1 | 2 |\n| a2 | 2 |\n| b1 | 2 |\n| b2 | 2 |\n")


def test_a_case_that_cannot_be_run_is_in_the_table_with_its_reason_and_is_tried_again(
    short: proof.Proof, tmp_path: Path
) -> None:
    for case in ("a1", "a2", "b1"):
        short.note(case, {"seconds": 3})
    with pytest.raises(pytest.skip.Exception, match="no card here"):
        short.cannot_run("b2", "no card here")
    short.skip_if_held("b2")
    short.write_table("Short", "What it shows.", ["seconds"])
    text = (tmp_path / "proofs" / "short.md").read_text()
    assert "3 of 4 cases held, 1 not run." in text and "all 4" not in text
    assert text.endswith("| b1 | 3 |\n| b2 | not run: no card here |\n")


def test_a_reason_is_put_down_by_a_proof_only(short: proof.Proof, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GAUDI3_PROOF")
    with pytest.raises(pytest.skip.Exception, match="no card here"):
        short.cannot_run("b2", "no card here")
    assert short.held() == {}


def test_an_area_below_its_floor_is_named() -> None:
    assert floors.failures({"plugins": 90.0, "deploy": 50.0}, {"plugins": 90.0, "deploy": 50.1}) == [
        "The coverage of deploy is 50.0 %, below its floor of 50.1 %: test what was added."
    ]


def test_raising_lowers_no_floor() -> None:
    text = "# why\nplugins = 91.0\ndeploy = 50.0\n"
    assert floors.raised(text, {"plugins": 80.0, "deploy": 72.36}) == "# why\nplugins = 91.0\ndeploy = 71.8\n"


def test_no_floor_is_lower_than_it_ever_was() -> None:
    now = floors.read_floors(floors.FLOORS.read_text())
    name = floors.FLOORS.relative_to(ROOT).as_posix()
    log = subprocess.run(
        ["git", "log", "--format=%H", "--", name], cwd=ROOT, capture_output=True, text=True, check=False
    )
    for commit in log.stdout.split():
        shown = subprocess.run(
            ["git", "show", f"{commit}:{name}"], cwd=ROOT, capture_output=True, text=True, check=False
        )
        then = floors.read_floors(shown.stdout) if shown.returncode == 0 else {}
        assert {area: floor for area, floor in then.items() if floor > now.get(area, 0.0)} == {}, commit


def test_a_library_is_imported_untraced_and_what_imports_it_is_measured_whole(tmp_path: Path) -> None:
    installed, source = tmp_path / "site-packages", tmp_path / "src"
    installed.mkdir()
    source.mkdir()
    (installed / "library.py").write_text("import sys\n\n\nTRACE = sys.gettrace()\n")
    (installed / "library_to_run.py").write_text("print('as python -m does')\n")
    (source / "own.py").write_text(
        "import runpy\nimport sys\nimport library\n\n\ndef both():\n    return sys.gettrace(), library.TRACE\n\n\n"
        "runpy.run_module('library_to_run')\nprint(*both())\n"
    )
    (tmp_path / "rc").write_text(f"[run]\nplugins = untraced_libraries\nsource = {source}\n")
    environment = {name: value for name, value in os.environ.items() if "COVERAGE" not in name}
    environment |= {"PYTHONPATH": f"{installed}:{ROOT}/tests/suite/coverage_plugins"}

    def coverage(*arguments: str) -> str:
        return subprocess.run(
            [sys.executable, "-m", "coverage", *arguments],
            cwd=tmp_path,
            env=environment,
            check=True,
            capture_output=True,
            text=True,
        ).stdout

    of_source, of_library = coverage("run", "--rcfile=rc", str(source / "own.py")).rsplit(maxsplit=1)
    assert of_source.startswith("as python -m does\n")
    assert "CTracer" in of_source and of_library == "None"
    coverage("json", "--rcfile=rc", "-o", "report.json")
    (measured,) = json.loads((tmp_path / "report.json").read_text())["files"].values()
    assert (measured["executed_lines"], measured["missing_lines"]) == ([1, 2, 3, 6, 7, 10, 11], [])
