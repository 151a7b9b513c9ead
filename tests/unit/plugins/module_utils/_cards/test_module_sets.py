"""The cards that a job may use on a node, by module id."""

from __future__ import annotations

from itertools import combinations

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._cards.module_sets import (
    SETS,
    module_sets,
    module_sets_of_nodes,
)
from ansible_collections.gaudi3.scale.plugins.module_utils._refusal import Refusal

ALL = range(8)


def without(*lost: int) -> list[int]:
    return [module for module in ALL if module not in lost]


@pytest.mark.parametrize(
    ("processes", "sets"),
    [
        (8, [(0, 1, 2, 3, 4, 5, 6, 7)]),
        (4, [(0, 1, 2, 3), (4, 5, 6, 7)]),
        (2, [(0, 1), (2, 3), (4, 5), (6, 7)]),
        (1, [(module,) for module in ALL]),
    ],
)
def test_a_whole_node_has_every_set(processes: int, sets: list[tuple[int, ...]]) -> None:
    choice = module_sets([6, 2, 7, 0, 3, 5, 4, 1], processes)
    assert (list(choice.sets), choice.modules, choice.supported) == (sets, sets[0], True)
    assert choice.visible == ",".join(map(str, sets[0]))


@pytest.mark.parametrize("processes", [4, 2, 1])
@pytest.mark.parametrize("lost", [(3,), (6,), (0, 5), (1, 2, 7)])
def test_a_set_never_holds_a_lost_module(lost: tuple[int, ...], processes: int) -> None:
    left = [modules for modules in SETS[processes] if not set(modules) & set(lost)]
    if not left:
        with pytest.raises(Refusal, match=f"is {processes}, for which the vendor names"):
            module_sets(without(*lost), processes)
    else:
        assert list(module_sets(without(*lost), processes).sets) == left


@pytest.mark.parametrize(
    ("modules", "processes", "sentence"),
    [
        (
            without(3),
            7,
            "this node has 7 operational cards (modules 0 to 2 and 4 to 7) and trainer_processes_per_node is 7, where "
            "1, 2, 4 or 8 are supported: set it to 4 (modules 4 to 7), 2 (modules 0 and 1, modules 4 and 5 or modules "
            "6 and 7) or 1 (any card), repair the node or set trainer_allow_partial_nodes to true to try what is not "
            "supported",
        ),
        (without(3), 8, "is 8, more than there are: set it to 4 (modules 4 to 7), 2 ("),
        ([1, 2], 2, "for which the vendor names modules 0 and 1, modules 2 and 3, modules 4 and 5 or modules 6 and 7"),
        ([1, 2], 2, ": set it to 1 (any card), repair the node or set trainer_allow_partial_nodes"),
        (
            [5],
            2,
            "1 operational card (module 5) and trainer_processes_per_node is 2, more than there are",
        ),
        ([], 8, "this node has 0 operational cards and trainer_processes_per_node is 8, more than there are: repair"),
        (ALL, 0, "is 0, where 1, 2, 4 or 8 are supported: set it to 8 (modules 0 to 7), 4 (modules 0 to 3 or modules"),
        (ALL, -2, "is -2, where 1, 2, 4 or 8 are supported"),
        ([0, 1, 1], 2, "names its modules 0, 1, 1, where each is from 0 to 7 and occurs once"),
        ([0, 9], 1, "names its modules 0, 9, where each is from 0 to 7"),
    ],
)
def test_a_refusal_names_what_is_left(modules: list[int], processes: int, sentence: str) -> None:
    with pytest.raises(Refusal) as refused:
        module_sets(modules, processes)
    assert sentence in str(refused.value)
    assert "\n" not in str(refused.value)


def test_each_number_of_processes_is_chosen_or_refused_for_each_state_of_a_node() -> None:
    for count in range(9):
        for modules in combinations(ALL, count):
            for processes in range(10):
                try:
                    choice = module_sets(modules, processes)
                except Refusal:
                    continue
                assert choice.modules in SETS[processes]
                assert set(choice.modules) <= set(modules)


@pytest.mark.parametrize(
    ("processes", "modules"), [(7, (0, 1, 2, 4, 5, 6, 7)), (5, (0, 1, 2, 4, 5)), (4, (4, 5, 6, 7))]
)
def test_partial_nodes_may_be_tried(processes: int, modules: tuple[int, ...]) -> None:
    choice = module_sets(without(3), processes, allow_partial=True)
    assert (choice.modules, choice.supported) == (modules, processes == 4)
    with pytest.raises(Refusal, match="is 8, more than there are: ") as refused:
        module_sets(without(3), 8, allow_partial=True)
    assert "trainer_allow_partial_nodes" not in str(refused.value)


def test_several_nodes_use_the_same_modules() -> None:
    nodes = {"b": without(6), "a": without(5)}
    assert module_sets_of_nodes(nodes, 4).modules == (0, 1, 2, 3)
    assert module_sets_of_nodes(nodes, 2).sets == ((0, 1), (2, 3))
    assert module_sets_of_nodes({"a": ALL, "b": ALL}, 8).visible == "0,1,2,3,4,5,6,7"
    with pytest.raises(Refusal, match="each of the 2 nodes has 6 operational cards"):
        module_sets_of_nodes(nodes, 8)


def test_several_nodes_with_unequal_cards_are_refused_by_name() -> None:
    nodes = {"a": ALL, "b": without(3), "c": ALL}
    with pytest.raises(Refusal, match=r"have 8 operational cards and b has 7 \(modules 0 to 2 and 4 to 7\)"):
        module_sets_of_nodes(nodes, 4)
    assert module_sets_of_nodes(nodes, 4, allow_partial=True).modules == (4, 5, 6, 7)
    assert module_sets_of_nodes({"b": without(3)}, 4).modules == (4, 5, 6, 7)
    with pytest.raises(Refusal, match=r"^b has 7 operational cards"):
        module_sets_of_nodes({"b": without(3)}, 7)
    with pytest.raises(Refusal, match="none was given"):
        module_sets_of_nodes({}, 8)
