"""Which ranks held up a job, from the time by which each set of ranks was slower than all others.

A set has the time of those steps in which exactly its ranks were the slowest: so much shorter the steps are if all of
them work as fast as the next one does, and not at all if one of them stays as it is. Without the ranks of a group a job
gains the time of all sets that are inside of the group.

In any step one rank is the slowest. Ranks are named that are it more often, or by more, than it falls to everyone; and
no more than half of them, as the others are what they are compared with.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gaudi3_scale.throughput.goodput import whole

Ranks = tuple[int, ...]
HALF = 0.5
"""A smaller group is preferred to a larger one if it has this share of the larger one's time."""
TIMES = 3.0
"""As many times what falls to a rank that is among the fastest quarter."""
MOST_RANKS = 2**17
"""Of a job; ranks beyond are those of a file that is none of a job's."""
MOST_SETS, MOST_GROUPS = 1000, 100
"""That are looked at: those with most time."""


def ranks_of(spans: Sequence[Sequence[int]]) -> Ranks:
    """The ranks of spans, each with its first and last one; ValueError or TypeError where no job has them."""
    found: list[int] = []
    for given in spans:
        first, last = (whole(rank) for rank in given)
        if not 0 <= first <= last < MOST_RANKS or len(found) + last - first >= MOST_RANKS:
            raise ValueError("no job has these ranks")
        found += range(first, last + 1)
    return tuple(found)


def slow_groups(
    held: Mapping[Ranks, float], world_size: int, nodes: Sequence[Ranks], least: float
) -> list[tuple[Ranks, list[Ranks]]]:
    """Groups of ranks that held up a job for at least so long, one after the other, each with the sets it adds.

    A group is a rank, a node or a set. A set counts once, with the first group with which all of its ranks are found.

    >>> slow_groups({(3,): 9.0, (1, 3): 1.0, (0,): 0.1, (0, 2): 4.0}, 8, [], 0.5)
    [((3,), [(3,)]), ((0, 2), [(0,), (0, 2)]), ((1,), [(1, 3)])]
    """
    left = {ranks: held[ranks] for ranks in sorted(held, key=held.__getitem__, reverse=True)[:MOST_SETS]}
    single = sorted(held.get((rank,), 0.0) for rank in range(world_size))
    usual = TIMES * single[(world_size - 1) // 4] if single else 0.0
    candidates = _candidates(left, [node for node in nodes if 0 < len(node) <= world_size // 2])
    gone: set[int] = set()
    found = []
    while left:
        gains = {
            group: _gain(left, gone.union(group))
            for group in candidates
            if len(gone.union(group)) <= max(1, world_size // 2)
        }
        gains = {group: gain for group, gain in gains.items() if gain >= max(least, usual * len(group)) and gain > 0}
        if not gains:
            break
        most = max(gains.values())
        group = min((each for each in gains if gains[each] >= HALF * most), key=lambda each: (len(each), -gains[each]))
        gone.update(group)
        sets = sorted(ranks for ranks in left if gone.issuperset(ranks))
        for ranks in sets:
            del left[ranks]
        found.append((group, sets))
    return found


def _gain(held: Mapping[Ranks, float], ranks: set[int]) -> float:
    return sum(time for each, time in held.items() if ranks.issuperset(each))


def _candidates(held: Mapping[Ranks, float], nodes: Sequence[Ranks]) -> list[Ranks]:
    """Ranks by the time of the sets that they are in, sets by theirs, and nodes."""
    among: dict[int, float] = {}
    for ranks, time in held.items():
        for rank in ranks:
            among[rank] = among.get(rank, 0.0) + time
    most = sorted(among, key=among.__getitem__, reverse=True)[:MOST_GROUPS]
    return list(dict.fromkeys([*((rank,) for rank in most), *nodes, *list(held)[:MOST_GROUPS]]))
