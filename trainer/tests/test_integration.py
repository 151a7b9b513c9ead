"""Lightning with Gaudi: what is named is taken or refused, users' code works, and a simulated card equals the CPU."""

from __future__ import annotations

import copy
import importlib
import json
import signal
import subprocess
from pathlib import Path
from typing import Any

import interpreter
import lightning.pytorch as pl
import pytest
import torch
from conftest import QUIET, SIMULATOR, free_port, zygote
from lightning.fabric.plugins import CheckpointIO, ClusterEnvironment
from lightning.pytorch.accelerators import Accelerator, AcceleratorRegistry
from lightning.pytorch.plugins.precision import MixedPrecision, Precision
from lightning.pytorch.strategies import (
    DDPStrategy,
    ModelParallelStrategy,
    ParallelStrategy,
    SingleDeviceStrategy,
    Strategy,
    StrategyRegistry,
)
from torch import nn

from gaudi3_scale import GaudiAccelerator, GaudiOptimizer, GaudiTrainer
from gaudi3_scale.errors import ConfigError
from gaudi3_scale.hpu.device import Device, is_out_of_memory
from gaudi3_scale.integration.strategies import GaudiStrategy, HabanaFSDPStrategy

HERE = Path(__file__).resolve().parent


@pytest.mark.parametrize(
    ("kind", "abstract"),
    [
        (Accelerator, "auto_device_count get_parallel_devices is_available name parse_devices setup_device teardown"),
        (Strategy, "all_gather barrier broadcast is_global_zero model_to_device reduce root_device"),
        (ParallelStrategy, "barrier broadcast model_to_device reduce root_device"),
        (SingleDeviceStrategy, ""),
        (DDPStrategy, ""),
        (ModelParallelStrategy, ""),
        (Precision, ""),
        (CheckpointIO, "load_checkpoint remove_checkpoint save_checkpoint"),
        (
            ClusterEnvironment,
            "creates_processes_externally detect global_rank local_rank main_address main_port node_rank "
            "set_global_rank set_world_size world_size",
        ),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_lightning_asks_of_us_what_it_did(kind: type, abstract: str) -> None:
    assert sorted(getattr(kind, "__abstractmethods__", ())) == abstract.split()


def test_the_names_are_registered() -> None:
    import gaudi3_scale.integration  # noqa: F401

    assert {"gaudi", "hpu"} <= set(AcceleratorRegistry.available_accelerators())
    assert {"habana_ddp", "habana_fsdp", "gaudi_single", "optimized_ddp"} <= set(
        StrategyRegistry.available_strategies()
    )


class Line(pl.LightningModule):
    """The smallest module that learns."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(2, 1)

    def training_step(self, batch: torch.Tensor, batch_idx: int) -> torch.Tensor:
        loss: torch.Tensor = self.net(batch).pow(2).mean()
        return loss

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=0.1)


def test_auto_is_the_cpu_where_there_is_nothing_else_and_says_so(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO", logger="gaudi3_scale"):
        trainer = GaudiTrainer(max_steps=1, **QUIET)
    said = [message for message in caplog.messages if message.startswith("GaudiTrainer")]
    assert said == ["GaudiTrainer: 1 x cpu, strategy gaudi_single, precision 32-true"]
    trainer.fit(Line(), torch.utils.data.DataLoader(torch.rand(4, 2)))
    assert trainer.strategy.root_device == torch.device("cpu")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            {"accelerator": "hpu"},
            "GaudiAccelerator is for hpu, but habana_frameworks (package habana-torch-plugin) is not installed: "
            'install what is missing, or name another device, as in GaudiAccelerator("cpu").',
        ),
        (
            {"accelerator": "cuda"},
            "GaudiAccelerator is for cuda, but torch sees no CUDA device: install what is missing, or name another "
            'device, as in GaudiAccelerator("cpu").',
        ),
        ({"accelerator": "tpu"}, "accelerator is 'tpu': give auto, hpu, cuda, cpu or a GaudiAccelerator."),
        (
            {"strategy": "ddp"},
            "strategy is 'ddp': give auto or one of gaudi_single, habana_ddp, habana_fsdp, optimized_ddp.",
        ),
        ({"precision": "16-mixed"}, "precision is '16-mixed': give one of 32-true, bf16-mixed, bf16-true."),
        (
            {"strategy": "gaudi_single", "devices": 2},
            "gaudi_single was given 2 devices: give one, or strategy habana_ddp or habana_fsdp.",
        ),
    ],
    ids=lambda value: next(iter(value.values())) if isinstance(value, dict) else "",
)
def test_what_cannot_be_is_refused_in_a_sentence(arguments: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigError) as refused:
        GaudiTrainer(**arguments, **QUIET)
    assert str(refused.value) == sentence


@pytest.mark.parametrize("strategy", [SingleDeviceStrategy("cpu"), "ddp"], ids=["single", "ddp"])
def test_a_strategy_that_does_not_know_the_device_is_refused(strategy: Any) -> None:
    trainer = pl.Trainer(accelerator=GaudiAccelerator("cpu"), devices=1, strategy=strategy, max_steps=1, **QUIET)
    with pytest.raises(
        ConfigError, match=r"^The strategy is \w+Strategy, which does not know cpu: give strategy gaudi_single"
    ):
        trainer.strategy.accelerator.setup(trainer)


def test_a_parameter_that_cannot_be_sharded_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    from gaudi3_scale.integration.sharding import shard

    module = Line()
    module.scale = nn.Parameter(torch.ones(1))
    with pytest.raises(ConfigError, match=r"^habana_fsdp cannot shard scale, which Line holds itself: move parameters"):
        shard(module, None)


def test_fused_adamw_is_torchs_with_habanas_defaults_and_exchanges_state() -> None:
    torch.manual_seed(0)
    one, other = nn.Linear(3, 2), nn.Linear(3, 2)
    other.load_state_dict(one.state_dict())
    fused = GaudiOptimizer.FusedAdamW(({"params": part.parameters()} for part in [one]), lr=0.1)
    plain = torch.optim.AdamW(other.parameters(), lr=0.1, eps=1e-6, weight_decay=0.0)
    assert {k: fused.defaults[k] for k in ("lr", "betas", "eps", "weight_decay", "fused")} == {
        "lr": 0.1,
        "betas": (0.9, 0.999),
        "eps": 1e-6,
        "weight_decay": 0.0,
        "fused": True,
    }
    for number in range(6):
        if number == 3:
            state = copy.deepcopy(fused.state_dict())
            state["param_groups"] = plain.state_dict()["param_groups"]
            plain.load_state_dict(state)
        for model, optimizer in ((one, fused), (other, plain)):
            optimizer.zero_grad()
            model(torch.full((1, 3), float(number))).sum().backward()
            optimizer.step()
    torch.testing.assert_close(one.weight, other.weight)


@pytest.mark.skipif(not SIMULATOR.is_dir(), reason="the simulated hpu is not built: `make hpu` builds it")
def test_what_a_module_logs_of_all_processes_is_a_mean_without_a_collective_that_hccl_has_not() -> None:
    """`sync_dist=True`, and what stops early by it."""
    program = """
import torch, torch.distributed as dist
from gaudi3_scale.hpu.device import resolve
from gaudi3_scale.integration.strategies import HabanaDDPStrategy, HabanaFSDPStrategy
device = resolve("hpu", 0, 1)
dist.init_process_group(device.backend, store=dist.HashStore(), rank=0, world_size=1)
dist.get_world_size = lambda group=None: 2  # what a mean divides by; the sum has this process alone
value = torch.tensor([3.0], device="hpu")
for strategy in (HabanaDDPStrategy(), HabanaFSDPStrategy()):
    means = [strategy.reduce(value.clone(), reduce_op=op).item() for op in ("mean", "avg", dist.ReduceOp.AVG)]
    others = [strategy.reduce(value.clone(), reduce_op=op).item() for op in ("sum", dist.ReduceOp.MAX)]
    print("reduced", means, others, strategy.reduce(torch.tensor(3, device="hpu")).item(), strategy.reduce(3))
"""
    done = run("-c", program, hpu=True)
    assert done.stdout.count("reduced [1.5, 1.5, 1.5] [3.0, 3.0] 1 3\n") == 2, done.stdout + done.stderr


@pytest.mark.skipif(not SIMULATOR.is_dir(), reason="the simulated hpu is not built: `make hpu` builds it")
def test_a_step_over_shards_takes_as_many_operations_however_many_there_are() -> None:
    """Of AdamW on a card; before, each of the tensors took about eleven."""
    program = f"""
import sys; sys.path.insert(0, {str(HERE)!r})
import torch, torch.distributed as dist
from small_llama import Operations
from gaudi3_scale import GaudiOptimizer
from gaudi3_scale.hpu.device import resolve
device = resolve("hpu", 0, 1)
dist.init_process_group(device.backend, store=dist.HashStore(), rank=0, world_size=1)
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
mesh = init_device_mesh("hpu", (1,))
for depth in (4, 8):
    model = torch.nn.Sequential(*(torch.nn.Linear(8, 8) for _ in range(depth))).to("hpu")
    fully_shard(model, mesh=mesh).set_force_sum_reduction_for_comms(True)
    optimizer = GaudiOptimizer.FusedAdamW(model.parameters(), lr=0.1)
    for _ in range(2):
        model(torch.ones(2, 8, device="hpu")).sum().backward()
        with Operations() as operations:
            optimizer.step()
    ops = {{name: n for name, n in operations.names.items() if name not in ("item", "_local_scalar_dense")}}
    print(type(next(model.parameters())).__name__, depth, sum(ops.values()), ops)
"""
    done = run("-c", program, hpu=True)
    assert done.returncode == 0, done.stderr
    few, many = (line.split() for line in done.stdout.splitlines() if line.startswith("DTensor"))
    assert (few[1], many[1]) == ("4", "8")
    assert int(many[2]) == int(few[2]) <= 16, done.stdout


@pytest.mark.parametrize(
    ("error", "known"),
    [
        (
            RuntimeError("[Rank:0] FATAL ERROR :: MODULE:PT_DEVMEM Allocation failed for size::4194304 (4)MB"),
            True,
        ),
        (torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 MiB."), True),
        (RuntimeError("[enforce fail at alloc_cpu.cpp:1] DefaultCPUAllocator: can't allocate memory: you tried"), True),
        (RuntimeError("mat1 and mat2 shapes cannot be multiplied"), False),
        (ValueError("MODULE:PT_DEVMEM Allocation failed for size"), False),
    ],
)
def test_running_out_of_memory_is_recognised(error: Exception, known: bool) -> None:
    assert is_out_of_memory(error) is known


def run(*command: str, hpu: bool = False, **environment: str) -> subprocess.CompletedProcess[str]:
    """A script of a user's."""
    return interpreter.run(zygote(cards=hpu), "-W", "ignore", *command, **environment)


@pytest.mark.parametrize("lightning", ["lightning.pytorch", "pytorch_lightning"])
def test_a_users_own_module_trains_with_lightnings_own_trainer(lightning: str, tmp_path: Path) -> None:
    """Lightning starts both processes itself; each strategy trains, validates, saves, resumes and predicts."""
    result = run(str(HERE / "lightning_script.py"), lightning, str(tmp_path))
    assert result.returncode == 0, result.stdout + result.stderr
    seen = json.loads((tmp_path / "seen.json").read_text())
    assert seen["dtypes"] == ["torch.bfloat16"]  # Lightning by itself would have autocast for CUDA: float32 here
    assert seen["validated"] > 0
    common = {"step": 6, "ranks agree": True, "weights": "torch.float32"}
    assert seen["habana_ddp"] == {**common, "sharded": False, "predictions": 4}
    assert seen["habana_fsdp"] == {**common, "sharded": True, "predictions": None}


def test_the_pages_example_learns() -> None:
    page = HERE.parents[1] / "docs" / "use" / "own-scripts.md"
    section = page.read_text().split("\n## GaudiTrainer\n")[1].split("\n## ")[0]
    program = section.split("```python\n")[1].split("```")[0]
    program += "print('step', trainer.global_step, trainer.strategy.precision_plugin.precision)\n"
    result = run("-c", program)
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines()[-1] == "step 50 bf16-mixed"


def test_a_module_of_the_other_lightning_is_told_what_to_import() -> None:
    program = (
        "import pytorch_lightning as pl\n"
        "class Mine(pl.LightningModule): pass\n"
        "from gaudi3_scale import GaudiTrainer\n"
        "GaudiTrainer('cpu', logger=False, enable_checkpointing=False).fit(Mine())\n"
    )
    result = run("-c", program)
    assert result.returncode == 1
    assert result.stderr.splitlines()[-1].endswith(
        "Mine is a module of pytorch_lightning, and GaudiTrainer is of lightning: write `import lightning.pytorch as "
        "pl` in place of `import pytorch_lightning as pl`, or use pytorch_lightning's "
        "Trainer(accelerator=GaudiAccelerator(), strategy='habana_ddp')."
    )


def test_backend_fake_is_refused_before_training() -> None:
    """Lightning would take it for hpu: collectives that do nothing, and ranks that drift apart."""
    program = (
        "import torch, lightning.pytorch as pl\n"
        "from torch.testing._internal.distributed.fake_pg import FakeStore\n"
        "import torch.distributed as dist\n"
        "dist.init_process_group('fake', store=FakeStore(), rank=0, world_size=2)\n"
        "from gaudi3_scale import GaudiTrainer\n"
        "class Mine(pl.LightningModule):\n"
        "    def __init__(self):\n"
        "        super().__init__(); self.net = torch.nn.Linear(1, 1)\n"
        "    def training_step(self, batch, index): return self.net(batch).sum()\n"
        "    def configure_optimizers(self): return torch.optim.SGD(self.parameters(), lr=0.1)\n"
        "trainer = GaudiTrainer('cpu', strategy='habana_ddp', devices=2, logger=False, enable_checkpointing=False)\n"
        "trainer.fit(Mine(), torch.utils.data.DataLoader(torch.rand(4, 1)))\n"
    )
    environment = {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2", "GROUP_RANK": "0"}
    agent = {"TORCHELASTIC_RUN_ID": "x", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    result = run("-c", program, **environment, **agent)
    assert result.returncode == 1
    assert (
        "TrainerError: The process group's backend is 'fake', which exchanges nothing: import the real one (gloo)"
        in (result.stderr)
    )


@pytest.mark.skipif(not SIMULATOR.is_dir(), reason="the simulated hpu is not built: `make hpu` builds it")
def test_training_on_a_simulated_card_equals_the_cpu_to_the_last_bit(tmp_path: Path) -> None:
    """Llama, Mixtral and BERT in float32 on one thread: one process, and two with each strategy."""
    launch = ("-m", "torch.distributed.run", "--nproc-per-node=2", "--rdzv-backend=c10d", "--rdzv-id=parity")
    for device in ("cpu", "hpu"):
        script = (str(HERE / "parity.py"), device, str(tmp_path))
        alone = run(*script, "gaudi_single", hpu=device == "hpu")
        assert alone.returncode == 0, alone.stderr
        two = run(
            *launch,
            f"--rdzv-endpoint=127.0.0.1:{free_port()}",
            *script,
            "habana_ddp",
            "habana_fsdp",
            hpu=device == "hpu",
        )
        assert two.returncode == 0, two.stderr
    for shape in ("llama", "mixtral", "bert"):
        for strategy in ("gaudi_single", "habana_ddp", "habana_fsdp"):
            on_cpu, on_hpu = (
                torch.load(tmp_path / f"{shape}-{device}-{strategy}.pt", weights_only=True) for device in ("cpu", "hpu")
            )
            assert list(on_cpu) == list(on_hpu)
            different = [name for name in on_cpu if not torch.equal(on_cpu[name], on_hpu[name])]
            assert different == [], f"{shape} {strategy}"
        # The strategies agree with one another up to the order of a sum.
        ddp, fsdp = (
            torch.load(tmp_path / f"{shape}-hpu-{s}.pt", weights_only=True) for s in ("habana_ddp", "habana_fsdp")
        )
        for name in ddp:
            torch.testing.assert_close(ddp[name], fsdp[name], rtol=1e-4, atol=1e-5)


def test_the_strategies_leave_sigterm_to_whoever_handles_it() -> None:
    trainer = GaudiTrainer("cpu", max_steps=1, **QUIET)
    before = signal.getsignal(signal.SIGTERM)
    trainer.fit(Line(), torch.utils.data.DataLoader(torch.rand(4, 2)))
    assert signal.getsignal(signal.SIGTERM) is before
    assert HabanaFSDPStrategy.strategy_name == "habana_fsdp"


@pytest.mark.parametrize("lightning", ["lightning.pytorch", "pytorch_lightning"])
@pytest.mark.parametrize("precision", ["16-mixed", "16-true", "64-true"])
def test_a_precision_that_would_train_in_another_is_refused(lightning: str, precision: str) -> None:
    """Lightning's own plugins autocast for CUDA, scale for CUDA, or are of a dtype that no card has."""
    theirs = importlib.import_module(lightning)
    for strategy in ("gaudi_single", "habana_ddp", "habana_fsdp"):
        with pytest.raises(ConfigError) as refused:
            theirs.Trainer(accelerator=GaudiAccelerator("cpu"), strategy=strategy, precision=precision, **QUIET)
        assert str(refused.value) == f"precision is '{precision}': give one of 32-true, bf16-mixed, bf16-true."


class Widened(MixedPrecision):
    """A user's plugin, of which nobody knows what it does."""

    def __init__(self) -> None:
        super().__init__("bf16-mixed", "cpu")


@pytest.mark.parametrize("trainer", [pl.Trainer, GaudiTrainer])
def test_a_plugin_that_is_not_ours_is_refused_by_name(trainer: Any) -> None:
    with pytest.raises(ConfigError, match=r"^precision is 'Widened': give one of 32-true, bf16-mixed, bf16-true\.$"):
        trainer(accelerator=GaudiAccelerator("cpu"), strategy="habana_ddp", plugins=[Widened()], **QUIET)
    trainer(accelerator=GaudiAccelerator("cpu"), strategy="habana_ddp", plugins=[Precision()], **QUIET)


def test_what_a_lazy_device_collected_runs_after_each_of_these() -> None:
    """A device that runs nothing before a boundary would keep a step's work, and its memory, for the next one."""
    ended = ["post_backward", "optimizer_step", "validation_step", "test_step", "predict_step"]
    seen: list[str] = []

    class Theirs:
        def __getattr__(self, name: str) -> Any:
            return None

    for name in ended:
        setattr(Theirs, name, lambda self, value, name=name, more=0: seen.append(name) or value + more)

    class Ours(GaudiStrategy, Theirs):
        gaudi_device = Device("hpu", 0, "hccl", mark_step=lambda: seen.append("boundary"))

    assert [getattr(Ours(), name)(1, more=2) for name in ended] == [3] * 5
    assert seen == [each for name in ended for each in (name, "boundary")]
