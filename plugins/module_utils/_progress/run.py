# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""A run of a playbook as few lines: one for each phase and group of hosts, and what failed repeated at the end."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Optional

from .failures import Failure, first_lines, gathered, last_lines
from .history import Past, Phase, left, usual
from .screen import clock, folded, is_command, roughly

CONTROLLER = "controller"
#: The groups that are named first, whatever others a host is in.
_FIRST = ("gaudi", "monitoring")
#: Playbooks that the phases begin with: what they do belongs to the phase behind them.
_CHECKS = "check_"
#: A phase that takes less is not announced.
_SHORT = 20.0
_INDENT = " " * 12
#: Lines with the names of tasks that changed something, of a phase and a group.
_NAMED = 4


@dataclass(frozen=True)
class Line:
    """A line for the screen, and what it is: ``ok``, ``changed``, ``failed`` or ``said``."""

    text: str
    kind: str = "ok"


def phase_of(play_file: str, main_file: str, play: str) -> str:
    """The phase that a play belongs to: the playbook that another one imports it from, else the play itself.

    Empty for the checks that a phase begins with.
    """
    stem = os.path.splitext(os.path.basename(play_file))[0]
    if not play_file or play_file == main_file:
        return play
    return "" if stem.startswith(_CHECKS) else stem


def group_of(host: str, groups: Mapping[str, Sequence[str]]) -> str:
    """The group that a host is counted in."""
    if host == "localhost":
        return CONTROLLER
    named = sorted(name for name in groups if name not in ("all", "ungrouped") and host in groups[name])
    return next((name for name in _FIRST if name in named), named[0] if named else host)


@dataclass
class _Group:
    """The hosts of a phase that are in the same group."""

    hosts: dict[str, None] = field(default_factory=dict)
    changed: dict[str, dict[str, None]] = field(default_factory=dict)
    failed: dict[str, None] = field(default_factory=dict)
    silent: dict[str, None] = field(default_factory=dict)
    passed: dict[str, None] = field(default_factory=dict)
    """Hosts that do not answer, where the playbook goes on with them."""
    last: float = 0.0

    def absorb(self, other: _Group) -> None:
        for name in ("hosts", "failed", "silent", "passed"):
            getattr(self, name).update(getattr(other, name))
        for task, hosts in other.changed.items():
            self.changed.setdefault(task, {}).update(hosts)
        self.last = max(self.last, other.last)

    def what(self, predicts: bool) -> str:
        """What became of the hosts."""
        changed = {host for hosts in self.changed.values() for host in hosts}
        does = "would change" if predicts else "changed"
        passed = set(self.passed) - set(self.failed) - set(self.silent)
        counts = (
            *((changed, does), (self.failed, "failed"), (self.silent, "unreachable")),
            (passed, "unreachable (ignored)"),
        )
        said = [f"{len(hosts)} {word}" for hosts, word in counts if hosts]
        if said:
            return ", ".join(said)
        return "nothing to change"


@dataclass
class _Phase:
    name: str
    begun: float
    groups: dict[str, _Group] = field(default_factory=dict)
    announced: bool = False
    asked: bool = False
    """Whether a task of its own ran, and not the checks before it alone."""

    def group(self, name: str) -> _Group:
        return self.groups.setdefault(name, _Group())

    def absorb(self, other: _Phase) -> None:
        for name, group in other.groups.items():
            self.group(name).absorb(group)

    def changes(self) -> bool:
        return any(group.changed for group in self.groups.values())

    def fails(self) -> bool:
        return any(group.failed or group.silent for group in self.groups.values())


class Run:
    """Takes what happens in a run, in its order, and returns the lines to show for it.

    Times are seconds of a clock that never goes back.
    """

    def __init__(
        self, begun: float, columns: int, predicts: bool = False, what: str = "", past: Sequence[Past] = (),
        names: bool = True,
        partial: bool = False,
    ) -> None:  # fmt: skip
        self.columns = columns
        self._begun = begun
        self._predicts = predicts
        self._what = what
        self._past = list(past)
        self._names = names
        self._partial = partial
        self._group_of: dict[str, str] = {}
        self._hosts: set[str] = set()
        self._current: Optional[_Phase] = None
        self._checks: Optional[_Phase] = None
        self._ended: list[Phase] = []
        self._failures: list[Failure] = []
        self._passed: list[Failure] = []
        self._changes: set[tuple[str, str, str]] = set()
        self._next: list[str] = []
        self._done = False

    def play(self, now: float, phase: str, hosts: Sequence[str], groups: Mapping[str, Sequence[str]]) -> list[Line]:
        """A play begins, of a phase (``phase_of``) and on these hosts."""
        lines: list[Line] = []
        if not phase:
            self._checks = self._checks or _Phase("", now)
        elif self._current is not None and self._current.name == phase:
            if self._checks is not None:
                self._current.absorb(self._checks)
        else:
            begun = self._checks.begun if self._checks is not None else now
            lines = self._close(begun)
            self._current = self._checks or _Phase(phase, now)
            self._current.name = phase
        if phase:
            self._checks = None
        for host in hosts:
            self._group_of.setdefault(host, group_of(host, groups))
            if phase:
                self._hosts.add(host)
                self._open().group(self._group_of[host]).hosts.setdefault(host)
        return lines

    def _open(self) -> _Phase:
        found = self._checks or self._current
        if found is None:
            found = self._current = _Phase("", self._begun)
        return found

    def task(self, now: float, chosen: bool = True) -> list[Line]:
        """A task begins: a phase that takes long is announced by its first. ``chosen`` is that of ``result``."""
        phase = self._open()
        if phase.announced or not phase.name or (self._partial and not chosen):
            return []
        phase.announced = True
        before = usual(self._past, self._what, self._ended, phase.name)
        # Of a first run nothing is known; of one that goes as none before it, the phases may be short.
        known = any(run.what == self._what for run in self._past)
        if before < _SHORT if before is not None else known:
            return []
        long = f"usually {roughly(before)}" if before is not None else ""
        said = "; ".join(each for each in (long, self._left(now, phase)) if each)
        return [Line(f"{phase.name} ...{f' ({said})' if said else ''}")]

    def still(self, now: float, task: str, phases: Sequence[str]) -> list[str]:
        """What is being done and how far the run is, of ``phases`` in all, for a reader who sees nothing else."""
        phase = self._open()
        number = f" ({phases.index(phase.name) + 1} of {len(phases)})" if phase.name in phases else ""
        times = ", ".join(each for each in (clock(now - phase.begun), self._left(now, phase)) if each)
        where = f"{phase.name}{number}: " if phase.name else ""
        return folded(f"{where}{task}, {times}", self.columns, _INDENT, _INDENT)

    def _left(self, now: float, phase: _Phase) -> str:
        """The time that is left, where earlier runs say so."""
        found = left(self._past, self._what, self._ended, phase.name, now - phase.begun)
        if found is None:
            return ""
        least, most = roughly(found.least), roughly(found.most)
        near = found.most <= 1.5 * found.least + 10
        return f"about {most} left" if near or least == most else f"{least} to {most} left"

    def result(self, now: float, host: str, task: str, changed: bool, chosen: bool = True) -> None:
        """A task ended well on a host, or was skipped; ``chosen`` unless it runs whatever the user leaves out."""
        group = self._of(host)
        group.last = now
        self._open().asked |= self._checks is None
        self._done |= self._checks is None and chosen
        if changed:
            group.changed.setdefault(task, {}).setdefault(host)
            self._changes.add((self._open().name, task, host))

    def _of(self, host: str) -> _Group:
        group = self._open().group(self._group_of.get(host, CONTROLLER if host == "localhost" else host))
        group.hosts.setdefault(host)
        return group

    def passed(self, now: float, failure: Failure) -> None:
        """A host does not answer, and the playbook goes on with it."""
        self._of(failure.host).passed.setdefault(failure.host)
        self.result(now, failure.host, "", False)
        self._passed.append(replace(failure, phase=self._open().name))

    def _causes(self) -> list[Failure]:
        """Why hosts do not answer that the playbook went on with, where it failed for their silence later on."""
        blamed = {
            each.phase
            for each in self._failures
            if any(one.phase == each.phase and each.is_about(one.host) for one in self._passed)
        }
        return [each for each in self._passed if each.phase in blamed]

    def failed(self, now: float, failure: Failure) -> list[Line]:
        """A task failed on a host, or the host does not answer. The same of further hosts is shown at the end."""
        group = self._of(failure.host)
        (group.failed if failure.cause is None else group.silent).setdefault(failure.host)
        group.last = now
        whole = replace(failure, phase=self._open().name)
        known = any(each.kind == whole.kind for each in self._failures)
        self._failures.append(whole)
        return [] if known else [Line(text, "failed") for text in first_lines(whole, self.columns)]

    def said(self, lines: Sequence[str]) -> list[Line]:
        """What the playbook tells its user. The commands that it names last are shown when the run has ended."""
        before, self._next = self._next, []
        at = len(lines)
        while at and is_command(lines[at - 1]):
            at -= 1
        if 0 < at < len(lines) and lines[at - 1].endswith(":"):
            lines, self._next = lines[: at - 1], list(lines[at - 1 :])
        return [Line(text, "said") for line in (*before, *lines) for text in self._said(line)]

    def _said(self, line: str) -> list[str]:
        indent = line[: len(line) - len(line.lstrip())]
        return [line] if is_command(line) else folded(line, self.columns, indent, indent + "  ")

    def _close(self, now: float) -> list[Line]:
        """The lines of the phase that ends."""
        phase, self._current = self._current, None
        if phase is None:
            return []
        self._ended.append(Phase(phase.name, max(0.0, now - phase.begun), phase.changes()))
        if self._partial and not (phase.asked or phase.changes() or phase.fails()):
            return []
        order = sorted(phase.groups, key=lambda name: (name == CONTROLLER, name not in _FIRST, name))
        shown = [name for name in order if name != CONTROLLER or phase.groups[name].what(False)[0].isdigit()]
        rows: list[list[str]] = []
        for name in shown or order[:1]:
            # Groups in which nothing was done share a line.
            last = phase.groups[rows[-1][0]] if rows else None
            what = phase.groups[name].what(self._predicts)
            same = last is not None and what.startswith("nothing") and what == last.what(self._predicts)
            rows = [*rows[:-1], [*rows[-1], name]] if same else [*rows, [name]]
        lines: list[Line] = []
        for number, names in enumerate(rows):
            lines += self._group_lines(phase, names, "" if number else phase.name)
        return lines

    def _group_lines(self, phase: _Phase, names: Sequence[str], label: str) -> list[Line]:
        groups = [phase.groups[name] for name in names]
        group, last = groups[0], max(each.last for each in groups)
        who = ", ".join(
            name if name in (CONTROLLER, *each.hosts) else f"{name} ({len(each.hosts)})"
            for name, each in zip(names, groups)
        )
        took = clock(last - phase.begun) if last else ""
        row = f"{who:<26} {group.what(self._predicts):<24} {took:>8}".rstrip()
        if len(_INDENT + row) > self.columns:
            row = " ".join(row.split())
        kind = "failed" if group.failed or group.silent else "changed" if group.changed else "ok"
        if len(label) < len(_INDENT):
            lines = [Line(f"{label:<{len(_INDENT)}}{row}", kind)]
        else:
            # A play of a playbook that imports none has a long name.
            lines = [*(Line(each, kind) for each in folded(label, self.columns)), Line(_INDENT + row, kind)]
        if group.changed and self._names:
            lines += [Line(each, kind) for each in self._named(group)]
        return lines

    def _named(self, group: _Group) -> list[str]:
        """The tasks that changed something, in so few lines that a first run stays readable."""
        tasks = [
            task if len(hosts) == len(group.hosts) else f"{task} ({len(hosts)} of {len(group.hosts)})"
            for task, hosts in group.changed.items()
        ]
        for number in range(len(tasks), 0, -1):
            rest = f"; and {len(tasks) - number} more" if number < len(tasks) else ""
            lines = folded("; ".join(tasks[:number]) + rest, self.columns, _INDENT, _INDENT)
            if len(lines) <= _NAMED:
                break
        return lines

    @property
    def changes(self) -> int:
        """What was changed so far, or would be."""
        return len(self._changes)

    def end(
        self, now: float, failed: Sequence[str], again: Optional[str], really: Optional[str], earlier: int = 0,
        nothing: Sequence[str] = (), given: Sequence[str] = (),
    ) -> list[Line]:  # fmt: skip
        """The run ends, with these hosts failed. ``again`` is its command, ``really`` that after a prediction.

        ``earlier`` counts the changes of playbooks before it, to which that command belongs too. ``nothing`` is said
        where no task was chosen. ``given`` names the variables of that command.
        """
        lines = self._end_phase(now)
        then = [Line(each, "said") for each in self._next]
        hosts = self._hosts - {"localhost"}
        took = clock(now - self._begun)
        if not failed:
            changes = self.changes
            if self._partial and not self._done and not changes:
                return [*lines, *then, *(Line(text, "said") for line in nothing for text in self._said(line))]
            counted = f"{changes} change{'s' if changes != 1 else ''}" if changes else "no change"
            of = (f"{len(hosts)} host{'s' if len(hosts) != 1 else ''}, " if hosts else "") + counted
            if not self._predicts:
                return [*lines, Line(f"Finished in {took}: {of}."), *then]
            lines += [*then, Line(f"Predicted in {took}: {of} to make.")]
            return lines + (
                [Line("Next, to make them:"), Line(f"  {really}")] if really and (changes or earlier) else []
            )
        lines += [*then, Line(f"Stopped after {took}. What failed:", "failed")]
        for group in gathered([*self._causes(), *self._failures]):
            lines += [Line(text, "failed") for text in last_lines(group, self.columns)]
        said = " ".join(text for each in self._failures for text in each.lines)
        wrong = next((name for name in given if re.search(rf"\b{name}\b", said)), "")
        when = f"Next, when {wrong} in it is put right" if wrong else "Next, when that is mended"
        told = when + (":" if again else ", run the same command again.")
        return [*lines, Line(told), *([Line(f"  {again}")] if again else [])]

    def _end_phase(self, now: float) -> list[Line]:
        checks, self._checks = self._checks, None
        if checks is None:
            return self._close(now)
        lines = self._close(checks.begun)
        if checks.fails() or checks.changes():
            checks.name = "checks"
            self._current = checks
            lines += self._close(now)
        return lines

    @property
    def past(self) -> Optional[Past]:
        """This run, as later ones estimate by it; None where nothing was done."""
        return Past(self._what, tuple(self._ended)) if self._ended and (self._done or not self._partial) else None
