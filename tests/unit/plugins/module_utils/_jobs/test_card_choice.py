"""Which cards the nodes of a job use together."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._jobs.card_choice import job_modules

ALL = list(range(8))


def node(processes: int = 8, cards: int | None = 8, modules: list[int] | None = ALL, held: tuple[int, ...] = ()) -> Any:
    return {"processes": processes, "cards": cards, "modules": modules, "held": list(held)}


@pytest.mark.parametrize(
    ("offers", "modules"),
    [
        ({"a": node()}, ALL),
        ({"a": node(), "b": node()}, ALL),
        ({"a": node(4)}, [0, 1, 2, 3]),
        ({"a": node(4, modules=[0, 1, 2, 4, 5, 6, 7])}, [4, 5, 6, 7]),
        ({"a": node(2), "b": node(2)}, [0, 1]),
        ({"a": node(1)}, []),  # any free card
        ({"a": node(1), "b": node(1)}, [0]),
        ({"a": node(4, held=(1,))}, [4, 5, 6, 7]),  # another job has the first half
        ({"a": node(2, held=(0, 3)), "b": node(2, held=(5, 3))}, [6, 7]),
        ({"a": node(4, held=(1, 5))}, [0, 1, 2, 3]),  # the job waits for its cards and says who has them
        ({"a": node(modules=None), "b": node()}, []),  # no driver yet
        ({"a": node(3, cards=None, modules=None)}, []),  # processors
        ({"a": {}, "b": {}}, []),
    ],
)
def test_modules_are_chosen(offers: dict[str, Any], modules: list[int]) -> None:
    assert job_modules(offers) == {"modules": modules, "problem": ""}


@pytest.mark.parametrize(
    ("offers", "words"),
    [
        ({"a": node(7, 7, [0, 1, 2, 4, 5, 6, 7])}, ["a has 7 operational cards", "4 (modules 4 to 7)", "2 (modules 0"]),
        ({"a": node(8), "b": node(7, 7, None)}, ["(a 8, b 7)", "repair the node that lost cards"]),
        ({"a": node(4), "b": node(4, 7, None)}, ["(a 8, b 7)"]),
        ({"a": node(4), "b": node(4, 8, [0, 1, 2, 4, 5, 6, 7])}, ["b has 7"]),
        ({"a": node(3, modules=None)}, ["trainer_processes_per_node is 3, where 1, 2, 4 or 8 are supported"]),
        ({"a": node(5)}, ["5, where 1, 2, 4 or 8 are supported", "trainer_allow_partial_nodes"]),
        ({"a": node(8, modules=[])}, ["0 operational cards"]),
    ],
)
def test_what_the_vendor_does_not_support_is_refused(offers: dict[str, Any], words: list[str]) -> None:
    found = job_modules(offers)
    assert found["modules"] == [] and [word for word in words if word not in found["problem"]] == []
    assert found["problem"].endswith(".") and "\n" not in found["problem"]


def test_other_numbers_may_be_tried() -> None:
    seven = [0, 1, 2, 4, 5, 6, 7]
    assert job_modules({"a": node(7, 7, seven)}, True) == {"modules": seven, "problem": ""}
    assert job_modules({"a": node(3, modules=None)}, True) == {"modules": [], "problem": ""}
    assert job_modules({"a": node(4), "b": node(4, 7, seven)}, True)["modules"] == [4, 5, 6, 7]
    assert "different numbers of cards" in job_modules({"a": node(8), "b": node(7, 7)}, True)["problem"]
