"""Two processes with a card each: the collectives of `hccl`, and training over them."""

from __future__ import annotations

from typing import Any

import pair
import pytest
import shapes
from forks import Forks


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory, forks: Forks) -> list[dict[str, Any]]:
    """What each of the two processes saw; one run for all tests, as starting is most of it."""
    return pair.run(forks, "worker.py", tmp_path_factory.mktemp("pair"))


def test_collectives(seen: list[dict[str, Any]]) -> None:
    for rank in range(2):
        now = seen[rank]
        assert now["all_reduce"] == [3, 3]
        assert now["all_gather"] == [[1, 1], [2, 2]]
        assert now["all_gather_into_tensor"] == [1, 1, 2, 2]
        assert now["reduce_scatter_tensor"] == [[0, 2], [4, 6]][rank]
        assert now["scatter"] == [[1, 1], [5, 5]][rank]
        assert now["broadcast"] == [5, 5]
        assert now["all_to_all"] == [[0, 10], [1, 11]][rank]
        assert now["recv"] == [[5, 5], [1, 1]][rank]
        assert now["objects"] == [{"rank": 0}, {"rank": 1}]
        assert now["bfloat16"] == [3, 3]


def test_results_of_a_future_are_on_the_card(seen: list[dict[str, Any]]) -> None:
    assert [now["future"] for now in seen] == [["hpu:0"], ["hpu:0"]]


def test_averages_and_mixtures_are_refused(seen: list[dict[str, Any]]) -> None:
    for now in seen:
        assert now["average"] == "Unsupported ReduceOp for HCCL process group"
        assert "CPU tensors beside HPU tensors" in now["mixed"]


def test_collectives_are_not_charged_to_the_card(seen: list[dict[str, Any]]) -> None:
    assert [now["charged"] for now in seen] == [0, 0]


@pytest.mark.parametrize("family", shapes.FAMILIES)
@pytest.mark.parametrize("strategy", ["ddp", "fsdp"])
def test_training_equals_the_cpus_over_gloo(seen: list[dict[str, Any]], strategy: str, family: str) -> None:
    assert [now[f"{strategy} {family}"] for now in seen] == [[], []], "weights that differ"


def test_sharded_training_in_bfloat16_and_sharded_checkpoints(seen: list[dict[str, Any]]) -> None:
    assert [(now["fsdp bfloat16"], now["checkpoint"]) for now in seen] == [(True, True)] * 2
