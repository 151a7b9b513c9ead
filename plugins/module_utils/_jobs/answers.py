# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""What a node answers of a job and of itself, read on the controller: the node may answer anything."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Optional

from .._kinds import Kind, count, integer, mapping, number, path, text, texts, truth
from .._printable import printable
from .._refusal import Refusal
from .record import digest
from .rules import NAME
from .status import Status

#: A state is one word; a later version may have others than this one.
STATE = re.compile(r"[a-z]{1,32}")
_SLURM: dict[str, Kind] = {"job": count, "state": text, "reason": text, "nodes": text}


def _slurm(value: object) -> Optional[dict[str, Any]]:
    """Which job of Slurm it is; None where it is none."""
    given = mapping(value)
    found = {name: kind(given[name]) for name, kind in _SLURM.items() if name in given}
    return found if found.get("job") is not None else None


#: Fields of a job as gaudi_train_info returns it, besides its name, state and status.
_JOB: dict[str, Kind] = {
    "unit": text,
    "directory": path,
    "command": texts,
    "spec_sha256": digest,
    "active_state": text,
    "sub_state": text,
    "result": text,
    "exit_status": integer,
    "ending": text,
    "missing": texts,
    "log": texts,
    "slurm": _slurm,
}


@dataclass(frozen=True)
class JobAnswer:
    """A job as a node has it."""

    name: str
    state: str
    status: Optional[Status] = None
    ending: str = ""
    missing: tuple[str, ...] = ()
    log: tuple[str, ...] = ()
    runs_command: bool = False
    slurm: Mapping[str, Any] = field(default_factory=dict)
    """``job``, ``state``, ``reason`` and ``nodes`` of a job of Slurm; empty of others."""
    values: Mapping[str, Any] = field(default_factory=dict)
    """All that was answered, in plain values that can be shown."""

    @classmethod
    def of(cls, answer: object, node: str = "The node") -> JobAnswer:
        """From a module's answer; Refusal where that has no name or no state, a sentence about ``node``."""
        given = mapping(answer)
        name, state = given.get("name"), given.get("state")
        words = isinstance(name, str) and isinstance(state, str)
        if not words or not NAME.fullmatch(str(name)) or not STATE.fullmatch(str(state)):
            raise Refusal(
                f"{node} answers with {printable(answer, 100)} where a job with its name and state is expected: "
                "look at what answers for it (the collection's modules, Python), and run again."
            )
        known = {key: kind(given[key]) for key, kind in _JOB.items() if key in given}
        status = Status.of(given.get("status"))
        return cls(
            name=str(name),
            state=str(state),
            status=status,
            ending=known.get("ending") or "",
            missing=tuple(known.get("missing") or ()),
            log=tuple(known.get("log") or ()),
            runs_command=bool(known.get("command")),
            slurm=known.get("slurm") or {},
            values={
                "name": str(name),
                "state": str(state),
                **known,
                **({"status": None if status is None else status.as_dict()} if "status" in given else {}),
            },
        )

    def as_dict(self, log: bool = False) -> dict[str, Any]:
        """As the modules return it, without the log unless that is wanted."""
        return {key: value for key, value in self.values.items() if log or key != "log"}


def job_answers(answers: object) -> list[dict[str, Any]]:
    """The jobs that a node answers with, in plain values that can be shown; what is no job is left out."""
    found = []
    for each in answers if isinstance(answers, (list, tuple)) else ():
        try:
            found.append(JobAnswer.of(each).as_dict(log=True))
        except Refusal:
            continue
    return found


def harmless(value: object, depth: int = 32) -> Any:
    """An answer of a node with every text in it as it may be shown, and sane numbers; the ends of lines stay.

    Objects of Ansible's own, which a node cannot send, stay as they are.
    """
    if isinstance(value, str):
        return "\n".join(printable(line, 10000) for line in value.split("\n"))
    if isinstance(value, Mapping) and depth:
        return {harmless(name): harmless(each, depth - 1) for name, each in value.items()}
    if isinstance(value, (list, tuple)) and depth:
        return [harmless(each, depth - 1) for each in value]
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return number(value)
    return None if isinstance(value, (Mapping, list, tuple)) else value


# --- what a node offers a job ---


def _odd(name: str, value: object) -> Refusal:
    """A field is of another kind than expected; for use within a sentence."""
    return Refusal(f"{name} = {printable(value, 60)}")


@dataclass(frozen=True)
class Closed:
    """A device file that the job's user cannot open."""

    path: str
    owner: str
    group: str
    mode: str

    @classmethod
    def of(cls, value: object) -> Optional[Closed]:
        """From one entry; None for anything else."""
        given = mapping(value)
        found = [text(given.get(name)) for name in ("path", "owner", "group", "mode")]
        return None if None in found else cls(*(str(each) for each in found))


@dataclass(frozen=True)
class Offer:
    """What a node brings to a job; None where it does not count or is not known yet."""

    processes: int = 0
    cards: Optional[int] = None
    modules: Optional[tuple[int, ...]] = None
    held: tuple[int, ...] = ()
    uid: Optional[int] = None
    shares: str = ""

    @classmethod
    def of(cls, value: object) -> Optional[Offer]:
        """From the answer's ``offer``; None for what is none."""
        try:
            return _offer(value)
        except Refusal:
            return None


@dataclass(frozen=True)
class NodeAnswer:
    """What gaudi_train_node_info returned of a node; ``odd`` names the field that is of another kind than expected."""

    interface: str = ""
    unknown_groups: tuple[str, ...] = ()
    closed: tuple[Closed, ...] = ()
    script_missing: bool = False
    script_closed: str = ""
    missing: tuple[str, ...] = ()
    unreadable: tuple[tuple[str, str], ...] = ()
    """Paths that the job's user cannot read, each with the folder that is closed; empty where it is not there."""
    driverless: bool = False
    """The modules of the cards were asked for, and no driver runs them."""
    offer: Offer = field(default_factory=Offer)
    odd: str = ""

    @classmethod
    def of(cls, answer: object) -> NodeAnswer:
        """From the answer, of which anything may be missing."""
        try:
            return _node(answer)
        except Refusal as error:
            return cls(odd=str(error.args[0]))


def _of_kind(given: Mapping[str, Any], name: str, kind: Kind, where: str = "") -> Any:
    """A field's value, None where it is missing or null; Refusal where it is of another kind."""
    value = given.get(name)
    if value is None:
        return None
    found = kind(value)
    if found is None:
        raise _odd(where + name, value)
    return found


def _all_of(kind: Kind) -> Kind:
    """Reads a list all of whose entries are of one kind."""

    def read(value: object) -> Optional[tuple[Any, ...]]:
        found = tuple(kind(each) for each in value) if isinstance(value, (list, tuple)) else (None,)
        return None if None in found else found

    return read


def _unreadable(value: object) -> Optional[tuple[str, str]]:
    given = mapping(value)
    where, closed = path(given.get("path")), given.get("closed")
    shut = "" if closed is None else path(closed)
    return None if where is None or shut is None else (where, shut)


def _whole(value: object) -> Optional[Mapping[str, Any]]:
    return mapping(value) if isinstance(value, Mapping) else None


def _number(value: object) -> Optional[int]:
    """A number, which templates of ansible-core 2.17 may hand over as a text; "" stands for null there."""
    return count(int(value)) if isinstance(value, str) and value.isascii() and value.isdecimal() else count(value)


def _offer(value: object) -> Offer:
    if not isinstance(value, Mapping):
        if value in (None, "", [], ()):
            return Offer()
        raise _odd("offer", value)
    given = {name: each for name, each in mapping(value).items() if each != ""}
    where = "offer."
    return Offer(
        processes=_of_kind(given, "processes", _number, where) or 0,
        cards=_of_kind(given, "cards", _number, where),
        modules=_of_kind(given, "modules", _all_of(count), where),
        held=_of_kind(given, "held", _all_of(count), where) or (),
        uid=_of_kind(given, "uid", _number, where),
        shares=_of_kind(given, "shares", path, where) or "",
    )


def _node(answer: object) -> NodeAnswer:
    if not isinstance(answer, Mapping):
        if answer in (None, "", [], ()):
            return NodeAnswer()
        raise _odd("the answer", answer)
    given = mapping(answer)
    script = _of_kind(given, "script", _whole) or {}
    _of_kind(given, "modules", _all_of(count))
    return NodeAnswer(
        interface=_of_kind(given, "interface", text) or "",
        unknown_groups=_of_kind(given, "unknown_groups", _all_of(text)) or (),
        closed=_of_kind(given, "closed", _all_of(Closed.of)) or (),
        script_missing=bool(script) and not _of_kind(script, "there", truth, "script."),
        script_closed=_of_kind(script, "closed", path, "script.") or "",
        missing=_of_kind(given, "missing", _all_of(path)) or (),
        unreadable=_of_kind(given, "unreadable", _all_of(_unreadable)) or (),
        driverless="modules" in given and given["modules"] is None,
        offer=_offer(given.get("offer")),
    )
