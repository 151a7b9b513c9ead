"""What HCCL allows, refuses and ignores, by the process groups of HabanaAI/gaudi-pytorch-bridge 1.19."""

from __future__ import annotations

from typing import Any

import pair
import pytest
from forks import Forks

Seen = list[dict[str, Any]]


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory, forks: Forks) -> Seen:
    return pair.run(forks, "collectives_worker.py", tmp_path_factory.mktemp("pair"))


@pytest.fixture(scope="module")
def hung(tmp_path_factory: pytest.TempPathFactory, forks: Forks) -> Seen:
    """A group that was given two seconds, and a partner that is late, and then gone."""
    return pair.run(forks, "collectives_worker.py", tmp_path_factory.mktemp("hung"), "hang")


def test_any_shape_with_the_right_number_of_elements_will_do(seen: Seen) -> None:
    for rank in range(2):
        now = seen[rank]["shapes"]
        assert now["gathered"] == {
            "(3, 4) to (24,) of torch.float32": [*range(12), *range(100, 112)],
            "(3, 4) to (2, 3, 4) of torch.bfloat16": [*range(12), *range(100, 112)],
            "() to (2,) of torch.float32": [0, 100],
            "(5, 2) to (4, 5) of torch.int64": [*range(10), *range(100, 110)],
        }
        assert now["scattered"] == {
            "(24,) to (3, 4) of torch.float32": [2.0 * (12 * rank + number) for number in range(12)],
            "(2, 3, 4) to (3, 4) of torch.bfloat16": [2.0 * (12 * rank + number) for number in range(12)],
            "(2, 3) to (3, 1) of torch.int32": [2 * (3 * rank + number) for number in range(3)],
        }
        assert now["several"] == [[0, 1, 2, 10, 11, 12], [0, 1, 1, 2]]
        assert now["listed"] == [[0, 1, 2, 3], [10, 11, 12, 13]]
        assert now["unequal"] == [[7], [0, 1, 2, 3]]
        assert now["exchanged"][:2] == [[5 * rank, 5 * rank + 1], [10 + 5 * rank, 11 + 5 * rank]]
        assert now["exchanged"][2] == [2 * rank, 2 * rank + 1, 10 + 2 * rank, 11 + 2 * rank]


def test_a_wrong_number_of_elements_or_another_type_is_refused(seen: Seen) -> None:
    for now in seen:
        assert now["shapes"]["sizes"] == [
            "output tensor size must be equal to world_size times input tensor size",
            "input tensor must be the same size as output size times world size",
            "output tensor must have the same type as input tensor",
        ]


@pytest.mark.parametrize("reduction", ["BAND", "BOR", "BXOR", "AVG"])
def test_what_hccl_does_not_reduce_is_refused(seen: Seen, reduction: str) -> None:
    assert [now["refusals"][reduction] for now in seen] == ["Unsupported ReduceOp for HCCL process group"] * 2


def test_types_that_hccl_does_not_know_are_refused(seen: Seen) -> None:
    for now in seen:
        refused = "Input tensor data type is not supported for HCCL process group: "
        assert (now["refusals"]["int16"], now["refusals"]["complex64"]) == (f"{refused}Short", f"{refused}ComplexFloat")


def test_operations_that_habanas_group_does_not_have_are_refused(seen: Seen) -> None:
    for now in seen:
        assert now["refusals"]["any source"] == "ProcessGroupHcclBase does not support recv"
        assert now["refusals"]["coalesced lists"] == "ProcessGroupHcclBase does not support allgather_coalesced"


def test_integers_and_doubles_are_summed_as_float32(seen: Seen) -> None:
    for now in seen:
        for dtype in ("torch.int64", "torch.int32", "torch.float64"):
            # 2^25 + 1 has no float32.
            assert now["reductions"][dtype] == [dtype, [2**25, 6, -10]]
        assert now["reductions"]["scattered"] == [2**25 + 1], "but scattered sums of integers are whole"


def test_coalesced_collectives(seen: Seen) -> None:
    for now in (each["coalesced"] for each in seen):
        assert now["sums"] == [[1, 3], [1, 3, 5]]
        assert now["gathered"] == [[0, 1, 1, 2], [0, 1, 2, 1, 2, 3]]
        assert now["broadcast"] == [10, 11]
        assert now["nested"].startswith("Coalescing is already in progress.")
        assert now["unstarted"] == "endCoalescing invoked without startCoalescing"


def test_no_timeout_ends_a_collective(hung: Seen) -> None:
    first = hung[0]["late"]
    assert (first["group"], first["wait"]) == ("", "")
    assert first["group took"] > 2 and first["wait took"] > 2
    assert first["values"] == [0, 4]


def test_a_lost_peer_speaks_hccls_words(hung: Seen) -> None:
    lost = hung[0]["lost"]
    assert (lost["all_reduce"], lost["future"]) == ("Collective call returned error",) * 2
    assert lost["recv"] == "P2P call returned error"
