"""The reader of what a node answered: odd values of every kind are that node's alone."""

from __future__ import annotations

import copy
import json
import random
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.gaudi3.scale.plugins.filter.call_answer import FilterModule as CallFilters
from ansible_collections.gaudi3.scale.plugins.filter.health_report import FilterModule
from ansible_collections.gaudi3.scale.plugins.module_utils._health.pair_jobs import job_results
from ansible_collections.gaudi3.scale.plugins.module_utils._health.pairs import Job
from ansible_collections.gaudi3.scale.plugins.module_utils._health.report import (
    HEALING,
    PERSON,
    Report,
    read,
    read_all,
)
from ansible_collections.gaudi3.scale.plugins.module_utils._health.tools import collective_result
from ansible_collections.gaudi3.scale.plugins.module_utils._refusal import Refusal
from ansible_collections.gaudi3.scale.plugins.modules import gaudi_healing, gaudi_passport

VERDICT = {
    "check": "card-status",
    "component": "accel3",
    "kind": "node fault",
    "severity": "critical",
    "action": "reset",
    "evidence": "the driver says so",
    "drains": True,
    "message": "accel3: the driver says so",
    "since": 1.5,
}
ERROR = {**VERDICT, "kind": "check error", "action": "none", "severity": "error"}
WHOLE: dict[str, Any] = {
    "verdicts": [VERDICT],
    "suspects": [VERDICT],
    "errors": [ERROR],
    "versions": {"board": "HL-325L", "driver": "1.23.0"},
    "figures": {"all_reduce": 250.0},
    "cards": 8,
    "idle": True,
    "fence": {"by": "healing", "reason": "accel3", "step": "reset", "since": 1767225600.0, "jobs": ["demo"]},
    "history": [{"at": 1.0, "what": "out"}],
}
SOUND = {**WHOLE, "verdicts": [], "suspects": [], "errors": [], "fence": None}
ODD: tuple[Any, ...] = (
    None, True, -1, 0, 10**400, 2**63, 1.5, float("nan"), float("inf"), -1e308, "", "x", "critical", "\x1b[2J\u202e\n",
    "\ud800", "{{ lookup('pipe', 'true') }}", "a" * 100_000, [], [[]], [None], [1, "x"], {}, {"x": {"y": []}},
    [{}] * 5000,
    {str(number): 1 for number in range(5000)}, [{"severity": "critical"}], [VERDICT, 1],
)  # fmt: skip
filtered = FilterModule().filters()["health_report"]


def paths(value: Any, before: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Where every value of a report lies."""
    keys: Any = value.keys() if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    return [before, *(path for key in keys for path in paths(value[key], (*before, key)))]


def changed(path: tuple[Any, ...], odd: Any, missing: bool = False) -> Any:
    """The report with something else, or nothing, in a place."""
    if not path:
        return odd
    answer = copy.deepcopy(WHOLE)
    place: Any = answer
    for key in path[:-1]:
        place = place[key]
    if missing:
        del place[path[-1]]
    else:
        place[path[-1]] = odd
    return answer


def mutations() -> list[Any]:
    """Every odd value in every place, and every place gone."""
    places = paths(WHOLE)
    found = [changed(path, odd) for path in places for odd in ODD]
    return found + [changed(path, None, missing=True) for path in places if path]


def test_every_odd_answer_is_read_or_refused_in_a_printable_sentence() -> None:
    readable = unreadable = 0
    for answer in mutations():
        try:
            report = read(answer)
        except Refusal as error:
            assert str(error).isprintable() and len(str(error)) < 600
            unreadable += 1
            assert filtered(answer)["unread"] == str(error).rstrip(".")
            continue
        readable += 1
        shown = [report.remedy, *report.versions, *report.versions.values(), *filtered(answer)["said"]]
        for each in (*report.verdicts, *report.suspects, *report.errors):
            shown += [each.component, each.message, each.check, each.evidence]
        if report.fence:
            shown += [report.fence.reason, report.fence.step]
        assert all(text.isprintable() and len(text) <= 1000 for text in shown)
        assert read(json.loads(json.dumps(filtered(answer), allow_nan=False))) == report
        json.dumps([report.drains, report.healthy, report.figures, report.cards], allow_nan=False)
    assert readable > 100 and unreadable > 500


def test_a_report_is_read_whole() -> None:
    report = read(WHOLE)
    assert (report.drains, report.healthy, report.remedy, report.cards, report.whole) == (True, False, "reset", 8, True)
    assert report.fence is not None and (report.fence.by, report.fence.since) == (HEALING, 1767225600.0)
    assert read({**SOUND, "fence": ["odd"]}).fence == read({**SOUND, "fence": {"by": "x"}}).fence
    assert (read({**SOUND, "fence": ["odd"]}).fence or 0).by == PERSON  # type: ignore[union-attr]
    assert (filtered(SOUND)["fit"], filtered(WHOLE)["unfit"]) == (True, "accel3: the driver says so")
    assert read({"verdicts": []}) == Report(whole=False)


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (None, "no answer"),
        ({"unreachable": True, "verdicts": []}, "no answer"),
        ({"failed": True, "msg": "no \x1b[1mspace"}, "no \\x1b[1mspace"),
        ({"verdicts": "none"}, "verdicts is a text and no list"),
        ({"verdicts": [{**VERDICT, "severity": "fatal"}]}, "severity of an entry of verdicts is 'fatal'"),
        ({"verdicts": [], "figures": {"all_reduce": "250"}}, "an entry of figures is a text"),
        ({"verdicts": [], "figures": {"all_reduce": 10**400}}, "an entry of figures is no number that can be true"),
        ({"verdicts": [], "idle": 1}, "idle is a number"),
    ],
)
def test_why_a_report_cannot_be_read_is_said(answer: Any, why: str) -> None:
    assert read_all({"gaudi-1": answer}) == ({}, {"gaudi-1": why})


@pytest.mark.parametrize("odd", ODD, ids=lambda value: repr(value)[:20])
def test_how_a_call_ended_is_read_of_any_answer(odd: Any) -> None:
    job = Job(("gaudi-1", "gaudi-2"))
    for answer in (odd, {"rc": odd}, {"rc": 0, "stdout": odd}, {"rc": 1, "stdout": odd, "stderr": odd}):
        kept = json.loads(json.dumps(CallFilters().filters()["call_answer"](answer), allow_nan=False))
        for each in (answer, kept):
            (result,) = job_results([job], {"gaudi-1": each, "gaudi-2": each}, {}, 5)
            assert result.why.isprintable() and result.why


@pytest.mark.parametrize("figure", ["1.2.3", "9" * 400, ".", "1e5"])
def test_a_bandwidth_that_is_no_number_is_none(figure: str) -> None:
    assert collective_result("all2all", 0, f"NW Bandwidth : {figure} GB/s").figures == {}


def test_an_odd_answer_keeps_nobody_else_from_a_passport_and_from_healing(run_module: Any, tmp_path: Path) -> None:
    draw = random.Random(8)
    odd = {f"odd-{number}": answer for number, answer in enumerate(draw.sample(mutations(), 120))}
    odd = {name: answer for name, answer in odd.items() if not read_all({name: answer})[0]}
    assert len(odd) > 50
    raw = {**odd, "good": SOUND, "bad": {**SOUND, "verdicts": [VERDICT]}}
    answers = {name: filtered(answer) for name, answer in raw.items()}
    passports = run_module(gaudi_passport, examinations=answers, folder=str(tmp_path))
    assert [name for name, found in passports["nodes"].items() if found["issued"]] == ["good"]
    assert {name for name, found in passports["nodes"].items() if found["unread"]} == set(odd)
    for name in odd:
        report = json.loads((tmp_path / f"{name}.report.json").read_text())
        assert (report["healthy"], len(report["errors"])) == (False, 1)
        assert not (tmp_path / f"{name}.passport.json").exists()
    healed = run_module(
        gaudi_healing, path=str(tmp_path / "fleet.json"), nodes=list(answers), mode="enforce", reports=answers,
        fences=answers,
    )  # fmt: skip
    assert [(each["node"], each["do"]) for each in healed["decisions"]] == [("bad", "reset")]
    assert (set(healed["unread"]), list(healed["work"])) == (set(odd), ["bad"])
