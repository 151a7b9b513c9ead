"""Each block is compiled by itself, once per shape, with and without recomputation, sharded or not."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lightning.pytorch as pl
import pytest
import torch
from conftest import QUIET, SIMULATOR
from ranks import run
from test_memory_hpu import on_hpu
from torch import nn

from gaudi3_scale.config import load
from gaudi3_scale.errors import ConfigError
from gaudi3_scale.hpu.device import Device

STEPS = 3
SETTINGS = [
    "model.hidden_size=32",
    "model.intermediate_size=64",
    "model.heads=2",
    "model.kv_heads=2",
    "model.sequence_length=16",
    f"train.max_steps={STEPS}",
]
OF_2_9 = torch.__version__.startswith("2.9.")
"""It shares no graph between blocks that are sharded and recomputed."""
COMPILE = ["train.mode=compile", "train.compile_backend=aot_eager"]


class Steps(pl.Callback):
    """Notes the loss and the number of graphs that were compiled, after every step."""

    def __init__(self) -> None:
        self.losses: list[float] = []
        self.graphs: list[int] = []

    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        """One batch is one step here."""
        from torch._dynamo.utils import counters

        self.losses.append(outputs["loss"].item())
        self.graphs.append(counters["stats"]["unique_graphs"])


class Batches:
    """One rank's."""

    def __init__(self, rank: int) -> None:
        self.rank = rank

    def __iter__(self) -> Iterator[torch.Tensor]:
        for step in range(STEPS):
            yield torch.randint(0, 256, (2, 17), generator=torch.Generator().manual_seed(10 * step + self.rank))


def trained(rank: int, cases: list[list[str]]) -> list[tuple[list[float], list[int]]]:
    """Losses and graphs of each case, on two processes."""
    import torch._dynamo

    from gaudi3_scale import GaudiTrainer
    from gaudi3_scale.step.module import LanguageModule

    os.environ.update(RANK=f"{rank}", LOCAL_RANK=f"{rank}", WORLD_SIZE="2", LOCAL_WORLD_SIZE="2", GROUP_RANK="0")
    os.environ.update(TORCHELASTIC_RUN_ID="x", MASTER_ADDR="127.0.0.1", MASTER_PORT="1")
    seen = []
    for overrides in cases:
        torch._dynamo.reset()
        torch._dynamo.utils.counters.clear()
        config = load(None, [*SETTINGS, *overrides])
        device, steps = Device("cpu", rank, "gloo"), Steps()
        torch.manual_seed(config.train.seed)
        module = LanguageModule(config, device)
        trainer = GaudiTrainer(
            "cpu",
            strategy="habana_fsdp" if config.train.strategy == "habana_fsdp" else "habana_ddp",
            devices=2,
            max_steps=STEPS,
            callbacks=[steps],
            use_distributed_sampler=False,
            **QUIET,
        )
        trainer.fit(module, Batches(rank))
        seen.append((steps.losses, steps.graphs))
    return seen


def test_two_processes_train_compiled_as_they_do_eagerly(tmp_path: Path) -> None:
    layers = ["model.layers=3"]
    sharded = [*layers, "train.strategy=habana_fsdp"]
    recomputed = "memory.activation_checkpointing=full"
    cases = [layers, [*sharded, *COMPILE], [*sharded, *COMPILE, recomputed], [*layers, *COMPILE]]
    eager, *compiled = run(2, tmp_path, trained, cases)[0]
    assert eager[1] == [0] * STEPS
    for case, (losses, graphs) in zip(cases[1:], compiled, strict=True):
        # Three blocks of one shape share a graph, and no later step compiles another.
        assert graphs == [3 if OF_2_9 and case[1:2] == sharded[1:] and recomputed in case else 1] * STEPS
        assert losses == pytest.approx(eager[0], rel=1e-5)


def test_what_does_not_repeat_is_compiled_as_a_whole() -> None:
    from gaudi3_scale.models.blocks import compile_blocks

    graphs: list[Any] = []

    def backend(graph: Any, inputs: Any) -> Any:
        graphs.append(graph)
        return graph

    class Whole(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = nn.Linear(2, 2)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            out: torch.Tensor = self.net(x).relu()
            return out

    whole, repeated = Whole(), nn.ModuleList([Whole(), Whole()])
    assert (compile_blocks(whole, backend), compile_blocks(repeated, backend)) == (0, 2)
    whole(torch.ones(1, 2))
    assert len(graphs) == 1 and list(whole.state_dict()) == ["net.weight", "net.bias"]


def test_the_default_is_the_vendors() -> None:
    assert load(None).train.mode == "auto"
    assert Device("hpu", 0, "hccl").compile_backend("auto") == "hpu_backend"
    assert Device("hpu", 0, "hccl", mark_step=lambda: None).compile_backend("auto") is None  # lazy mode
    assert Device("cpu", 0, "gloo").compile_backend("auto") is Device("cuda", 0, "nccl").compile_backend("auto") is None
    with pytest.raises(ConfigError, match=r"compile_backend is for mode compile, and mode is auto; change one of them"):
        load(None, ["train.compile_backend=aot_eager"])


@pytest.mark.skipif(not SIMULATOR.is_dir(), reason="the simulated hpu is not built: `make hpu` builds it")
def test_a_job_on_a_card_is_compiled_unless_it_is_told_otherwise() -> None:
    script = f"""
from torch._dynamo.utils import counters
from gaudi3_scale.config import load
from gaudi3_scale.step.module import LanguageModule
found = {{}}
for mode in ("eager", "auto"):
    torch.manual_seed(1)
    module = LanguageModule(load(None, [*{SETTINGS!r}, f"train.mode={{mode}}"]), device).to("hpu")
    optimizer, losses, graphs = torch.optim.SGD(module.model.parameters(), lr=0.1), [], []
    batch = torch.randint(0, 256, (2, 17), generator=torch.Generator().manual_seed(1)).to("hpu")
    for _ in range({STEPS}):
        loss = module.training_step(batch, 0)
        module.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        graphs.append(counters["stats"]["unique_graphs"])
    found[mode] = [losses, graphs]
print(json.dumps(found))
"""
    found = on_hpu(script)
    assert (found["eager"][1], found["auto"][1]) == ([0] * STEPS, [1] * STEPS)
    assert found["auto"][0] == pytest.approx(found["eager"][0], rel=1e-5)
