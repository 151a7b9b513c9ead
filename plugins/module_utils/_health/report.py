# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""What a node answered, as values of known kinds: the one reader of a node's report on the controller.

Root of a node chooses every byte of its answer. An answer that cannot be read is a fault of that node's reading alone:
nothing is decided about the node, and it gets no passport. Texts are one printable line each, numbers are finite, and
lists and mappings are of bounded size.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, TypeVar

from .._printable import printable
from .._refusal import Refusal
from .actions import ACTIONS, DRAINING, ERROR, INFO, RETRY, SEVERITIES, strongest
from .verdicts import CHECK_ERROR, NODE_FAULT, USER_FAULT, Finding

#: A node has some 200 ports, and a few checks of each.
MOST_ENTRIES = 2000
MOST_HANGS = 16
LONGEST_NAME = 200
HEALING, PERSON = "healing", "person"
_KINDS = (NODE_FAULT, USER_FAULT, CHECK_ERROR)
_LARGEST = 1e15
_T = TypeVar("_T")


@dataclass(frozen=True)
class Verdict:
    """A verdict, a suspect or an error of a report. ``drains`` is worked out here, whatever the node says."""

    component: str
    kind: str
    severity: str
    action: str
    message: str
    check: str = ""
    evidence: str = ""

    @property
    def is_bad(self) -> bool:
        """Whether it is an error or worse of the node itself."""
        return self.kind == NODE_FAULT and SEVERITIES.index(self.severity) >= SEVERITIES.index(ERROR)

    @property
    def drains(self) -> bool:
        """Whether it takes the node away from jobs."""
        return self.is_bad and self.action in DRAINING

    @property
    def asks_for_a_step(self) -> bool:
        """Whether a step of healing follows from it."""
        return self.drains or (self.is_bad and self.action == RETRY)

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {**asdict(self), "drains": self.drains}


@dataclass(frozen=True)
class Fence:
    """Who took the node out of service and why. ``since`` tells one fence from another, no more."""

    by: str
    reason: str = ""
    step: str = ""
    since: float = -1.0


@dataclass(frozen=True)
class Hang:
    """What a job says of the hang that it ended with, which is its user's word: it makes a suspect at most.

    ``nodes`` are as they call themselves, and ``members`` the job's, as the inventory has them.
    """

    job: str
    kind: str
    sentence: str
    nodes: tuple[str, ...]
    members: tuple[str, ...]
    at: float


@dataclass(frozen=True)
class Report:
    """The result of ``gaudi_health_info``. ``whole`` says whether it has all that a passport asks about."""

    verdicts: tuple[Verdict, ...] = ()
    suspects: tuple[Verdict, ...] = ()
    errors: tuple[Verdict, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)
    figures: Mapping[str, float] = field(default_factory=dict)
    cards: int = 0
    idle: bool = False
    fence: Fence | None = None
    whole: bool = True
    host: str = ""
    hangs: tuple[Hang, ...] = ()

    @property
    def healthy(self) -> bool:
        """Whether no verdict is worse than a note."""
        return all(each.severity == INFO for each in self.verdicts)

    @property
    def drains(self) -> bool:
        """Whether the node is not fit for work."""
        return any(each.drains for each in self.verdicts)

    @property
    def remedy(self) -> str:
        """The most of what the verdicts ask for."""
        return strongest([each.action for each in self.verdicts])

    def as_answer(self) -> dict[str, Any]:
        """Plain data of which ``read`` makes the same report."""
        found = asdict(self)
        found.update(versions=dict(self.versions), figures=dict(self.figures))
        for name in ("verdicts", "suspects", "errors"):
            found[name] = [each.as_dict() for each in getattr(self, name)]
        found["hangs"] = [{**asdict(each), "nodes": [*each.nodes], "members": [*each.members]} for each in self.hangs]
        return found

    @property
    def is_fit_for_search(self) -> bool:
        """Whether collectives with other nodes may run: it was read, is in order, and no process holds a card."""
        return self.idle and not self.drains and not self.errors and self.cards > 0


def verdict_of(finding: Finding) -> Verdict:
    """What the controller itself found of a node, in the form of a report's entry."""
    said = printable(finding.message), printable(finding.evidence)
    return Verdict(finding.component, finding.kind, finding.severity, finding.action, said[0], finding.check, said[1])


def read(answer: Any) -> Report:
    """The report in a registered result; ``Refusal`` where it is none."""
    if not isinstance(answer, Mapping) or not answer:
        raise Refusal("no answer")
    if answer.get("unreachable") is True:
        raise Refusal("no answer")
    if isinstance(answer.get("unread"), str) and answer["unread"]:
        raise Refusal(printable(answer["unread"], 500))
    if "verdicts" not in answer:
        failed = answer.get("msg")
        raise Refusal(printable(failed, 500).rstrip(".") if isinstance(failed, str) else "no answer")
    sections = ("verdicts", "suspects", "errors")
    verdicts, suspects, errors = (_verdicts(name, answer.get(name, [])) for name in sections)
    idle = answer.get("idle", False)
    if not isinstance(idle, bool):
        raise Refusal(f"idle is {_kind(idle)}")
    return Report(
        verdicts,
        suspects,
        errors,
        _mapping("versions", answer.get("versions", {}), _text),
        _mapping("figures", answer.get("figures", {}), _number),
        _count("cards", answer.get("cards", 0)),
        idle,
        _fence(answer.get("fence")),
        answer.get("whole", True) is True and all(name in answer for name in (*sections, "versions")),
        _text("host", answer.get("host", ""))[:LONGEST_NAME],
        _hangs(answer.get("hangs", [])),
    )


def read_all(answers: Mapping[str, Any]) -> tuple[dict[str, Report], dict[str, str]]:
    """The reports by node, and why a node's cannot be read, by node."""
    reports: dict[str, Report] = {}
    unread: dict[str, str] = {}
    for node, answer in answers.items():
        try:
            reports[node] = read(answer)
        except Refusal as error:
            unread[node] = str(error).rstrip(".")
    return reports, unread


def _verdicts(name: str, value: Any) -> tuple[Verdict, ...]:
    if not isinstance(value, list):
        raise Refusal(f"{name} is {_kind(value)} and no list")
    if len(value) > MOST_ENTRIES:
        raise Refusal(f"{name} has {len(value)} entries")
    return tuple(_entry(name, each) for each in value)


def _entry(name: str, value: Any) -> Verdict:
    if not isinstance(value, Mapping):
        raise Refusal(f"an entry of {name} is {_kind(value)}")
    found = {key: _text(f"{key} of an entry of {name}", value.get(key)) for key in ("component", "message")}
    return Verdict(
        found["component"][:LONGEST_NAME],
        _one_of(f"kind of an entry of {name}", value.get("kind"), _KINDS),
        _one_of(f"severity of an entry of {name}", value.get("severity"), SEVERITIES),
        _one_of(f"action of an entry of {name}", value.get("action"), tuple(ACTIONS)),
        found["message"],
        _text(f"check of an entry of {name}", value.get("check", ""))[:LONGEST_NAME],
        _text(f"evidence of an entry of {name}", value.get("evidence", "")),
    )


def _hangs(value: Any) -> tuple[Hang, ...]:
    """What jobs say; an entry of another form is left out, as a job's user may have written it."""
    found = []
    for each in value[:MOST_HANGS] if isinstance(value, list) else ():
        with contextlib.suppress(Refusal):
            found.append(_hang(each))
    return tuple(found)


def _hang(value: Any) -> Hang:
    if not isinstance(value, Mapping):
        raise Refusal(f"a hang is {_kind(value)}")
    job, kind, sentence = (_text(f"{name} of a hang", value.get(name)) for name in ("job", "kind", "sentence"))
    nodes, members = (_names(name, value.get(name)) for name in ("nodes", "members"))
    return Hang(job[:LONGEST_NAME], kind[:LONGEST_NAME], sentence, nodes, members, _number("at", value.get("at")))


def _names(name: str, value: Any) -> tuple[str, ...]:
    if not isinstance(value, (list, tuple)):
        raise Refusal(f"{name} of a hang are {_kind(value)}")
    return tuple(_text(name, each)[:LONGEST_NAME] for each in value[:MOST_ENTRIES])


def _fence(value: Any) -> Fence | None:
    """The fence; one of another form counts as a person's, whom nobody overrules."""
    if value is None:
        return None
    if not isinstance(value, Mapping):
        return Fence(PERSON)
    reason, step, since = (value.get(name) for name in ("reason", "step", "since"))
    try:
        moment = _number("since", since)
    except Refusal:
        moment = -1.0
    return Fence(
        HEALING if value.get("by") == HEALING else PERSON,
        printable(reason) if isinstance(reason, str) else "",
        printable(step, LONGEST_NAME) if isinstance(step, str) else "",
        moment,
    )


def _mapping(name: str, value: Any, entry: Callable[[str, Any], _T]) -> dict[str, _T]:
    if not isinstance(value, Mapping):
        raise Refusal(f"{name} is {_kind(value)}")
    if len(value) > MOST_ENTRIES:
        raise Refusal(f"{name} has {len(value)} entries")
    found: dict[str, _T] = {}
    for key, each in value.items():
        found[_text(f"a name in {name}", key)[:LONGEST_NAME]] = entry(f"an entry of {name}", each)
    return found


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise Refusal(f"{name} is {_kind(value)}")
    return printable(value)


def _one_of(name: str, value: Any, known: tuple[str, ...]) -> str:
    if not isinstance(value, str) or value not in known:
        raise Refusal(f"{name} is {printable(repr(value), 60) if isinstance(value, str) else _kind(value)}")
    return str(value)


def _number(name: str, value: Any) -> float:
    """A finite number; a boolean, a text and a number of hundreds of digits are none."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise Refusal(f"{name} is {_kind(value)}")
    if not -_LARGEST <= value <= _LARGEST or not math.isfinite(value):
        raise Refusal(f"{name} is no number that can be true")
    return float(value)


def _count(name: str, value: Any) -> int:
    number = _number(name, value)
    if number < 0 or number != int(number):
        raise Refusal(f"{name} is no number that can be true")
    return int(number)


def _kind(value: Any) -> str:
    names = ((bool, "a boolean"), (str, "a text"), (int, "a number"), (float, "a number"), (list, "a list"))
    if value is None:
        return "missing"
    return next((name for kind, name in names if isinstance(value, kind)), "a mapping")
