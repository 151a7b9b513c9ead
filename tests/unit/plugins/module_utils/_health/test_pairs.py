"""The pair search: every set of up to two faults is named exactly, within the stated rounds."""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Iterable
from math import ceil, log
from pathlib import Path

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._health.pairs import Job, SearchResult, bound, run, search
from ansible_collections.gaudi3.scale.plugins.module_utils._refusal import Refusal

ROOT = Path(__file__).resolve().parents[5]
Fault = tuple[str, ...]


def names(number: int) -> list[str]:
    return [f"node-{each:04}" for each in range(number)]


def find(number: int, faults: Iterable[Fault], k: int = 2) -> SearchResult:
    """Search among ``number`` nodes; a fault of one name is a bad node, of two a bad link."""
    nodes = {fault[0] for fault in faults if len(fault) == 1}
    links = [fault for fault in faults if len(fault) == 2]
    steps = search(names(number), k)
    jobs = next(steps)
    while True:
        taken = [node for job in jobs for node in job.nodes]
        assert len(taken) == len(set(taken)), "a node is in two jobs of a round"
        results = [nodes.isdisjoint(job.nodes) and not any(job.uses(*link) for link in links) for job in jobs]
        try:
            jobs = steps.send(results)
        except StopIteration as end:
            found: SearchResult = end.value
            return found


def expected(faults: Iterable[Fault]) -> tuple[list[str], list[Fault]]:
    """What has to be named: links of a bad node cannot be told from it."""
    nodes = sorted(fault[0] for fault in faults if len(fault) == 1)
    return nodes, sorted(fault for fault in faults if len(fault) == 2 and not set(nodes) & set(fault))


def check(number: int, faults: tuple[Fault, ...]) -> int:
    found = find(number, faults)
    assert (found.nodes, found.links) == expected(faults), faults
    assert found.rounds <= bound(number, 2), (number, faults)
    return found.rounds


@pytest.mark.parametrize("number", [8, 9, 10])
def test_every_set_of_two_faults_is_named(number: int) -> None:
    every: list[Fault] = [(node,) for node in names(number)]
    every += itertools.combinations(names(number), 2)
    for count in (0, 1, 2):
        for faults in itertools.combinations(every, count):
            check(number, faults)


def drawn(number: int, draw: random.Random) -> tuple[Fault, ...]:
    return tuple(tuple(sorted(draw.sample(names(number), draw.choice((1, 2, 2))))) for _ in range(2))


def worst(number: int, cases: int) -> int:
    """The most rounds over seeded sets of two faults, and over sets that are hard: links that share a node."""
    draw = random.Random(number)
    hard: list[tuple[Fault, ...]] = [(("node-0000", names(number)[-1]), ("node-0001", names(number)[-1]))]
    return max(check(number, faults) for faults in hard + [drawn(number, draw) for _ in range(cases)])


def random_pairs(number: int) -> int:
    """Rounds of random pairs after which a bad link was used with 99 %: each round uses it with 1 / (n - 1)."""
    return ceil(log(0.01) / log(1 - 1 / (number - 1)))


@pytest.mark.parametrize(("number", "cases"), [(64, 600), (256, 150), (1024, 40)])
def test_the_published_rounds(number: int, cases: int) -> None:
    """docs/operate/health.md has a row for each size: bound, most seen, all pairs, random pairs."""
    page = (ROOT / "docs/operate/health.md").read_text()
    row = re.search(rf"^\| {number} \| (\d+) \| (\d+) \| (\d+) \| (\d+) \|$", page, re.M)
    assert row is not None
    assert [int(cell) for cell in row.groups()] == [
        bound(number, 2), worst(number, cases), number - 1, random_pairs(number),
    ]  # fmt: skip


def test_a_sound_fabric_takes_two_rounds() -> None:
    assert find(64, ()) == SearchResult([], [], 2)
    assert find(1024, ()).rounds == 2


def test_rounds_are_streamed() -> None:
    """Each round is known before the next one runs, and is disjoint pairs first."""
    steps = search(names(6))
    assert next(steps) == [Job(tuple(pair)) for pair in (names(6)[:2], names(6)[2:4], names(6)[4:])]


@pytest.mark.parametrize("nodes", [[], ["one"], ["same", "same"]])
def test_too_few_nodes_are_refused(nodes: list[str]) -> None:
    with pytest.raises(Refusal, match="give two or more, each once"):
        run(nodes, lambda job: True)


def test_a_fabric_where_nothing_passes_is_refused() -> None:
    with pytest.raises(Refusal, match="every one of 4 pairs failed"):
        run(names(8), lambda job: False)
