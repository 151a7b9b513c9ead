"""A small Llama, its loss, and what a step of it really allocates."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn
from torch.profiler import ProfilerActivity, profile
from torch.utils._python_dispatch import TorchDispatchMode
from transformers import LlamaConfig, LlamaForCausalLM

VOCABULARY = 512


def small_llama(attention: str = "sdpa", layers: int = 3, width: int = 64, dropout: float = 0.0) -> nn.Module:
    """The same weights at every call, in training mode."""
    torch.manual_seed(7)
    config = LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=width,
        intermediate_size=width * 2,
        num_hidden_layers=layers,
        num_attention_heads=4,
        num_key_value_heads=2,
        use_cache=False,
        attn_implementation=attention,
        attention_dropout=dropout,
        tie_word_embeddings=False,
    )
    return LlamaForCausalLM(config).train()


def loss(model: nn.Module, samples: Tensor) -> Tensor:
    """Of samples (B, T + 1)."""
    logits = model(input_ids=samples[:, :-1], use_cache=False).logits
    return nn.functional.cross_entropy(logits.flatten(0, 1).float(), samples[:, 1:].flatten())


def samples(batch: int, length: int = 64) -> Tensor:
    """The same ones at every call."""
    return torch.randint(0, VOCABULARY, (batch, length + 1), generator=torch.Generator().manual_seed(3))


def spec(batch: int, length: int = 64) -> list[Tensor]:
    """The shape of them."""
    return [torch.empty(batch, length + 1, dtype=torch.int64, device="meta")]


def gradients(model: nn.Module, batch: Tensor) -> dict[str, Tensor]:
    """Of one pass, by parameter; the random state is the same at every call."""
    torch.manual_seed(11)
    model.zero_grad()
    loss(model, batch).backward()
    return {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}


def allocated_peak(
    make: Callable[[], nn.Module],
    inputs: Tensor,
    precision: Callable[[], AbstractContextManager[Any]] = nullcontext,
    objective: Callable[[nn.Module, Tensor], Tensor] = loss,
) -> int:
    """Most bytes that torch's CPU allocator had given out at an instant of two steps, as its profiler saw them."""
    gc.collect()  # what is freed within the profile must have been allocated within
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        model, inputs = make(), inputs.clone()
        optimizer = torch.optim.AdamW(model.parameters(), fused=True)
        for _ in range(2):
            with precision():
                value = objective(model, inputs)
            model.zero_grad()
            value.backward()
            del value
            optimizer.step()
    results: Any = profiler.profiler
    events = [event for event in results.kineto_results.events() if event.name() == "[memory]"]
    live = peak = 0
    for event in sorted(events, key=lambda each: each.start_ns()):
        live += event.nbytes()
        peak = max(peak, live)
    return peak


class Operations(TorchDispatchMode):
    """Counts operations by name, and by name and dtype of the result."""

    def __init__(self) -> None:
        super().__init__()
        self.names: Counter[str] = Counter()
        self.dtypes: Counter[tuple[str, torch.dtype]] = Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        name = func.name().removeprefix("aten::").split(".")[0]
        self.names[name] += 1
        if isinstance(result, Tensor):
            self.dtypes[name, result.dtype] += 1
        return result
