"""GaudiCheckpoint in a user's own Trainer: resumed in the middle of an epoch, as if nothing had happened."""

from __future__ import annotations

import threading
import time
from functools import partial
from pathlib import Path
from typing import Any

import lightning.pytorch as pl
import objects
import pytest
import ranks
import torch
from conftest import QUIET
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torchdata.stateful_dataloader import StatefulDataLoader

from gaudi3_scale.checkpoint import GaudiCheckpoint
from gaudi3_scale.checkpoint.fetch import read_all
from gaudi3_scale.checkpoint.target import DirectoryTarget
from gaudi3_scale.errors import TrainerError


class Module(pl.LightningModule):
    """A user's module with everything that has to be restored: dropout, momentum, a schedule."""

    def __init__(self, sharded: bool = False) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layers = nn.Sequential(nn.Linear(4, 16), nn.Dropout(0.2), nn.Linear(16, 1))
        self.sharded = sharded
        self.losses: list[float] = []

    def configure_model(self) -> None:
        """Sharded over the processes, if wanted."""
        if self.sharded:
            from torch.distributed.fsdp import fully_shard

            fully_shard(self.layers, mesh=self.device_mesh["data_parallel"])  # type: ignore[index]

    def training_step(self, batch: Any, batch_idx: int) -> torch.Tensor:
        """Squares."""
        loss: torch.Tensor = self.layers(batch[0]).square().mean()
        self.losses.append(loss.item())
        return loss

    def configure_optimizers(self) -> Any:
        """AdamW and a schedule by step."""
        optimizer = torch.optim.AdamW(self.parameters(), lr=0.01)
        return [optimizer], [
            {"scheduler": torch.optim.lr_scheduler.StepLR(optimizer, 3, 0.5), "interval": "step"},
        ]


class Stop(pl.Callback):
    """Ends the process's fit as a kill would, after a number of batches."""

    def __init__(self, batches: int) -> None:
        self.left = batches

    def on_train_batch_end(self, *arguments: Any) -> None:
        """Count down."""
        self.left -= 1
        if not self.left:
            raise KeyboardInterrupt


def fit(
    folder: Path,
    stop: int = 0,
    steps: int = 20,
    loader: Any = StatefulDataLoader,
    module: Module | None = None,
    accumulate: int = 2,
    **options: Any,
) -> Module:
    """Train on 7 batches per epoch, shuffled, until a kill if there is one; `options` are those of GaudiCheckpoint."""
    torch.manual_seed(1)
    data = TensorDataset(torch.randn(28, 4, generator=torch.Generator().manual_seed(2)))
    module = module or Module()
    checkpoint = GaudiCheckpoint(folder, every_n_steps=2, **options)
    trainer = pl.Trainer(
        accelerator="cpu",
        max_steps=steps,
        max_epochs=-1,
        accumulate_grad_batches=accumulate,
        callbacks=[checkpoint, *([Stop(stop)] if stop else [])],
        **QUIET,
        default_root_dir=folder,
    )
    try:
        trainer.fit(module, loader(data, batch_size=4, shuffle=True))
    except (KeyboardInterrupt, SystemExit):
        assert checkpoint.saver is not None and checkpoint.saver.wait()
    return module


@pytest.mark.filterwarnings("ignore")
def test_a_fit_that_is_cut_off_in_mid_epoch_goes_on_as_if_it_were_not(tmp_path: Path) -> None:
    whole = fit(tmp_path / "whole")
    # Seven batches make four steps, the last of one batch. Cut off: batches, of which those in the newest checkpoint.
    for stop, kept in ((11, 11), (8, 7), (5, 4)):
        folder = tmp_path / str(stop)
        assert fit(folder, stop=stop).losses == whole.losses[:stop]
        resumed = fit(folder)
        assert resumed.losses == whole.losses[kept:], f"cut off after {stop} batches"
        for mine, theirs in zip(resumed.parameters(), whole.parameters(), strict=True):
            assert torch.equal(mine, theirs), f"cut off after {stop} batches"
    assert fit(folder).losses == [], "nothing is left to do"
    assert fit(folder, resume=None, steps=2).losses == whole.losses[:4], "anew"


@pytest.mark.filterwarnings("ignore")
def test_a_target_that_hangs_does_not_keep_a_training_from_ending(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answers = threading.Event()
    monkeypatch.setattr(DirectoryTarget, "put", lambda *_: answers.wait(30))
    began = time.monotonic()
    module = fit(tmp_path / "here", steps=2, target=str(tmp_path / "there"), upload_timeout=0.3)
    took = time.monotonic() - began
    answers.set()
    assert len(module.losses) == 4 and took < 20
    assert (
        f"{tmp_path / 'there'} has not taken all checkpoints within 0.3 s (checkpoint.upload_timeout), step 2 is "
        "missing: the nodes' disks have what they keep, and the job ends\n"
    ) in capsys.readouterr().err
    assert read_all(tmp_path / "here" / "step-00000002")["step"] == 2


class Odd(DataLoader[Any]):
    """A loader whose state cannot be stored."""

    def state_dict(self) -> Any:
        """Not readable with weights_only."""
        return {"position": Path("x")}

    def load_state_dict(self, state: Any) -> None:
        """Never called."""


@pytest.mark.filterwarnings("ignore")
def test_a_state_that_could_not_be_read_again_is_refused_when_it_is_first_saved(tmp_path: Path) -> None:
    with pytest.raises(
        TrainerError, match=r"holds an object of type pathlib[\w.]*\.\w+, which is not read from a checkpoint"
    ):
        fit(tmp_path, loader=Odd, asynchronous=False)


def sharded(rank: int, folder: Path, steps: int) -> tuple[list[float], list[float], list[str]]:
    """A user's FSDP2 module on two ranks, each a node of its own."""
    import os
    import warnings

    warnings.simplefilter("ignore")
    os.environ.update(RANK=str(rank), LOCAL_RANK="0", WORLD_SIZE="2", LOCAL_WORLD_SIZE="1", GROUP_RANK=str(rank))
    from lightning.fabric.plugins.environments import LightningEnvironment, TorchElasticEnvironment
    from lightning.pytorch.strategies import ModelParallelStrategy

    class Here(TorchElasticEnvironment):
        """The process group is there already."""

        def validate_settings(self, num_devices: int, num_nodes: int) -> None:
            """Both fit."""

    assert LightningEnvironment
    objects.allow()  # Lightning's own strategy broadcasts with them
    module = Module(sharded=True)
    trainer = pl.Trainer(
        accelerator="cpu",
        strategy=ModelParallelStrategy(data_parallel_size=2, tensor_parallel_size=1, process_group_backend="gloo"),
        devices=1,
        num_nodes=2,
        plugins=[Here()],
        max_steps=steps,
        callbacks=[GaudiCheckpoint(folder / f"node{rank}", every_n_steps=2)],
        **QUIET,
        use_distributed_sampler=False,
    )
    trainer.fit(module, StatefulDataLoader(TensorDataset(torch.ones(12, 4)), batch_size=2))
    weights = [value for p in module.parameters() for value in p.full_tensor().flatten().tolist()]  # type: ignore
    files = sorted(path.name for path in (folder / f"node{rank}" / f"step-{steps:08d}").iterdir())
    return module.losses, weights, files


def test_a_sharded_module_resumes_exactly(tmp_path: Path) -> None:
    whole = ranks.run(2, tmp_path, sharded, tmp_path / "whole", 4)
    ranks.run(2, tmp_path, sharded, tmp_path / "parts", 2)
    parts = ranks.run(2, tmp_path, sharded, tmp_path / "parts", 4)
    for (losses, weights, files), (later, same, _) in zip(whole, parts, strict=True):
        assert files == [".metadata", "__0_0.distcp", "__1_0.distcp", "manifest.json", "state.safetensors"]
        assert later == losses[2:] and same == weights


@pytest.mark.parametrize(("before", "after"), [(0, 1), (1, 0)])
def test_another_number_of_workers_is_refused_with_both_numbers(tmp_path: Path, before: int, after: int) -> None:
    fit(tmp_path, stop=4, loader=partial(StatefulDataLoader, num_workers=before))
    said = (
        rf"saved with num_workers={before} of the data loader, and this run has {after}, .*: "
        rf"set num_workers={before}\.$"
    )
    with pytest.raises(TrainerError, match=said):
        fit(tmp_path, loader=partial(StatefulDataLoader, num_workers=after))
