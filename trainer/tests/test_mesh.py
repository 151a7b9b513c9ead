"""Over how many processes what is split: sizes are taken or refused, and how often gradients are reduced."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import Any

import lightning.pytorch as pl
import pytest
import torch
from conftest import QUIET
from ranks import run
from small_llama import loss, samples, small_llama

from gaudi3_scale.distributed.replicas import check_replicas
from gaudi3_scale.errors import ConfigError
from gaudi3_scale.integration.mesh import mesh_sizes
from gaudi3_scale.internals import TorchDispatchMode

ACCUMULATED = 4
"""Micro-batches of the one optimizer step that each training here makes."""
KINDS = {"allreduce": "all-reduce", "allgather": "all-gather", "reduce_scatter": "reduce-scatter"}


class Collectives(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts collectives of more than 64 elements, which are those of parameters and gradients."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.count: Counter[str] = Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func.namespace == "c10d":
            kind = next((name for key, name in KINDS.items() if key in func.name()), None)
            tensors = [t for a in args for t in (a if isinstance(a, list) else [a]) if isinstance(t, torch.Tensor)]
            if kind and max((t.numel() for t in tensors), default=0) > 64:
                self.count[kind] += 1
        return func(*args, **(kwargs or {}))


class Model(pl.LightningModule):
    """A model of two blocks that knows nothing of how it is split."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.model = small_llama(layers=2, width=32)
        self.losses: list[float] = []

    def training_step(self, batch: list[torch.Tensor], batch_idx: int) -> torch.Tensor:
        """Loss of one micro-batch."""
        value = loss(self.model, batch[0])
        self.losses.append(value.item())
        return value

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """One whose step shows the gradient's size."""
        return torch.optim.SGD(self.parameters(), lr=0.5)


class SplitsItself(Model):
    """A model with a configure_model of its own."""

    def configure_model(self) -> None:
        """Split the feed-forward matrices only."""
        from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

        plan = {"up_proj": ColwiseParallel(), "gate_proj": ColwiseParallel(), "down_proj": RowwiseParallel()}
        for layer in self.model.model.layers:
            parallelize_module(layer.mlp, self.device_mesh["tensor_parallel"], plan)


def trained(rank: int, size: int, cases: list[tuple[type[Model], str, dict[str, Any]]]) -> list[dict[str, Any]]:
    """What was seen of one step of each case; a step has the same samples, however they are shared out."""
    from torch.distributed.tensor import DTensor

    from gaudi3_scale import GaudiTrainer
    from gaudi3_scale.integration.strategies import HabanaDDPStrategy, HabanaFSDPStrategy

    os.environ.update(RANK=f"{rank}", LOCAL_RANK=f"{rank}", WORLD_SIZE=f"{size}", LOCAL_WORLD_SIZE=f"{size}")
    os.environ.update(GROUP_RANK="0", TORCHELASTIC_RUN_ID="x", MASTER_ADDR="127.0.0.1", MASTER_PORT="1")
    seen = []
    for kind, name, given in cases:
        module, arguments = kind(), {key: value for key, value in given.items() if key != "clip"}
        strategy = (HabanaFSDPStrategy if name == "habana_fsdp" else HabanaDDPStrategy)(**arguments)
        trainer = GaudiTrainer(
            "cpu",
            strategy=strategy,
            devices=size,
            max_steps=1,
            accumulate_grad_batches=ACCUMULATED,
            gradient_clip_val=given.get("clip"),
            **QUIET,
        )
        data = torch.utils.data.TensorDataset(samples(4 * ACCUMULATED))
        sharers = size // int(arguments.get("tensor_parallel_size", 1))
        loader = torch.utils.data.DataLoader(data, batch_size=4 // sharers, shuffle=False)
        collectives = Collectives()
        with collectives:
            trainer.fit(module, loader)
        weight: Any = module.model.model.layers[0].self_attn.q_proj.weight
        norm: Any = module.model.model.norm.weight
        whole = [w.full_tensor() if isinstance(w, DTensor) else w for w in (weight, norm)]
        mesh = getattr(strategy, "device_mesh", None) if name == "habana_fsdp" else None
        seen.append(
            {
                "mesh": {dim: mesh[dim].size() for dim in mesh.mesh_dim_names or ()} if mesh is not None else {},
                "losses": module.losses,
                "collectives": dict(collectives.count),
                "rows": len(weight.to_local() if isinstance(weight, DTensor) else weight),
                "weights": [part.detach().tolist() for part in whole],
            }
        )
    return seen


def assert_close(one: dict[str, Any], other: dict[str, Any]) -> None:
    """The weights agree up to the order of sums."""
    for ours, theirs in zip(one["weights"], other["weights"], strict=True):
        torch.testing.assert_close(torch.tensor(ours), torch.tensor(theirs), rtol=1e-4, atol=1e-6)


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What each training on two processes did."""
    once = {"reduce_each_micro_batch": False}
    cases: dict[str, tuple[type[Model], str, dict[str, Any]]] = {
        "ddp": (Model, "habana_ddp", {}),
        "fsdp": (Model, "habana_fsdp", {}),
        "once": (Model, "habana_fsdp", once),
        "kept": (Model, "habana_fsdp", {**once, "reshard_after_forward": False}),
        "tensor": (Model, "habana_fsdp", {"data_parallel_size": 1, "tensor_parallel_size": 2}),
        "own plan": (SplitsItself, "habana_fsdp", {"data_parallel_size": 1, "tensor_parallel_size": 2}),
        "ddp clipped": (Model, "habana_ddp", {"clip": 0.01}),
        "tensor clipped": (Model, "habana_fsdp", {"data_parallel_size": 1, "tensor_parallel_size": 2, "clip": 0.01}),
    }
    found = run(2, tmp_path_factory.mktemp("two"), trained, 2, list(cases.values()))
    for one, other in zip(found[0], found[1], strict=True):
        assert one["weights"] == other["weights"]
    return dict(zip(cases, found[0], strict=True))


def test_sizes_that_are_named_give_that_mesh(two: dict[str, Any]) -> None:
    assert two["fsdp"]["mesh"] == {"data_parallel": 2, "tensor_parallel": 1}
    assert two["tensor"]["mesh"] == two["own plan"]["mesh"] == {"data_parallel": 1, "tensor_parallel": 2}
    assert (two["ddp"]["rows"], two["tensor"]["rows"]) == (32, 16)


@pytest.mark.parametrize("how", ["fsdp", "once", "kept", "tensor", "own plan"])
def test_however_a_model_is_split_it_learns_the_same(two: dict[str, Any], how: str) -> None:
    assert_close(two[how], two["ddp"])


def test_gradients_on_two_meshes_are_clipped_to_one_norm(two: dict[str, Any]) -> None:
    """Split matrices are on another mesh than what is not split."""
    assert_close(two["tensor clipped"], two["ddp clipped"])
    assert two["ddp clipped"]["weights"] != two["ddp"]["weights"]


def test_collectives_of_a_step_of_four_micro_batches(two: dict[str, Any]) -> None:
    """Three groups: two blocks, and what is in none."""
    assert two["ddp"]["collectives"] == {"all-reduce": 1}
    assert two["fsdp"]["collectives"] == {"all-gather": 20, "reduce-scatter": 12}
    assert two["once"]["collectives"] == {"all-gather": 20, "reduce-scatter": 3}
    assert two["kept"]["collectives"] == {"all-gather": 12, "reduce-scatter": 3}


def test_copies_of_shards_exchange_gradients_once_per_step(tmp_path: Path) -> None:
    cases = [(Model, "habana_fsdp", arguments) for arguments in ({}, {"replicas": 2})]
    whole, copied = run(4, tmp_path, trained, 4, cases)[0]
    assert (whole["rows"], copied["rows"]) == (8, 16)
    assert_close(copied, whole)
    assert copied["collectives"] == {"all-gather": 20, "reduce-scatter": 12, "all-reduce": 3}


@pytest.mark.parametrize(
    ("wanted", "sizes"),
    [(("auto", "auto"), (8, 1)), (("auto", 4), (2, 4)), ((2, "auto"), (2, 4)), ((1, 8), (1, 8))],
)
def test_sizes_that_are_left_out_follow_from_the_others(wanted: Any, sizes: tuple[int, int]) -> None:
    assert mesh_sizes(wanted[0], wanted[1], 8) == sizes


@pytest.mark.parametrize(
    ("wanted", "sentence"),
    [
        (
            (1, 2),
            "habana_fsdp was given data_parallel_size 1 and tensor_parallel_size 2, and there are 8 processes: give "
            "sizes whose product is 8, or leave one of them at 'auto'.",
        ),
        (
            ("auto", 3),
            "habana_fsdp was given data_parallel_size auto and tensor_parallel_size 3, and there are 8 processes: give "
            "sizes whose product is 8, or leave one of them at 'auto'.",
        ),
        ((0, 8), "data_parallel_size is 0: give a number of processes from 1 on, or 'auto'."),
        ((8, "all"), "tensor_parallel_size is 'all': give a number of processes from 1 on, or 'auto'."),
    ],
)
def test_sizes_that_cannot_be_are_refused(wanted: Any, sentence: str) -> None:
    with pytest.raises(ConfigError) as refused:
        mesh_sizes(wanted[0], wanted[1], 8)
    assert str(refused.value) == sentence


def test_copies_that_cannot_be_are_refused() -> None:
    check_replicas(2, 8)
    with pytest.raises(ConfigError, match=r"^train.replicas is 3, and there are 8 process\(es\), which cannot be"):
        check_replicas(3, 8, name="train.replicas")
    with pytest.raises(ConfigError, match=r"^replicas is 2 and tensor_parallel_size 2: copies of shards and split"):
        check_replicas(2, 4, tensor=2)
