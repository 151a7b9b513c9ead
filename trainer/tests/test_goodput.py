"""The ledger of wall time: parts that sum to the whole, through kills, restarts and clocks that jump."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import PACKAGES

from gaudi3_scale.errors import TrainerError
from gaudi3_scale.throughput.goodput import FILE, PARTS, Account, Goodput, of_directory, read
from gaudi3_scale.throughput.ledger import (
    CHECKPOINT,
    COMPUTE,
    DATA,
    EVALUATION,
    MEASURED,
    OTHER,
    Ledger,
    current,
    process_age,
    use,
)
from gaudi3_scale.throughput.show import cells, draw, duration, show

SECOND = 10**9


class Clocks:
    """A steady clock in nanoseconds and a wall clock in seconds, moved by hand."""

    def __init__(self) -> None:
        self.steady = 5 * SECOND
        self.wall = 1000.0

    def pass_(self, seconds: float, jump: float = 0.0) -> None:
        self.steady += round(seconds * SECOND)
        self.wall += seconds + jump

    def ledger(self, path: Path | None = None, age: float = 0.0) -> Ledger:
        return Ledger(path, age, lambda: self.steady, lambda: self.wall)


def seconds(goodput: Goodput) -> dict[str, float]:
    """Of the parts that are not empty."""
    return {part: ns / SECOND for part, ns in goodput.nanoseconds.items() if ns}


def train(clocks: Clocks, ledger: Ledger, first: int, last: int, saves: tuple[int, ...] = ()) -> None:
    """Steps of 3 s, of which 1 s is waiting for data; each is written down, and saving takes 2 s."""
    ledger.switch(COMPUTE)
    for step in range(first, last + 1):
        with ledger.during(DATA):
            clocks.pass_(1)
        clocks.pass_(2)
        ledger.append(step, force=True)
        if step in saves:
            with ledger.during(CHECKPOINT):
                clocks.pass_(2)
            ledger.append(step, force=True)


def test_a_run_without_faults(tmp_path: Path) -> None:
    clocks, path = Clocks(), tmp_path / FILE
    ledger = clocks.ledger(path, age=4)
    clocks.pass_(6)
    ledger.resumed(0)
    train(clocks, ledger, 1, 4, saves=(4,))
    with ledger.during(EVALUATION):
        clocks.pass_(5)
    ledger.switch(OTHER)
    clocks.pass_(0.5)
    ledger.finished(4)
    found = of_directory(tmp_path)
    assert seconds(found) == {
        "compute": 8, "data_wait": 4, "checkpoint_stall": 2, "evaluation": 5, "startup": 10, "other": 0.5
    }  # fmt: skip
    assert found.status() == {
        "ratio": round(8 / 29.5, 6),
        "total_seconds": 29.5,
        "seconds": {
            "compute": 8.0, "data_wait": 4.0, "checkpoint_stall": 2.0, "evaluation": 5.0, "startup": 10.0,
            "restart_loss": 0.0, "other": 0.5,
        },
        "restarts": 0,
    }  # fmt: skip


def test_steps_that_are_done_again_and_the_pause_are_lost_and_start_up_is_not_counted_twice(tmp_path: Path) -> None:
    clocks, path = Clocks(), tmp_path / FILE
    first = clocks.ledger(path)
    clocks.pass_(10)
    first.resumed(0)
    train(clocks, first, 1, 7, saves=(5,))
    clocks.pass_(1.5)  # half a step, then killed: nothing of it is written
    clocks.pass_(60)
    second = clocks.ledger(path)
    clocks.pass_(10)
    second.resumed(5)
    train(clocks, second, 6, 7)
    assert seconds(of_directory(tmp_path)) == {
        "compute": 2 * 7, "data_wait": 7, "checkpoint_stall": 2, "startup": 20, "restart_loss": 6 + 61.5
    }  # fmt: skip
    assert of_directory(tmp_path).runs == 2


def test_a_run_that_died_before_its_first_checkpoint_is_lost_whole_but_its_start_up(tmp_path: Path) -> None:
    clocks, path = Clocks(), tmp_path / FILE
    for resumed, until in ((0, 6), (5, 8), (5, 6)):
        ledger = clocks.ledger(path)
        clocks.pass_(10)
        ledger.resumed(resumed)
        train(clocks, ledger, resumed + 1, until, saves=(5,))
    found = seconds(of_directory(tmp_path))
    assert found == {"compute": 12, "data_wait": 6, "checkpoint_stall": 2, "startup": 30, "restart_loss": 3 + 9}


def test_all_is_lost_but_the_start_ups_where_no_checkpoint_is_left(tmp_path: Path) -> None:
    clocks, path = Clocks(), tmp_path / FILE
    for resumed in (0, 5, 0):
        ledger = clocks.ledger(path)
        clocks.pass_(10)
        ledger.resumed(resumed)
        train(clocks, ledger, resumed + 1, resumed + 5, saves=(5,))
    found = seconds(of_directory(tmp_path))
    assert found == {"compute": 10, "data_wait": 5, "checkpoint_stall": 2, "startup": 30, "restart_loss": 17 + 15}


def test_a_missing_line_is_shared_out_by_steps(tmp_path: Path) -> None:
    clocks, path = Clocks(), tmp_path / FILE
    ledger = clocks.ledger(path)
    ledger.resumed(0)
    ledger.switch(COMPUTE)
    clocks.pass_(10)
    ledger.append(10, force=True)  # the checkpoint of step 6 was committed without a line
    again = clocks.ledger(path)
    again.resumed(6)
    assert seconds(of_directory(tmp_path)) == {"compute": 6, "restart_loss": 4}


def test_time_after_the_end_is_no_loss(tmp_path: Path) -> None:
    clocks, path = Clocks(), tmp_path / FILE
    ledger = clocks.ledger(path)
    ledger.resumed(0)
    train(clocks, ledger, 1, 2)
    ledger.finished(2)
    clocks.pass_(3600)
    clocks.ledger(path).resumed(2)  # continued with more steps
    assert seconds(of_directory(tmp_path)) == {"compute": 4, "data_wait": 2, "other": 3600}


def test_a_kill_at_any_byte_leaves_a_readable_ledger(tmp_path: Path) -> None:
    clocks, path = Clocks(), tmp_path / FILE
    ledger = clocks.ledger(path)
    ledger.resumed(0)
    train(clocks, ledger, 1, 2)
    data = path.read_bytes()
    complete = [0, *(n + 1 for n, byte in enumerate(data) if byte == ord("\n"))]
    for cut in range(len(data) + 1):
        path.write_bytes(data[:cut])
        lines = sum(end <= cut for end in complete) - 1
        assert len(list(read(path))) in (lines, lines + (cut + 1 in complete))  # a line without its newline counts
        clocks.ledger(path).resumed(0)
        assert path.read_bytes().startswith(data[:cut])
        assert json.loads(path.read_bytes().splitlines()[-1])["event"] == "start"
        account = Account(read(path))
        assert account.goodput().total >= 0


def test_parts_sum_to_the_whole_whatever_happens(tmp_path: Path) -> None:
    """Random runs: parts follow each other, clocks jump both ways, kills come anywhere, resumes go back anywhere."""
    chance = random.Random(20261121)
    for number in range(150):
        clocks, path = Clocks(), tmp_path / f"{number}.jsonl"
        before = 0  # of the runs that are over and the gaps between them
        ended: float | None = None
        reached = 0
        for _ in range(chance.randint(1, 5)):
            age = chance.choice([0.0, chance.uniform(0, 20)])
            ledger, spent, seen = clocks.ledger(path, age), int(age * 1e9), clocks.steady
            if ended is not None:
                before += max(0, round((clocks.wall - age - ended) * 1e9))
            clocks.pass_(chance.uniform(0, 9))
            step = chance.randint(0, reached)
            account = Account(read(path))
            account.add(ledger.resumed(step))
            spent, seen = spent + clocks.steady - seen, clocks.steady
            written, ended = spent, clocks.wall
            for _ in range(chance.randint(0, 12)):
                clocks.pass_(chance.uniform(0, 3), jump=chance.choice([0, 0, -500, 40]))
                if chance.random() < 0.1:
                    clocks.steady -= 2 * SECOND  # must not happen; if it does, time that runs backwards counts as none
                spent, seen = spent + max(0, clocks.steady - seen), clocks.steady
                ledger.switch(chance.choice(MEASURED))
                step += chance.randint(0, 2)
                if chance.random() < 0.6:
                    if chance.random() < 0.1:
                        ledger.finished(step)
                    else:
                        ledger.append(step, force=True)
                    written, ended = spent, clocks.wall
                    reached = max(reached, step)
            live = account.goodput(ledger.nanoseconds())
            assert before + spent == live.total == sum(live.nanoseconds.values())
            before += written
            clocks.pass_(chance.uniform(0, 100), jump=chance.choice([0, 0, -1000, 1000]))
        found = Account(read(path)).goodput()
        assert before == found.total == sum(found.nanoseconds.values())
        assert min(found.nanoseconds.values()) >= 0
        assert set(found.nanoseconds) == set(PARTS)
        assert sum(cells(found, 60).values()) == (60 if found.total else 0)


def test_waiting_for_batches_is_measured_and_nothing_else_changes() -> None:
    clocks = Clocks()
    ledger = clocks.ledger()

    class Batches:
        sampler = "mine"

        def __iter__(self):  # type: ignore[no-untyped-def]
            for number in range(3):
                clocks.pass_(2)
                yield number

    batches = ledger.waits(Batches())
    ledger.switch(COMPUTE)
    seen = []
    for batch in batches:
        seen.append(batch)
        clocks.pass_(1)
    assert seen == [0, 1, 2]
    assert batches.sampler == "mine"  # type: ignore[attr-defined]
    assert not hasattr(batches, "state_dict")
    spent = ledger.nanoseconds()
    assert (spent[DATA], spent[COMPUTE]) == (6 * SECOND, 3 * SECOND)


def test_lines_in_the_middle_are_rare(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / FILE)
    ledger.resumed(0)
    for step in range(1, 100):
        ledger.append(step)
    assert [line["step"] for line in read(tmp_path / FILE)] == [0, 1]


def test_there_is_always_a_current_ledger(tmp_path: Path) -> None:
    mine = Ledger()
    before = current()
    assert use(mine) is mine is current()
    use(before)
    assert 0 < process_age() < 3600


def test_a_folder_without_a_ledger_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TrainerError, match=r"has no goodput\.jsonl with a readable line: give the output_dir"):
        of_directory(tmp_path)


def test_the_table_and_the_picture(tmp_path: Path) -> None:
    from rich.console import Console

    spent = dict.fromkeys(PARTS, 0) | {
        "compute": 3000 * SECOND,
        "restart_loss": 900 * SECOND,
        "data_wait": 100 * SECOND,
    }
    goodput = Goodput(spent, runs=3)
    console = Console(record=True, width=120, file=(tmp_path / "out").open("w"))
    show(goodput, "demo", console)
    text = console.export_text()
    assert "compute" in text and "50 min 00 s" in text and "75.0 %" in text and "22.5 %" in text
    assert "1 h 06 min in all, 2 restart(s)" in text
    assert "█" * 45 + "▒" * 15 + " goodput 75.0 %" in text
    pytest.importorskip("matplotlib")
    draw(goodput, "demo", tmp_path / "goodput.png")
    assert (tmp_path / "goodput.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(TrainerError, match="cannot be written"):
        draw(goodput, "demo", tmp_path / "not" / "there.png")


@pytest.mark.parametrize(
    ("value", "text"), [(0.04, "0.0 s"), (59.9, "59.9 s"), (245, "4 min 05 s"), (11220, "3 h 07 min")]
)
def test_durations_are_readable(value: float, text: str) -> None:
    assert duration(value) == text


def test_the_command_shows_a_job_without_importing_torch(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    clocks = Clocks()
    ledger = clocks.ledger(tmp_path / FILE, age=2)
    ledger.resumed(0)
    train(clocks, ledger, 1, 2)
    program = (
        "import sys; from gaudi3_scale.cli import app; app(sys.argv[1:], standalone_mode=False); "
        "print('torch' in sys.modules)"
    )
    command = [sys.executable, "-c", program, "goodput", str(tmp_path), "--png", str(tmp_path / "goodput.png")]
    output = subprocess.run(command, env=os.environ | {"PYTHONPATH": PACKAGES}, capture_output=True, text=True)
    lines = output.stdout.splitlines()
    assert lines[-1] == "False", output.stderr
    assert lines[-2].endswith(" goodput 50.0 %")  # 4 s of 8 s
    assert (tmp_path / "goodput.png").exists()


SOUND = {"event": "account", "run": "a", "step": 4, "began": 1.7e9, "time": 1.7e9 + 60}


@pytest.mark.parametrize(
    "change",
    [
        {"nanoseconds": dict.fromkeys(MEASURED, 2**63)},
        {"nanoseconds": dict.fromkeys(MEASURED, float("inf"))},
        {"step": 10**400},
        {"began": 10**400},
        {"began": float("nan")},
        {"time": 1e308},
        {"deep": "DEEP"},
    ],
)
def test_a_line_whose_numbers_cannot_be_reckoned_with_is_left_out(change: dict[str, object], tmp_path: Path) -> None:
    line = {**SOUND, "nanoseconds": dict.fromkeys(MEASURED, SECOND)}
    odd = json.dumps({**line, "run": "b", **change}).replace('"DEEP"', "[" * 10**5)
    (tmp_path / FILE).write_text(f"{json.dumps(line)}\n{odd}\n")
    assert list(read(tmp_path / FILE)) == [line]
