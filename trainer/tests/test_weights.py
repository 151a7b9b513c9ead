"""A folder's weights, read in parts: the same numbers as read whole, and no process ever holds all of them."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import pytest
import ranks
import torch
from conftest import Job, assert_same
from safetensors.torch import load_file, save_file
from test_export import job, losses

from gaudi3_scale.config import ModelConfig, load
from gaudi3_scale.errors import ConfigError
from gaudi3_scale.hpu.device import Device
from gaudi3_scale.models.blocks import repeated_blocks
from gaudi3_scale.models.build import build
from gaudi3_scale.models.materialise import build_deferred, materialise
from gaudi3_scale.step.module import LanguageModule

TIED = {"tie_word_embeddings": True}


def folder_of(path: Path, name: str, size: str = "100KB", dtype: torch.dtype = torch.float32, **changes: Any) -> Path:
    """A folder with random weights in several files."""
    torch.manual_seed(3)
    model: Any = build(ModelConfig(name=name, config=changes))
    model.to(dtype).save_pretrained(path, max_shard_size=size)
    return path


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Of each kind one: as it is, tied, with experts that the model has as one tensor, with old names."""
    top = tmp_path_factory.mktemp("folders")
    made = {name: folder_of(top / name, name) for name in ("llama-tiny", "mixtral-tiny", "bert-tiny")}
    return {**made, "tied": folder_of(top / "tied", "llama-tiny", **TIED)}


def whole(folder: Path) -> dict[str, torch.Tensor]:
    """The parameters as transformers reads them."""
    return dict(build(ModelConfig(name=str(folder))).state_dict())


def parts(rank: int, folders: list[Path], replicas: list[int]) -> list[dict[str, Any]]:
    """Deferred models, each of so many replicas that are split over the other processes, and put together again."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    size, made = torch.distributed.get_world_size(), []
    for folder, copies in zip(folders, replicas, strict=True):
        shape, names = ((copies, size // copies), ("replicas", "shards")) if copies > 1 else ((size,), ("shards",))
        mesh = init_device_mesh("cpu", shape, mesh_dim_names=names)
        model, plan = build_deferred(load(None, ["train.strategy=habana_fsdp", f"model.name={folder}"]))
        for _, block in repeated_blocks(model):
            fully_shard(block, mesh=mesh)
        fully_shard(model, mesh=mesh)
        materialise(model, 7, torch.device("cpu"), plan)
        held = sum(p.to_local().numel() for p in model.parameters()) / sum(p.numel() for p in model.parameters())
        assert held < 1.1 * copies / size
        made.append({key: value.full_tensor().numpy() for key, value in model.state_dict().items()})
    return made


def test_each_process_reads_its_part_of_the_weights(folders: dict[str, Path], tmp_path: Path) -> None:
    read = [*folders.values(), folders["mixtral-tiny"]]
    for given in ranks.run(2, tmp_path, parts, read, [1] * len(folders) + [2]):
        for folder, tensors in zip(read, given, strict=True):
            assert_same({key: torch.from_numpy(value) for key, value in tensors.items()}, whole(folder))


def test_one_process_reads_the_same(folders: dict[str, Path]) -> None:
    for folder in folders.values():
        model, plan = build_deferred(load(None, ["train.strategy=habana_fsdp", f"model.name={folder}"]))
        assert next(model.parameters()).is_meta
        materialise(model, 7, torch.device("cpu"), plan)
        assert_same(dict(model.state_dict()), whole(folder))
        for (name, buffer), other in zip(
            model.named_buffers(), build(ModelConfig(name=str(folder))).buffers(), strict=True
        ):
            assert torch.equal(buffer, other), name
    tied: Any = model
    assert tied.lm_head.weight is tied.model.embed_tokens.weight


def peak(rank: int, folder: Path) -> tuple[int, int, float]:
    """Bytes by which this process grew at most while it took its part, those of the whole in float32, and a sum."""
    from torch.distributed.fsdp import fully_shard

    def memory(kind: str) -> int:
        found = re.search(rf"{kind}:\s+(\d+) kB", Path("/proc/self/status").read_text())
        assert found is not None
        return int(found[1]) * 1024

    warm, _ = build_deferred(load(None, ["train.strategy=habana_fsdp", f"model.name={folder}"]))
    fully_shard(warm)
    Path("/proc/self/clear_refs").write_text("5")
    before = memory("VmRSS")
    model, plan = build_deferred(load(None, ["train.strategy=habana_fsdp", f"model.name={folder}"]))
    for _, block in repeated_blocks(model):
        fully_shard(block)
    fully_shard(model)
    materialise(model, 7, torch.device("cpu"), plan)
    size = sum(p.numel() for p in model.parameters()) * 4
    return memory("VmHWM") - before, size, sum(p.to_local().double().sum().item() for p in model.parameters())


def test_no_process_ever_holds_the_whole(tmp_path: Path) -> None:
    sizes = {"hidden_size": 512, "intermediate_size": 1408, "num_hidden_layers": 10}
    folder = folder_of(tmp_path / "model", "llama-tiny", "8MB", torch.bfloat16, **sizes)
    told = ranks.run(2, tmp_path, peak, folder)
    size = told[0][1]
    assert size > 80 * 2**20
    assert [grown / size < 0.75 for grown, _, _ in told] == [True, True], told
    total = sum(
        value.double().sum().item() for path in folder.glob("*.safetensors") for value in load_file(path).values()
    )
    assert math.isclose(sum(part for _, _, part in told), total, rel_tol=1e-9, abs_tol=1e-6)


def test_a_job_that_reads_in_parts_trains_as_one_that_reads_the_whole(
    folders: dict[str, Path], text: Path, tmp_path: Path
) -> None:
    settings = (f"model.name={folders['mixtral-tiny']}", "train.strategy=habana_fsdp", "train.learning_rate=1e-2")
    settings += ("train.max_steps=6", "train.log_every=1", "train.collective_timeout=60", "model.hidden_size=128")
    settings += ("model.intermediate_size=344", "model.layers=3")  # as by default: they are not for folders
    read, deferred = Job(tmp_path / "read", text, processes=2), Job(tmp_path / "deferred", text, processes=2)
    read.run(*settings)
    deferred.run(*settings, "model.deferred=true")
    assert len(read.losses()) == 6 and deferred.losses() == read.losses()
    assert deferred.losses()[-1][1] < deferred.losses()[0][1] - 0.5
    alone = tmp_path / "alone"
    job(alone, text, *settings, "model.deferred=true", "train.micro_batch_size=4")
    job(tmp_path / "usual", text, *settings, "train.micro_batch_size=4")
    assert losses(alone) == losses(tmp_path / "usual")


def refusal(folder: Path, *overrides: str) -> str:
    """Why a folder cannot be read in parts."""
    config = load(None, ["train.strategy=habana_fsdp", f"model.name={folder}", "model.deferred=true", *overrides])
    with pytest.raises(ConfigError) as error:
        LanguageModule(config, Device("cpu", 0, "gloo"))
    return str(error.value)


def test_weights_that_do_not_fit_are_refused_in_a_sentence(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "model", "llama-tiny", "1GB")
    remedy = ": mend the folder, take back what model.config changes, or set model.weights to random."
    tensors = load_file(folder / "model.safetensors")
    assert refusal(folder, "model.config={vocab_size: 512}") == (
        f"The weights in {str(folder)!r} have 'lm_head.weight' as [256, 64], and the configured shape is [512, 64]"
        f"{remedy}"
    )
    assert refusal(folder, "model.config={num_hidden_layers: 3}") == (
        f"The weights in {str(folder)!r} lack 'model.layers.2.input_layernorm.weight' and 8 more in the configured "
        f"shape{remedy}"
    )
    save_file(
        {name: value for name, value in tensors.items() if name != "model.norm.weight"}, folder / "model.safetensors"
    )
    assert refusal(folder) == (
        f"The weights in {str(folder)!r} lack 'model.norm.weight' and 0 more in the configured shape{remedy}"
    )
    (folder / "model.safetensors").write_bytes(b"no weights")
    assert refusal(folder).startswith(f"{folder / 'model.safetensors'} is no file of safetensors: download it again")
