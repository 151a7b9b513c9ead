"""The rows of the contract suite are sound, a sample of them runs, and what a row does is judged rightly."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.contract import child, record
from tests.contract.programs import HERE, ROOT, SOURCES, Row, rows

ROWS = rows()
PINS = ("torch", "dev", "trainer", "extras", "contract", "contract-optimum")


def made(run: str, **more: object) -> Row:
    """A row of a program of Python's own."""
    return Row(id="own", program="python", source="python", calls="itself", run=run, **more)  # type: ignore[arg-type]


def test_every_source_is_pinned() -> None:
    pinned = {
        line.split()[0].split("+")[0]
        for name in PINS
        for line in (ROOT / "requirements" / f"{name}.txt").read_text().splitlines()
        if "==" in line
    }
    for row in ROWS:
        if row.repository:
            assert re.fullmatch(r"[\w.-]+/[\w.-]+@[0-9a-f]{10}", row.source), row.source
        else:
            assert row.source in pinned, f"{row.id}: {row.source} is in no requirements file"


def test_every_check_is_there_and_used() -> None:
    used = {row.run.split()[1] for row in ROWS if row.run.startswith("check ")}
    assert used == {path.stem for path in (HERE / "checks").glob("*.py")}


def test_the_page_has_every_row() -> None:
    page = record.PAGE.read_text()
    shown = [
        tuple(cell.strip() for cell in line.split(" | ")[1:3]) for line in page.splitlines() if line.startswith("| ")
    ]
    wanted = [(row.source, row.calls.replace("|", "\\|")) for row in ROWS]
    assert shown[1:] == wanted, "run `make contract`"


@pytest.mark.parametrize(
    "row",
    [
        pytest.param(row, id=row.id, marks=pytest.mark.xfail(strict=True, reason=row.fails) if row.fails else ())
        for row in ROWS
        if row.quick
    ],
)
def test_a_program_runs(row: Row) -> None:
    if row.missing():
        pytest.skip(row.missing())
    outcome = child.run(row, child.Twin())
    assert outcome.is_expected(row), f"{outcome.line}\n{outcome.output[-3000:]}"


def test_a_program_beyond_its_limit_is_ended() -> None:
    outcome = child.run(made("module timeit -n 1 -r 1 -s 'import time' 'time.sleep(60)'", limit=1), child.Twin())
    assert outcome.result == child.FAILS
    assert outcome.line.startswith("not done after 1 s")
    assert outcome.seconds < 20


def test_the_line_of_an_error_is_told() -> None:
    outcome = child.run(made("module timeit -n 1 -r 1 'raise ValueError(7)'"), child.Twin())
    assert (outcome.result, outcome.line) == (child.FAILS, "ValueError: 7")


def test_a_crash_is_told() -> None:
    outcome = child.run(made("module timeit -n 1 -r 1 'import os; os.abort()'"), child.Twin())
    assert outcome.result == child.FAILS
    assert outcome.line.startswith("killed by signal 6")


def test_silence_is_no_pass() -> None:
    row = made("module timeit -n 1 -r 1 pass", prints="something else")
    assert child.run(row, child.Twin()).result == child.FAILS


def test_a_refusal_counts_only_with_its_sentence() -> None:
    run = "module timeit -n 1 -r 1 'raise ValueError(7)'"
    refused = child.run(made(run, refused="no sevens", refusal="ValueError: 7"), child.Twin())
    assert refused.result == child.REFUSED
    assert child.run(made(run, refused="no eights", refusal="ValueError: 8"), child.Twin()).result == child.FAILS


def test_a_program_that_passes_is_no_refusal() -> None:
    row = made("module timeit -n 1 -r 1 pass", refused="no passing", refusal="no")
    outcome = child.run(row, child.Twin())
    assert outcome.result == child.PASSES
    assert not outcome.is_expected(row)


def test_a_repository_that_is_not_there_is_not_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    row = Row(id="own", program="p", source="owner/name@0123456789", calls="c", run="file x.py")
    monkeypatch.delenv(SOURCES, raising=False)
    assert child.run(row, child.Twin()).result == child.NOT_RUN
    monkeypatch.setenv(SOURCES, str(tmp_path))
    assert "no owner/name" in child.run(row, child.Twin()).line
    (tmp_path / "owner" / "name").mkdir(parents=True)
    (tmp_path / "owner" / "name" / "x.py").write_text("print(1)\n")
    assert child.run(row, child.Twin()).result == child.PASSES


def test_a_program_finds_a_node_where_a_node_has_it() -> None:
    looks = (
        "import glob, subprocess; cards = glob.glob('/dev/accel/accel[0-9]*'); assert len(cards) == 8, cards; "
        "table = subprocess.run('hl-smi', capture_output=True, text=True, env={}, shell=True).stdout; "
        "assert table.count('HL-325L') == 8, table; "
        "status = [open(f'/sys/class/accel/accel{card}/device/status').read().strip() for card in range(8)]; "
        "assert status == ['Operational'] * 5 + ['In reset'] + ['Operational'] * 2, status"
    )
    row = made(f'module timeit -n 1 -r 1 "{looks}"', node=True, faults=("card-in-reset:5",))
    outcome = child.run(row, child.Twin())
    if outcome.result == child.NOT_RUN:
        pytest.skip(outcome.line)
    assert outcome.result == child.PASSES, outcome.output
