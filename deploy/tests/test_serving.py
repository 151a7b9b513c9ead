"""The command serving-plan: a table, one sentence, and exit codes that a script can use."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from conftest import Deploy

CONFIG = {
    "model_type": "llama",
    "hidden_size": 4096,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "max_position_embeddings": 131072,
}
SIZE = ("--weights-gib", "15")


@pytest.fixture
def model(deploy: Deploy) -> Path:
    """A folder with a configuration and no weights."""
    folder = deploy.folder / "model"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(CONFIG))
    return folder


def test_what_fits(deploy: Deploy, model: Path) -> None:
    said = deploy.run("serving-plan", "model", *SIZE, "--length", "4096", "--sequences", "64")
    assert "\nfits: weights 15.0 GiB, cache 89.5 GiB (" in said
    rows = {tuple(line.split()) for line in said.splitlines()}
    assert {("memory", "126.0", "GiB"), ("weights", "15.0", "GiB"), ("left", "for", "graphs", "21.0", "GiB")} <= rows
    assert "is the stricter end of one report (vllm-project/vllm-gaudi#1736)" in said
    assert "proposed" not in said and "VLLM_BUCKETING_STRATEGY" not in said


def test_what_does_not_fit_says_why_and_what_does(deploy: Deploy, model: Path) -> None:
    said = deploy.run("serving-plan", "model", *SIZE, "--sequences", "512", "--reserve", "0", code=1)
    assert "does not fit because the warm-up of" in said and "; fits with" in said
    assert "as asked" in said and "proposed" in said
    assert "\nVLLM_BUCKETING_STRATEGY=lin\n" in said
    answer = json.loads(
        deploy.run("serving-plan", "model", *SIZE, "--sequences", "512", "--reserve", "0", "--json", code=1)
    )
    assert answer["schema"] == 1 and answer["fits"] is False
    assert all(f"{name}={value}\n" in said for name, value in answer["environment"].items())


def test_bucket_variables_that_do_nothing_are_named(deploy: Deploy, model: Path) -> None:
    bucket = ("--bucket", "VLLM_DECODE_BS_BUCKET_MAX=8")
    said = deploy.run("serving-plan", "model", *SIZE, "--length", "4096", *bucket)
    assert "under exp the plugin does not read VLLM_DECODE_BS_BUCKET_MAX" in said


@pytest.mark.parametrize(
    "words, reason",
    [
        (("model",), "has no *.safetensors"),
        (("none",), "none is no folder"),
        (("model", *SIZE, "--length", "200000"), "the model was made for 131072 tokens: give at most 131072."),
        (("model", *SIZE, "--cards", "3"), "3 cards cannot share 32 attention heads"),
        (("model", *SIZE, "--card", "gaudi9"), "--card is 'gaudi9': give gaudi3 or gaudi2."),
        (("model", "--weights-gib", "-1"), "--weights-gib is -1: give what all weights have, above 0."),
        (("model", "--weights-gib", "nan"), "--weights-gib is nan"),
        (("model", *SIZE, "--card-gib", "inf"), "--card-gib is inf: give what a card has, above 0."),
        (("model", *SIZE, "--bucket", "VLLM_X=a"), "--bucket is 'VLLM_X=a'"),
        (("model", *SIZE, "--bucket", "VLLM_X=1"), "VLLM_X is no bucket variable"),
    ],
)
def test_wrong_requests(deploy: Deploy, model: Path, words: tuple[str, ...], reason: str) -> None:
    assert reason in deploy.run("serving-plan", *words, code=2)
