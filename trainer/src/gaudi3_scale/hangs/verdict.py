"""What was found, as one sentence and as the entry `hang` of status.json."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gaudi3_scale.hangs import ring
from gaudi3_scale.hangs.compare import Evidence, HangFinding, compare
from gaudi3_scale.hangs.view import Call

UNNAMED = "undefined"
"""What torch calls a group that nobody named."""
SHOWN = 8
"""Ranks that a sentence lists one by one."""


@dataclass(frozen=True)
class Verdict:
    """Who held up a job."""

    kind: str
    """One of those of `compare.HangFinding`."""
    sentence: str
    certain: bool
    ranks: tuple[int, ...] = ()
    """Empty where nobody is named."""
    nodes: tuple[str, ...] = ()
    """Those of the ranks, as they call themselves."""

    def status(self) -> dict[str, Any]:
        """The entry `hang` of status.json."""
        return {
            "sentence": self.sentence,
            "kind": self.kind,
            "certain": self.certain,
            "ranks": list(self.ranks[:64]),
            "nodes": list(self.nodes[:16]),
        }


def verdict_of(evidence: Evidence, hosts: Mapping[int, str]) -> Verdict | None:
    """Compare, and put it into a sentence; `hosts` has the node of each rank. None if it is no hang."""
    finding = compare(evidence)
    if finding is None:
        return None
    sentence = _sentence(finding, evidence, hosts)
    if finding.ranks and not finding.certain:
        sentence = f"Probably {sentence[0].lower()}{sentence[1:]}"
    nodes = tuple(dict.fromkeys(hosts[rank] for rank in finding.ranks if rank in hosts))
    return Verdict(finding.kind, sentence, finding.certain, finding.ranks, nodes)


def _sentence(finding: HangFinding, evidence: Evidence, hosts: Mapping[int, str]) -> str:
    call = _call(finding.call, evidence) if finding.call is not None else "a collective"
    waiting = _waiting(finding)
    if not finding.ranks:
        return _nobody(finding, evidence, call, hosts)
    who = _who(finding.ranks, hosts)
    one = len(finding.ranks) == 1
    if finding.kind == "dead node":
        nodes = tuple(dict.fromkeys(hosts.get(rank, "?") for rank in finding.ranks))
        silent = f"{'Node' if len(nodes) == 1 else 'Nodes'} {_list(nodes)} ({_ranks(finding.ranks)})"
        what = "is silent: neither its launcher nor its processes answer" if len(nodes) == 1 else (
            "are silent: neither their launchers nor their processes answer"
        )  # fmt: skip
        return f"{silent} {what}; {waiting} in {call}."
    view = evidence.views.get(finding.ranks[0])
    if finding.theirs is not None and view is not None:
        return _departed(finding, evidence, who, call, waiting)
    if view is None:
        return f"{who} {'has' if one else 'have'} noted nothing; {waiting} in {call}."
    views = [evidence.views[rank] for rank in finding.ranks]
    phases = list(dict.fromkeys(each.phase for each in views))
    for_seconds = f"for {min(each.seconds for each in views):.0f} s"
    if finding.kind == "stopped":
        missed = finding.call is not None and evidence.count(finding.ranks[0], finding.call.group) < finding.call.number
        lacks = f"did not enter {call}" if missed else f"{'does' if one else 'do'} not go on in {call}"
        which = "its process is" if one else "their processes are"
        return f"{who} {lacks}; {which} stopped (by SIGSTOP or a debugger) in {_list(phases)} {for_seconds}; {waiting}."
    stands = f"it has stood in {_list(phases)}" if one else f"they have stood in {_list(phases)}"
    return f"{who} did not enter {call}; {stands} {for_seconds}; {waiting}."


def _departed(finding: HangFinding, evidence: Evidence, who: str, call: str, waiting: str) -> str:
    assert finding.theirs is not None
    theirs = _call(finding.theirs, evidence)
    if finding.kind == "shape":
        return f"{who} entered {theirs}, where the others entered it with {_shape(finding.call)}; {waiting}."
    why = {
        "skipped": "skipped that one",
        "order": "calls the two in the other order",
        "extra": "makes a call that the others do not make",
        "sequence": "skipped that one, or calls it later",
    }[finding.kind]
    it = "it" if len(finding.ranks) == 1 else "they"
    why = why if it == "it" else why.replace("calls", "call").replace("makes", "make")
    return f"{who} entered {theirs}, where the others entered {call}: {it} {why}; {waiting}."


def _nobody(finding: HangFinding, evidence: Evidence, call: str, hosts: Mapping[int, str]) -> str:
    number = evidence.world_size
    if finding.kind == "wedge":
        return (
            f"All {number} ranks entered {call}, and it does not come back: no rank is at fault by what is known; "
            "look at the ports and the cards."
        )
    if finding.kind == "slow":
        late = "some ranks are behind the others, but moved a moment ago"
        return f"Nobody is named: {late}, so that they are slow rather than stuck; the others wait in {call}."
    if finding.kind == "sequence":
        return f"Nobody is named: the ranks do not agree on {call}, and which of them are right is not known."
    if finding.silent:
        silent = _who(finding.silent, hosts)
        return (
            f"Nobody is named: nothing is known of {silent[0].lower()}{silent[1:]}, and other ranks may be late, too; "
            f"the others wait in {call}."
        )
    phases = sorted({view.phase for view in evidence.views.values()})
    return f"Nobody is named: the ranks stand in {_list(phases)}, and the last collective that most entered was {call}."


def _call(call: Call, evidence: Evidence) -> str:
    """all_reduce 4711 of shape 1024x4096, bfloat16 (group mesh_dp)."""
    name = evidence.groups[call.group].name if call.group in evidence.groups else call.group
    group = "" if name in ("all", UNNAMED) else f" in group {name}"
    if call.operation == ring.OPERATIONS[ring.GRADIENTS]:
        elements = call.shape[0] if call.shape else 0
        return f"the all_reduce of its gradients, call {call.number} ({elements} elements)"
    shape = f" of {_shape(call)}" if call.dtype else ""
    return f"{call.operation} {call.number}{shape}{group}"


def _shape(call: Call | None) -> str:
    assert call is not None
    return f"shape [{', '.join(map(str, call.shape))}] {call.dtype}"


def _waiting(finding: HangFinding) -> str:
    if finding.waiting == 1:
        return "the other rank waits"
    return f"the other {finding.waiting} ranks wait"


def _who(ranks: Sequence[int], hosts: Mapping[int, str]) -> str:
    nodes = list(dict.fromkeys(hosts[rank] for rank in ranks if rank in hosts))
    where = f" on {_list(nodes[:SHOWN])}" if nodes else ""
    said = _ranks(ranks)
    return f"{said[0].upper()}{said[1:]}{where}"


def _ranks(ranks: Sequence[int]) -> str:
    if len(ranks) == 1:
        return f"rank {ranks[0]}"
    runs = ring.spans(ranks)
    shown = [str(first) if first == last else f"{first} to {last}" for first, last in runs[:SHOWN]]
    return f"ranks {_list(shown)}" + (" and more" if len(runs) > SHOWN else "")


def _list(items: Sequence[str]) -> str:
    items = list(items)
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}"
