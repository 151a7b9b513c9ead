"""What journalctl is asked for: fields, never a shell's text."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._logs import questions
from ansible_collections.gaudi3.scale.plugins.module_utils._logs.entries import Entry, Ranks
from ansible_collections.gaudi3.scale.plugins.module_utils._logs.questions import Question
from ansible_collections.gaudi3.scale.plugins.module_utils._refusal import Refusal

UNIT = "_SYSTEMD_UNIT=gaudi-train-llm.service"
JOB = [UNIT, "+", "UNIT=gaudi-train-llm.service", "_PID=1"]
VENDOR = ["_SYSTEMD_UNIT=gaudi-logs-vendor.service", "GAUDI_JOB=llm"]


@pytest.mark.parametrize(
    ("asked", "pids", "matches"),
    [
        ({}, [], []),
        ({"kernel": True}, [], ["_TRANSPORT=kernel"]),
        ({"job": "llm"}, [], [*JOB, "+", *VENDOR]),
        ({"job": "llm", "kernel": True}, [], ["_TRANSPORT=kernel", "+", *JOB, "+", *VENDOR]),
        ({"job": "llm", "rank": 37}, [9, 7, 9], [UNIT, "_PID=7", "_PID=9"]),
    ],
)
def test_matches(asked: dict[str, Any], pids: list[int], matches: list[str]) -> None:
    assert Question(**asked).matches(pids) == matches


def test_one_node_is_asked_by_its_files() -> None:
    command = Question("llm", since=100.7, lines=5).command(["a.journal"])
    assert command[0] == "journalctl"
    assert {"--since=@100", "--lines=5", "--file=/var/log/gaudi-logs/a.journal", UNIT} <= set(command)
    starts = Question("llm", since=100.7, lines=5).starts(["a.journal"])
    assert not any(word.startswith("--since") for word in starts), "the job may have started before"
    assert starts[-1] == UNIT


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"job": "a;b"}, "'a;b' is no name of a job: give small letters, digits, - and _."),
        ({"job": "--file=/etc/shadow"}, "is no name of a job"),
        ({"rank": 3}, "A rank is one of a job: name the job, too."),
        ({"lines": 0}, "0 lines are none: give 1 or more."),
    ],
)
def test_what_cannot_be_asked(asked: dict[str, Any], said: str) -> None:
    with pytest.raises(Refusal, match=said.replace("*", "[*]")):
        Question(**asked)


def test_files_are_told_apart_by_node() -> None:
    names = ["b.journal", "a.journal", "a@1-2.journal", "x"]
    both = {"a": ["a.journal", "a@1-2.journal"], "b": ["b.journal"]}
    assert questions.by_sender(names) == both
    assert list(questions.by_sender(names, ["b"])) == ["b"]
    with pytest.raises(Refusal, match=r"Nothing has come from 'c' \(what has come is from: a, b\): name one of these."):
        questions.by_sender(names, ["c"])


def test_only_the_rank_is_wanted_and_the_kernel_beside_it() -> None:
    starts = [Ranks(0, "a", "b", {7: 37, 8: 38}), Ranks(0, "c", "b", {7: 1})]
    assert questions.pids_of(37, starts) == [7]
    mine, other = Entry(9, "a", "", "b", "m", "x", 7), Entry(9, "a", "", "b", "m", "x", 8)
    kernel = Entry(9, "a", "", "b", "m", "kernel", None)
    asked = Question("llm", 37)
    assert [asked.wants(each, starts) for each in (mine, other, kernel)] == [True, False, False]
    assert Question("llm", 37, kernel=True).wants(kernel, starts)
    assert Question("llm").wants(other, starts)


@pytest.mark.parametrize(("text", "seconds"), [("90s", 90), ("10m", 600), ("1h30m", 5400), ("2d", 172800), ("0s", 0)])
def test_times(text: str, seconds: int) -> None:
    assert questions.seconds(text) == seconds


@pytest.mark.parametrize("text", ["", "10", "m", "10 m", "1w", "-5m", "yesterday"])
def test_what_is_no_time(text: str) -> None:
    with pytest.raises(Refusal, match="is no time: write it as 90s, 10m, 2h or 1d"):
        questions.seconds(text)
