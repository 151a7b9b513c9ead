"""Rows of one sequence: attention stays causal to its kernel, and nothing is read from the device."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from gaudi3_scale.config import load
from gaudi3_scale.job.fit import fit
from gaudi3_scale.models.blocks import compile_blocks
from gaudi3_scale.models.build import build
from gaudi3_scale.models.objectives import example, training_loss

READ = torch.ops.aten._local_scalar_dense.default


def test_compiled_blocks_attend_causally_without_a_mask() -> None:
    seen: list[tuple[Any, Any]] = []

    def look(graph: torch.fx.GraphModule, inputs: Any) -> Any:
        for node in graph.graph.nodes:
            if node.target is torch.nn.functional.scaled_dot_product_attention:
                mask = node.kwargs.get("attn_mask", node.args[3] if len(node.args) > 3 else None)
                seen.append((mask, node.kwargs.get("is_causal")))
        return graph

    config = load(None, ("model.name=llama-tiny", "model.sequence_length=16")).model
    model = build(config).train()
    compile_blocks(model, look)
    training_loss(model, example(config, 2))
    assert seen == [(None, True)]  # one graph, which all blocks share


@pytest.mark.parametrize("mode", ["eager", "compile"])
def test_a_kernel_of_attention_is_called_causal_and_without_a_mask(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[Any, Any]] = []
    attend = torch.nn.functional.scaled_dot_product_attention

    def recorded(query: Any, key: Any, value: Any, attn_mask: Any = None, **more: Any) -> Any:
        seen.append((attn_mask, more["is_causal"]))
        return attend(query, key, value, attn_mask, **more)

    monkeypatch.setattr(torch.nn.functional, "scaled_dot_product_attention", recorded)
    config = load(None, ("model.name=llama-tiny", "model.sequence_length=16")).model
    model: Any = build(config).train()
    if mode == "compile":
        model = torch.compile(model, backend="eager")  # the whole of it, as a user's own script may
    training_loss(model, example(config, 2))
    assert set(seen) == {(None, True)}


def test_no_value_is_read_from_the_device_between_log_steps(tmp_path: Path, text: Path) -> None:
    class Reads(TorchDispatchMode):
        count = 0

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            self.count += func is READ
            return func(*args, **(kwargs or {}))

    def reads(steps: int) -> int:
        settings = [f"output_dir={tmp_path / str(steps)}", f"train.max_steps={steps}", f"data.source={text}"]
        settings += ["device=cpu", "model.layers=1", "model.hidden_size=32", "model.sequence_length=16"]
        settings += ["train.log_every=1000", "train.micro_batch_size=2", "train.accumulation_steps=2"]
        settings += ["checkpoint.every=1000", "data.validation_samples=1", "metrics.enabled=false", "train.threads=1"]
        with Reads() as counted:
            fit(load(None, settings))
        return counted.count

    assert reads(13) == reads(3)
