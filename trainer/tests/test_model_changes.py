"""What `model.config` may change: whatever is given, there is a model or a sentence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from test_models import refused

from gaudi3_scale.config import load
from gaudi3_scale.config.shapes import SHAPES
from gaudi3_scale.errors import ConfigError
from gaudi3_scale.models.build import architecture, build

#: Of no kind that any key of a model has all of.
ODD = (None, -1, 0, 1.5, True, "abc", [1], {"a": 1})


@pytest.mark.parametrize("name", ["mixtral-tiny", "bert-tiny"])
def test_a_change_of_any_key_gives_a_model_or_a_sentence(name: str) -> None:
    taken = 0
    for key in architecture(load(None, [f"model.name={name}"]).model).to_dict():
        for value in ODD:
            try:
                build(load(None, [f"model.name={name}", f"model.config={json.dumps({key: value})}"]).model, "meta")
                taken += 1
            except ConfigError as error:
                said = str(error)
                assert said.endswith((".", "?")) and "\n" not in said
                assert key in said or "as it is configured" in said
    assert taken > 20


@pytest.mark.parametrize("name", [name for name in SHAPES if "tiny" not in name])
def test_a_change_of_a_published_shape_is_looked_at_before_anything_is_made(name: str) -> None:
    for key, present in SHAPES[name].items():
        for value in (ODD[0], ODD[1], ODD[5], ODD[7] if not isinstance(present, dict) else 5):
            with pytest.raises(ConfigError, match=f"^model.config sets '{key}' "):
                load(None, [f"model.name={name}", f"model.config={json.dumps({key: value})}"])
    refused("sets 'max_position_embeddings' to null, which is no int as the ").job(
        f"model.name={name}", "model.config={max_position_embeddings: null}"
    )
    refused("^model.config sets 'vocab_size' to \"2024-01-01\", which is no int").job(
        f"model.name={name}", "model.config={vocab_size: 2024-01-01}"
    )
    refused(r"^model.config sets 'model_type' of '.*': it is another model then: give one by model.name; leave").job(
        f"model.name={name}", "model.config={model_type: gpt2}"
    )


def test_a_folder_of_which_no_model_can_be_made_is_refused(tmp_path: Path) -> None:
    values = architecture(load(None, ["model.name=llama-tiny"]).model).to_dict()
    for changed, sentence in (
        (
            {"hidden_act": "abc"},
            r"^No model can be made of .* as it is configured \(KeyError: .*\): mend its config.json",
        ),
        ({"vocab_size": "many"}, r"a folder without a config.json that the installed transformers knows \("),
    ):
        (tmp_path / "config.json").write_text(json.dumps(values | changed))
        with pytest.raises(ConfigError, match=sentence):
            build(load(None, [f"model.name={tmp_path}", "model.weights=random"]).model)
