"""Graphs for training, whose modules run as they are; the conditions on them are checked.

Signatures and conditions: [bridge] 1.19, `hpu/graphs.py`.
"""

from __future__ import annotations

import copy
import inspect
from typing import Any

import torch
from torch.nn.parallel import DataParallel, DistributedDataParallel

from gaudi3_hpu_simulator.passing import allow_graphs, run_uncompiled
from habana_frameworks.torch import mode


def make_graphed_callables(
    callables: Any,
    sample_args: Any,
    warmups: int = 0,
    allow_unused_input: bool = False,
    asynchronous: bool = False,
    disable_tensor_cache: bool = False,
    dry_run: bool = False,
) -> Any:
    """The callable, or the tuple of them, which run as they are.

    A module may have no hooks and no trainable buffers, and each sample is a tuple of tensors.
    """
    allow_graphs()
    several = isinstance(callables, tuple)
    samples = sample_args if several else (sample_args,)
    for each, arguments in zip(callables if several else (callables,), samples, strict=True):
        if isinstance(each, torch.nn.Module):
            hooks = (each._backward_hooks, each._forward_hooks, each._forward_pre_hooks)
            assert not any(hooks), "A module has to be graphed before hooks are registered on it."
            assert not any(buffer.requires_grad for buffer in each.buffers()), (
                "Buffers of a graphed module cannot train."
            )
        assert all(isinstance(argument, torch.Tensor) for argument in arguments), "sample_args have to be tensors."
    return callables


class ModuleCacher:
    """Made with the number of graphs to keep, and called with a model, which then trains in graphs: here as it is."""

    def __init__(self, max_graphs: int = 10) -> None:
        self.max_graphs = max_graphs

    def __call__(
        self,
        model: torch.nn.Module,
        use_lfu: bool = False,
        inplace: bool = True,
        allow_unused_input: bool = False,
        asynchronous: bool = False,
        have_grad_accumulation: bool = False,
        log_frequency: int = 100,
        verbose: bool = False,
        disable_tensor_cache: bool = False,
        dry_run: bool = False,
    ) -> torch.nn.Module:
        """The model, or a copy of it, with the methods that programs call on such a one."""
        if mode.LAZY:
            note = "modules in ModuleCacher train without graphs, nothing was recorded"
            run_uncompiled("graphs to record and replay", note)
        assert not isinstance(model, (DataParallel, DistributedDataParallel)), (
            "ModuleCacher takes the model before DataParallel or DistributedDataParallel does."
        )
        kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.VAR_POSITIONAL)
        for parameter in inspect.signature(model.forward).parameters.values():
            assert parameter.kind not in kinds, f"ModuleCacher takes no forward with the argument {parameter}."
        cached: Any = model if inplace else copy.copy(model)
        cached.orig_forward = cached.forward
        cached.is_hpugraph_tracing = lambda: False
        cached.set_iteration_count = lambda iter_num: None
        cached.capture_start = lambda: None
        cached.capture_end = lambda: None
        return model if inplace else cached


class TensorPacker:
    """Takes the tensors out of nested tuples, lists and dicts, and puts others in their places."""

    class Index:
        """A tensor's place."""

        def __init__(self, value: int) -> None:
            self.value = value

        def __repr__(self) -> str:
            return f"#{self.value}"

    def __init__(self, is_out_pack: bool = False, verbose: bool = False) -> None:
        self._verbose = verbose

    def pack(self, outs: Any) -> tuple[tuple[torch.Tensor, ...], Any]:
        """The tensors, and what `unpack` needs to put them back."""
        found: list[torch.Tensor] = []

        def place(leaf: Any) -> Any:
            if not isinstance(leaf, torch.Tensor):
                return leaf
            found.append(leaf)
            return TensorPacker.Index(len(found) - 1)

        metadata = _mapped(outs, place)
        return tuple(found), metadata

    def unpack(self, tensors: Any, metadata: Any) -> Any:
        """The structure of `metadata` with these tensors."""
        return _mapped(metadata, lambda leaf: tensors[leaf.value] if isinstance(leaf, TensorPacker.Index) else leaf)


def _mapped(tree: Any, change: Any) -> Any:
    if isinstance(tree, dict):
        result = copy.copy(tree)
        for name in tree:
            result[name] = _mapped(tree[name], change)
        return result
    if isinstance(tree, tuple):
        return tuple(_mapped(part, change) for part in tree)
    if isinstance(tree, list):
        return [_mapped(part, change) for part in tree]
    return change(tree)
