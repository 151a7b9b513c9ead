"""Who is named for a hang, by made notes of each kind, with the exact sentence."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from gaudi3_scale.hangs import ring
from gaudi3_scale.hangs.compare import Evidence
from gaudi3_scale.hangs.verdict import Verdict, verdict_of
from gaudi3_scale.hangs.view import Call, GroupView, NodeView, View, parsed, plain

A, B, C = ("all_reduce", (7,), "float32"), ("broadcast", (3,), "float32"), ("all_gather", (4, 8), "bfloat16")
GRADIENTS = (ring.OPERATIONS[ring.GRADIENTS], (1000,), "float32")
Kind = tuple[str, tuple[int, ...], str]


def rank(
    number: int,
    calls: Sequence[Kind],
    phase: str = "forward",
    seconds: float = 41.0,
    end: str = "",
    process: str = "running",
    group: str = "all",
    more: Sequence[tuple[str, Kind]] = (),
    state: int = ring.OPEN,
) -> View:
    """A rank that made these calls, a second apart, and stands in a phase since the last one."""
    every = [*((group, call) for call in calls), *more]
    counts: dict[str, int] = {}
    made = []
    for place, (name, (operation, shape, dtype)) in enumerate(every):
        counts[name] = counts.get(name, 0) + 1
        last = place == len(every) - 1
        age = seconds + len(every) - 1 - place
        made.append(Call(name, counts[name], operation, shape, dtype, age, state if last else ring.RETURNED))
    return View(number, phase, seconds, tuple(made), process, end, counts)


def waits(number: int, calls: Sequence[Kind], **named: object) -> View:
    """A rank whose time limit has passed."""
    return rank(number, calls, end="timed out", **named)  # type: ignore[arg-type]


def judged(*views: View, world: int | None = None, silent: tuple[int, ...] = (), local: int = 1) -> Verdict | None:
    """What is said of these ranks, each on a node of its own."""
    size = world or len(views)
    names = {call.group for view in views for call in view.calls} | {"all"}
    groups = {name: GroupView(name, frozenset(range(size))) for name in names}
    hosts = {number: f"gaudi-{number // local}" for number in range(size)}
    return verdict_of(Evidence(size, {view.rank: view for view in views}, groups, silent), hosts)


STEPS = [A, B, GRADIENTS] * 4
TABLE = {
    "loader": (
        (waits(0, [*STEPS, A]), rank(1, STEPS, "dataloader.next", 42), waits(2, [*STEPS, A])),
        ("loader", True, (1,)),
        "Rank 1 on gaudi-1 did not enter all_reduce 13 of shape [7] float32; it has stood in dataloader.next for 42 s; "
        "the other 2 ranks wait.",
    ),
    "checkpoint": (
        (waits(0, [*STEPS, C]), rank(1, STEPS, "checkpoint", 60)),
        ("checkpoint", True, (1,)),
        "Rank 1 on gaudi-1 did not enter all_gather 13 of shape [4, 8] bfloat16; it has stood in checkpoint for 60 s; "
        "the other rank waits.",
    ),
    "backward": (
        (waits(0, [*STEPS, A, B, GRADIENTS]), rank(1, [*STEPS, A, B], "backward")),
        ("late", True, (1,)),
        "Rank 1 on gaudi-1 did not enter the all_reduce of its gradients, call 15 (1000 elements); it has stood in "
        "backward for 41 s; the other rank waits.",
    ),
    "two are late": (
        (waits(0, [*STEPS, A]), rank(1, STEPS, "dataloader.next", 43), rank(2, STEPS, "dataloader.next", 42)),
        ("loader", True, (1, 2)),
        "Ranks 1 to 2 on gaudi-1 and gaudi-2 did not enter all_reduce 13 of shape [7] float32; they have stood in "
        "dataloader.next for 42 s; the other rank waits.",
    ),
    "stopped": (
        (waits(0, [*STEPS, A]), rank(1, STEPS, "forward", 42, process="stopped"), waits(2, [*STEPS, A])),
        ("stopped", True, (1,)),
        "Rank 1 on gaudi-1 did not enter all_reduce 13 of shape [7] float32; its process is stopped (by SIGSTOP or a "
        "debugger) in forward for 42 s; the other 2 ranks wait.",
    ),
    "stopped inside": (
        (waits(0, [*STEPS, A]), rank(1, [*STEPS, A], "forward", process="stopped")),
        ("stopped", True, (1,)),
        "Rank 1 on gaudi-1 does not go on in all_reduce 13 of shape [7] float32; its process is stopped (by SIGSTOP or "
        "a debugger) in forward for 41 s; the other rank waits.",
    ),
    "skipped or swapped": (
        (waits(0, [*STEPS, A]), waits(1, [*STEPS, B]), waits(2, [*STEPS, A])),
        ("sequence", True, (1,)),
        "Rank 1 on gaudi-1 entered broadcast 13 of shape [3] float32, where the others entered all_reduce 13 of shape "
        "[7] float32: it skipped that one, or calls it later; the other 2 ranks wait.",
    ),
    "skipped": (
        (waits(0, [*STEPS, A]), waits(1, [*STEPS, B, GRADIENTS]), waits(2, [*STEPS, A])),
        ("skipped", True, (1,)),
        "Rank 1 on gaudi-1 entered broadcast 13 of shape [3] float32, where the others entered all_reduce 13 of shape "
        "[7] float32: it skipped that one; the other 2 ranks wait.",
    ),
    "other order": (
        (waits(0, [*STEPS, A]), waits(1, [*STEPS, A]), waits(2, [*STEPS, B, A])),
        ("order", True, (2,)),
        "Rank 2 on gaudi-2 entered broadcast 13 of shape [3] float32, where the others entered all_reduce 13 of shape "
        "[7] float32: it calls the two in the other order; the other 2 ranks wait.",
    ),
    "two ranks disagree": (
        (waits(0, [*STEPS, A]), waits(1, [*STEPS, B])),
        ("sequence", False, (1,)),
        "Probably rank 1 on gaudi-1 entered broadcast 13 of shape [3] float32, where the others entered all_reduce 13 "
        "of shape [7] float32: it skipped that one, or calls it later; the other rank waits.",
    ),
    "two ranks disagree at first": (
        (waits(0, [A]), waits(1, [B])),
        ("sequence", False, ()),
        "Nobody is named: the ranks do not agree on all_reduce 1 of shape [7] float32, and which of them are right is "
        "not known.",
    ),
    "other shape": (
        (waits(0, [*STEPS, A]), waits(1, [*STEPS, A]), waits(2, [*STEPS, ("all_reduce", (9,), "float32")])),
        ("shape", True, (2,)),
        "Rank 2 on gaudi-2 entered all_reduce 13 of shape [9] float32, where the others entered it with shape [7] "
        "float32; the other 2 ranks wait.",
    ),
    "another call": (
        (waits(0, [*STEPS, A]), waits(1, [*STEPS, A]), waits(2, [*STEPS, C, A])),
        ("extra", True, (2,)),
        "Rank 2 on gaudi-2 entered all_gather 13 of shape [4, 8] bfloat16, where the others entered all_reduce 13 of "
        "shape [7] float32: it makes a call that the others do not make; the other 2 ranks wait.",
    ),
    "wedge": (
        tuple(waits(number, [*STEPS, A]) for number in range(3)),
        ("wedge", False, ()),
        "All 3 ranks entered all_reduce 13 of shape [7] float32, and it does not come back: no rank is at fault by "
        "what is known; look at the ports and the cards.",
    ),
    "all read data": (
        tuple(rank(number, STEPS, "dataloader.next", end="hung", state=ring.RETURNED) for number in range(3)),
        ("unknown", False, ()),
        "Nobody is named: the ranks stand in dataloader.next, and the last collective that most entered was the "
        "all_reduce of its gradients, call 12 (1000 elements).",
    ),
    "slow": (
        (waits(0, [*STEPS, A]), rank(1, STEPS, "backward", 2)),
        ("slow", False, ()),
        "Nobody is named: some ranks are behind the others, but moved a moment ago, so that they are slow rather than "
        "stuck; the others wait in all_reduce 13 of shape [7] float32.",
    ),
}


@pytest.mark.parametrize("case", TABLE)
def test_who_is_named(case: str) -> None:
    views, expected, sentence = TABLE[case]
    verdict = judged(*views)
    assert verdict is not None
    assert (verdict.sentence, (verdict.kind, verdict.certain, verdict.ranks)) == (sentence, expected)
    assert verdict.nodes == tuple(f"gaudi-{number}" for number in expected[2])


@pytest.mark.parametrize(
    "views",
    [
        (rank(0, [*STEPS, A]), rank(1, STEPS)),
        (waits(0, [*STEPS, A]), rank(1, STEPS, end="failed")),
        (waits(0, [*STEPS, A]), rank(1, STEPS, process="gone")),
    ],
    ids=["nobody waits", "a rank failed", "a process died"],
)
def test_what_is_no_hang_is_left_to_its_own_message(views: tuple[View, ...]) -> None:
    assert judged(*views) is None


def test_a_silent_node_is_named_and_a_late_rank_beside_it_makes_it_uncertain() -> None:
    views = [waits(number, [*STEPS, A]) for number in (0, 1)]
    found = judged(*views, world=4, silent=(1,), local=2)
    assert found is not None and (found.kind, found.certain, found.ranks) == ("dead node", True, (2, 3))
    assert found.sentence == (
        "Node gaudi-1 (ranks 2 to 3) is silent: neither its launcher nor its processes answer; the other 2 ranks wait "
        "in all_reduce 13 of shape [7] float32."
    )
    late = rank(1, STEPS, "dataloader.next", state=ring.RETURNED)
    found = judged(views[0], late, world=4, silent=(1,), local=2)
    assert found is not None and found.ranks == () and not found.certain
    assert found.sentence == (
        "Nobody is named: nothing is known of ranks 2 to 3 on gaudi-1, and other ranks may be late, too; the others "
        "wait in all_reduce 13 of shape [7] float32."
    )


def test_a_launcher_that_reaches_nobody_accuses_at_most_the_node_that_has_the_store() -> None:
    view = waits(1, [*STEPS, A])
    groups, hosts = {"all": GroupView("all", frozenset(range(3)))}, {number: f"n{number}" for number in range(3)}
    found = verdict_of(Evidence(3, {1: view}, groups, (0, 2), cut_off=True), hosts)
    assert found is not None and found.ranks == ()
    found = verdict_of(Evidence(3, {1: view}, groups, (0, 2), cut_off=True, head=(0,)), hosts)
    assert found is not None and (found.ranks, found.certain) == ((0,), False)
    assert found.sentence.startswith("Probably node n0 (rank 0) is silent: ")


def test_whoever_waits_for_another_rank_in_another_group_is_not_named() -> None:
    """Rank 0 waits for 1 in the group of both, 1 waits for 2 in another one, and 2 reads data."""
    groups = {"left": GroupView("left", frozenset({0, 1})), "right": GroupView("right", frozenset({1, 2}))}
    views = {
        0: waits(0, [A], group="left"),
        1: waits(1, [A], group="right"),
        2: rank(2, [], "dataloader.next"),
    }
    found = verdict_of(Evidence(3, views, groups), {number: f"n{number}" for number in range(3)})
    assert found is not None and (found.kind, found.ranks, found.certain) == ("loader", (2,), True)
    assert " in group right; " in found.sentence


def test_ranks_that_wait_for_each_other_in_two_groups_name_the_one_that_left_a_call_out() -> None:
    views = [
        waits(number, [A] * (3 if number == 1 else 4), more=[("other", B)] * (2 if number == 1 else 1))
        for number in range(4)
    ]
    found = judged(*views)
    assert found is not None and (found.kind, found.ranks, found.certain) == ("skipped", (1,), True)


def test_shapes_that_differ_by_right_accuse_nobody() -> None:
    """Ranks gathered parts of different sizes, and went on: the rank that reads data is the one."""
    odd = ("all_gather", (5, 8), "bfloat16")
    found = judged(waits(0, [C, *STEPS, A]), rank(1, [odd, *STEPS], "dataloader.next"), waits(2, [C, *STEPS, A]))
    assert found is not None and (found.kind, found.ranks) == ("loader", (1,))


def test_a_view_is_the_same_after_the_network_and_what_is_none_is_refused() -> None:
    node = NodeView(1, "gaudi-1", (1,), (waits(1, STEPS),), {"all": GroupView("all", frozenset({0, 1}))})
    sent = json.loads(json.dumps(plain(node)))
    assert parsed(sent, 1, 2) == node
    for change in (
        {"host": "a\x1b[2J"},
        {"host": 7},
        {"views": [{**sent["views"][0], "rank": 2}]},
        {"views": [{**sent["views"][0], "phase": "$(rm)"}]},
        {"views": [{**sent["views"][0], "seconds": float("nan")}]},
        {"views": [{**sent["views"][0], "calls": [["all", 1, "exec", [1], "float32", 1.0, 0]]}]},
        {"groups": {"all": ["all", [[0, 10**9]]]}},
        {"views": None},
    ):
        with pytest.raises(ValueError, match=r"out of bounds|not known|not printable|no view"):
            parsed({**sent, **change}, 1, 2)
