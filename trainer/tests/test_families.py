"""Every family of models that is supported is built, trained, saved, resumed, exported and read in parts."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from conftest import assert_same
from families import DENSE, EXPERT, FAMILIES, MASKED, OLDER
from test_export import job, losses, set_back

from gaudi3_scale.checkpoint.fetch import read_all
from gaudi3_scale.config import load
from gaudi3_scale.job.export import export
from gaudi3_scale.models.materialise import build_deferred, materialise
from tests.suite.proof import Proof

STEPS = 2


PROOF = Proof(
    "families",
    {"dense and older": [*DENSE, *OLDER], "experts": list(EXPERT), "masked": list(MASKED)},
)
TEXT = """
Each case builds the smallest model of a family from a `config.json`, as `model.name` of a folder does, trains it for
two steps on the CPU, and saves a checkpoint after each. The job is set back to the first one and run again: losses,
weights and optimizer are the same to the bit. transformers loads the export, which has the weights that were trained,
to the bit. `model.deferred` then reads the export in parts, and gets the same weights. Nothing here was run on a Gaudi.
"""


@pytest.mark.parametrize("family", PROOF.parameters({name: name for name in FAMILIES}))
def test_a_family_is_trained_saved_resumed_and_exported(family: str, text: Path, tmp_path: Path) -> None:
    import transformers

    PROOF.skip_if_held(family)
    kind, sizes = FAMILIES[family]
    folder = tmp_path / family
    transformers.AutoConfig.for_model(family, architectures=[kind], **sizes).save_pretrained(folder)
    settings = (f"model.name={folder}", f"train.max_steps={STEPS}", "train.warmup_steps=1", "train.micro_batch_size=4")
    settings += ("checkpoint.every=1", "train.learning_rate=1e-2")
    settings += ("model.weights=random",)
    config = job(tmp_path / "job", text, *settings)
    whole, newest = losses(tmp_path / "job"), tmp_path / "job" / "checkpoints" / f"step-{STEPS:08d}"
    trained = read_all(newest)
    assert len(whole) == STEPS and 4.5 < whole[0] < 7 and whole[1] != whole[0]
    set_back(tmp_path / "job", 1)
    job(tmp_path / "job", text, *settings)
    assert losses(tmp_path / "job") == whole
    assert_same(read_all(newest), trained)

    assert export(config, tmp_path / "model", None, merge=False, precision="float32") == (STEPS, True)
    model = getattr(transformers, kind).from_pretrained(tmp_path / "model", local_files_only=True)
    weights = {f"model.{name}": value for name, value in sorted(model.state_dict().items())}
    assert_same(weights, {name: trained["tensors"][name] for name in sorted(weights)})
    settings = ("train.strategy=habana_fsdp", f"model.name={tmp_path / 'model'}", "model.sequence_length=32")
    parts, plan = build_deferred(load(None, list(settings)))
    materialise(parts, 0, torch.device("cpu"), plan)
    assert_same(dict(parts.state_dict()), dict(model.state_dict()))
    for (name, buffer), other in zip(parts.named_buffers(), model.buffers(), strict=True):
        assert torch.equal(buffer, other), name

    if PROOF.is_running:
        count = sum(parameter.numel() for parameter in model.parameters())
        row = {"class": kind, "parameters": f"{count:,}", "loss of step 1": f"{whole[0]:.4f}"}
        row |= {"of step 2": f"{whole[1]:.4f}", "resumed, exported, read in parts": "to the bit"}
        PROOF.note(family, row)
        versions = f"transformers {transformers.__version__} and torch {torch.__version__}"
        PROOF.write_table(f"Model families, with {versions}", TEXT, list(row))
