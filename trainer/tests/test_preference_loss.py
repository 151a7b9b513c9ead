"""The loss of preferences: trl's, to five digits and in its gradients, whether in chunks or at once."""

from __future__ import annotations

import json
import math
from pathlib import Path

import preference_trl as trl
import pytest
import torch
from preferences import TALKS, TEXTS, batch_of, computed
from test_chat import PLAIN, folder

from gaudi3_scale.models.preference import PreferenceLoss
from gaudi3_scale.step.validation import filled

FROZEN = json.loads(Path(__file__).with_name("preference_trl.json").read_text())
"""What DPOTrainer of trl 1.16.0 has of the same batch (with torch 2.13.0, transformers 5.23.0 and peft 0.21.2, in
float32 on a CPU); the output of preference_trl.py, which `make proof-preference` compares with trl again."""


@pytest.fixture(scope="module")
def batches(tmp_path_factory: pytest.TempPathFactory) -> dict[str, torch.Tensor]:
    home = folder(tmp_path_factory.mktemp("home") / "tokenizer", PLAIN)
    texts = batch_of(TEXTS, home, tmp_path_factory.mktemp("texts"))
    talks = batch_of(TALKS, home, tmp_path_factory.mktemp("talks"))
    return {case: talks if case == "messages" else texts for case in trl.CASES}


@pytest.mark.parametrize("chunks", [0, 5])
@pytest.mark.parametrize("case", trl.CASES)
def test_loss_gradients_and_figures_are_those_of_trl(case: str, chunks: int, batches: dict[str, torch.Tensor]) -> None:
    if trl.CASES[case]["adapters"]:
        pytest.importorskip("peft")
    found = computed(case, batches[case], chunks)
    assert found == pytest.approx(FROZEN[case], rel=1e-5, abs=1e-5)
    assert found["loss"] == pytest.approx(FROZEN[case]["loss"], rel=0, abs=1e-5)


def test_a_row_that_fills_a_batch_counts_in_nothing(batches: dict[str, torch.Tensor]) -> None:
    loss = PreferenceLoss(0.1, 0, False)
    batch = batches["texts"]
    with torch.no_grad():
        value, figures = loss(trl.model(), batch)
        more, others = loss(trl.model(), filled(batch, 8))
    assert more.item() == pytest.approx(value.item(), rel=1e-6)
    assert others.tolist() == pytest.approx(figures.tolist(), rel=1e-6)


def test_a_model_that_has_learnt_nothing_yet_prefers_none(batches: dict[str, torch.Tensor]) -> None:
    peft = pytest.importorskip("peft")
    settings = peft.LoraConfig(**{**trl.LORA, "lora_dropout": 0.5})
    model = peft.get_peft_model(trl.model(), settings)
    value, figures = PreferenceLoss(0.1, 0, True)(model, batches["texts"])
    assert value.item() == pytest.approx(math.log(2), rel=1e-6)
    assert figures[:4].tolist() == [0, 0, 0, 0]
    assert model.training and all(module.training for module in model.modules())  # as it was
    trl.fill(trl.adapters(model), 0.2, 0.0)
    reference = [PreferenceLoss(0.1, 0, True)._reference(model, batches["texts"], None) for _ in range(2)]
    assert torch.equal(*reference)  # nothing is dropped there
