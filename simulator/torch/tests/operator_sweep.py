"""Samples of torch's operator database on hpu: `operator_sweep.py WAY FIRST-LAST ...`, with two JSON lines an operator.

WAY is `run` (forward, backward and forward-mode derivatives, compared with nothing) or `fake` (with fake tensors). An
operator may refuse, but it may not end the process; with fake tensors it may not ask for data either.
"""

from __future__ import annotations

import json
import sys
import warnings
from typing import Any

import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils import _pytree as pytree

SAMPLES = 2
DATA = ("Cannot access data pointer", "data pointer of Tensor")


def on_card(value: Any) -> Any:
    return pytree.tree_map_only(torch.Tensor, lambda tensor: tensor.detach().to("hpu"), value)


def run(op: Any, sample: Any) -> None:
    arguments = on_card((sample.input, *sample.args))
    options = on_card(sample.kwargs)
    first = arguments[0]
    if isinstance(first, torch.Tensor) and first.is_floating_point() and op.supports_autograd:
        first.requires_grad_()
    output = op.op(*arguments, **options)
    for tensor in pytree.tree_leaves(output):
        if isinstance(tensor, torch.Tensor) and tensor.requires_grad and tensor.is_floating_point():
            tensor.sum().backward(retain_graph=True)
    if isinstance(first, torch.Tensor) and first.requires_grad and op.supports_forward_ad:
        torch.func.jvp(lambda x: op.op(x, *arguments[1:], **options), (first.detach(),), (torch.ones_like(first),))


def fake(op: Any, sample: Any) -> None:
    with torch._subclasses.FakeTensorMode(allow_non_fake_inputs=True) as mode:
        arguments = pytree.tree_map_only(
            torch.Tensor, lambda tensor: mode.from_tensor(tensor.detach()).to("hpu"), (sample.input, *sample.args)
        )
        options = pytree.tree_map_only(
            torch.Tensor, lambda tensor: mode.from_tensor(tensor.detach()).to("hpu"), sample.kwargs
        )
        op.op(*arguments, **options)


def main(way: str, ranges: list[str]) -> None:
    warnings.simplefilter("ignore")
    torch.manual_seed(0)
    numbers = [number for part in ranges for number in range(*map(int, part.split("-")))]
    for number in (number for number in numbers if number < len(op_db)):
        op = op_db[number]
        dtype = torch.float32 if torch.float32 in op.dtypes else next(iter(sorted(op.dtypes, key=str)), torch.int64)
        print(json.dumps({"begun": op.formatted_name}), flush=True)
        wrong = []
        try:
            samples = list(op.sample_inputs("cpu", dtype))[:SAMPLES]
        except Exception as error:
            print(json.dumps({"name": op.formatted_name, "unsampled": str(error)[:200]}), flush=True)
            continue
        for sample in samples:
            try:
                (fake if way == "fake" else run)(op, sample)
            except Exception as error:
                wrong.append(f"{type(error).__name__}: {error}"[:300])
        asked = [text for text in wrong if any(part in text for part in DATA)]
        print(json.dumps({"name": op.formatted_name, "errors": wrong, "asked": asked}), flush=True)
    print(json.dumps({"end": len(op_db)}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
