"""Capture of the backward pass as a graph of its own."""

from __future__ import annotations

from typing import Any


def enable_compiled_autograd(**kwargs: Any) -> None:
    """Compile backward passes with `hpu_backend` from now on; the arguments are torch.compile's."""
    import functools

    import torch
    from torch._dynamo import compiled_autograd

    def compiler(graph: Any) -> Any:
        return torch.compile(graph, backend="hpu_backend", options={"inference": False}, **kwargs)

    torch._C._dynamo.compiled_autograd.set_autograd_compiler(
        functools.partial(compiled_autograd.AutogradCompilerInstance, compiler), False
    )
    torch._dynamo.reset()
    torch._dynamo.config.optimize_ddp = "python_reducer"
    torch._C._set_autograd_fallback_mode("nothing")
