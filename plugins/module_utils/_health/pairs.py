# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""The pair search: names bad nodes and bad links among many in a bounded number of rounds.

A round is a list of jobs on disjoint nodes, which run at the same time. A job exercises the links inside of one group,
or those between two groups. It is below its floor, so it fails, when a node of it is bad or one of these links. The
search has two parts, and ``docs/operate/health.md`` has the proof:

1. Nodes. Pairs, and then each node of a pair that failed with nodes that are known to be good. A node that passes once
   is good. A node that fails with k + 1 partners is bad, as k bad links cannot explain that.
2. Links, among good nodes. One job over all of them. A group whose job failed is halved: each half, then the links
   between the halves. So each level costs at most two rounds for each bad link.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field

from .._refusal import Refusal


@dataclass(frozen=True)
class Job:
    """One test: the links inside of ``left``, or with ``right`` those between the two groups."""

    left: tuple[str, ...]
    right: tuple[str, ...] = ()

    @property
    def nodes(self) -> tuple[str, ...]:
        """Every node that takes part."""
        return self.left + self.right

    def uses(self, one: str, other: str) -> bool:
        """Whether the link between two nodes is exercised."""
        if not self.right:
            return one in self.left and other in self.left
        return (one in self.left and other in self.right) or (other in self.left and one in self.right)


@dataclass
class SearchResult:
    """What the search named. ``rounds`` is how many it took."""

    nodes: list[str] = field(default_factory=list)
    links: list[tuple[str, str]] = field(default_factory=list)
    rounds: int = 0


Search = Generator[list[Job], Sequence[bool], SearchResult]


def bound(number: int, k: int) -> int:
    """The most rounds that the search takes for ``number`` nodes and at most ``k`` bad nodes or links."""
    levels = max(number - 1, 1).bit_length()
    return _first_rounds(number, k) + 1 + 2 * k * levels


def _first_rounds(number: int, k: int) -> int:
    return k + 1 + number % 2


def search(nodes: Sequence[str], k: int = 2) -> Search:
    """Yields rounds, takes for each a list of "passed" in the order of its jobs, and returns what was found.

    Raises ``Refusal`` where no pair passes, so that no node is known to be good.
    """
    if len(set(nodes)) != len(nodes) or len(nodes) < 2:
        raise Refusal(f"{len(nodes)} nodes were given for the pair search: give two or more, each once")
    found = SearchResult()
    good = yield from _nodes(list(nodes), k, found)
    yield from _links(good, found)
    found.links.sort()
    return found


def run(nodes: Sequence[str], passes: Callable[[Job], bool], k: int = 2) -> SearchResult:
    """The whole search with a function that runs one job."""
    steps = search(nodes, k)
    try:
        jobs = next(steps)
        while True:
            jobs = steps.send([passes(job) for job in jobs])
    except StopIteration as end:
        found: SearchResult = end.value
        return found


def _nodes(nodes: list[str], k: int, found: SearchResult) -> Generator[list[Job], Sequence[bool], list[str]]:
    """The nodes that passed at least once; those that never did go into ``found``."""
    pairs = [Job((one, other)) for one, other in zip(nodes[::2], nodes[1::2])]
    results = yield pairs
    found.rounds += 1
    good = [node for job, passed in zip(pairs, results) if passed for node in job.nodes]
    if not good:
        raise Refusal(f"every one of {len(pairs)} pairs failed, so no node is known to be good: look at the fabric")
    failed: dict[str, int] = {node: 1 for job, passed in zip(pairs, results) if not passed for node in job.nodes}
    partners = {node: set(job.nodes) for job in pairs for node in job.nodes}
    if len(nodes) % 2:
        failed[nodes[-1]] = 0
    known = list(good)
    while failed:
        jobs: list[Job] = []
        taken: set[str] = set()
        for suspect in failed:
            partner = next((each for each in known if each not in taken | partners.get(suspect, set())), None)
            if partner is not None:
                taken.add(partner)
                partners.setdefault(suspect, set()).add(partner)
                jobs.append(Job((suspect, partner)))
        if not jobs:  # too few good nodes to ask more: nothing else can be said against it
            found.nodes += sorted(failed)
            break
        results = yield jobs
        found.rounds += 1
        for job, passed in zip(jobs, results):
            suspect = job.left[0]
            if passed:
                del failed[suspect]
                good.append(suspect)
                continue
            failed[suspect] += 1
            if failed[suspect] > k:
                del failed[suspect]
                found.nodes.append(suspect)
    found.nodes.sort()
    return [node for node in nodes if node in set(good)]


def _links(good: list[str], found: SearchResult) -> Generator[list[Job], Sequence[bool], None]:
    """The bad links among good nodes."""
    pending = [Job(tuple(good))] if len(good) > 1 else []
    while pending:
        failed = []
        for jobs in _rounds(pending):
            results = yield jobs
            found.rounds += 1
            failed += [job for job, passed in zip(jobs, results) if not passed]
        pending = []
        for job in failed:
            if len(job.nodes) == 2:
                found.links.append((min(job.nodes), max(job.nodes)))
            else:
                pending += _halves(job)


def _halves(job: Job) -> list[Job]:
    """The parts of a job that failed; each of its links is in exactly one of them."""
    first, second = _split(job.left)
    if not job.right:
        parts = [Job(first), Job(second), Job(first, second)]
        return [part for part in parts if len(part.nodes) > 1]
    third, fourth = _split(job.right)
    crossed = [(first, third), (second, fourth), (first, fourth), (second, third)]
    return [Job(left, right) for left, right in crossed if left and right]


def _split(nodes: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    middle = (len(nodes) + 1) // 2
    return nodes[:middle], nodes[middle:]


def _rounds(jobs: list[Job]) -> list[list[Job]]:
    """The jobs in as few rounds as taking the first that fits gives; no node is in two jobs of a round."""
    rounds: list[tuple[set[str], list[Job]]] = []
    for job in jobs:
        for busy, chosen in rounds:
            if busy.isdisjoint(job.nodes):
                busy.update(job.nodes)
                chosen.append(job)
                break
        else:
            rounds.append((set(job.nodes), [job]))
    return [chosen for _busy, chosen in rounds]
