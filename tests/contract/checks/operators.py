"""torch's own database of operators on the card: `operators.py values|gradients|traced [COUNT]`.

COUNT operators are drawn by a seed; all run without it. Every sample runs on the CPU and on the card: its values, its
gradients backwards and forwards, or its trace with fake tensors, as torch.compile makes it. What works on the CPU has
to work on the card with the same result, or be refused in one sentence; what the CPU itself refuses does not count. A
crash ends the process: the next goes on after it, and the crash is a failure.
"""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

SEED = 20261122
STATE = Path("operators.json")
# Results that differ at every call, or are memory nobody has written.
UNDEFINED = re.compile(
    r"(^|\.)(empty|new_empty|rand|normal|bernoulli|multinomial|cauchy|exponential|geometric|log_normal|uniform|dropout|"
    r"alpha_dropout|feature_|rrelu|fractional_max|to_sparse|resize|scaled_dot_product|svd|eig|qr|lobpcg|pca|lu|ldl|"
    r"lstsq|pinverse|pinv|nonzero_static|linalg)"
)
# torch's own rules for fake tensors give these another shape on the CPU alone.
CPU_SHAPES = {"native_batch_norm", "_native_batch_norm_legit"}
FAKE = re.compile(r"FakeTensor|data pointer")
REFUSALS = re.compile(
    r"gaudi3-hpu-simulator|not supported|not implemented|unsupported|hpu|HPU|same device|sparse|quantiz", re.IGNORECASE
)


def kinds(mode: str) -> list[Any]:
    """The dtypes to try."""
    import torch

    return [torch.float32, torch.bfloat16, torch.int64, torch.bool] if mode == "values" else [torch.float32]


def same(card: Any, cpu: Any, values: bool) -> str:
    """What differs between two results; empty where nothing does."""
    import torch
    from torch.utils import _pytree as pytree

    ours, theirs = pytree.tree_leaves(card), pytree.tree_leaves(cpu)
    if len(ours) != len(theirs):
        return f"{len(ours)} results, not {len(theirs)}"
    for one, other in zip(ours, theirs, strict=True):
        if not isinstance(other, torch.Tensor):
            continue
        if not isinstance(one, torch.Tensor):
            return f"{type(one).__name__}, not a tensor"
        # Forward derivatives of single numbers are float64 on the CPU, by torch's own promotion of numbers.
        number = other.dim() == 0 and other.dtype == torch.float64
        if (one.dtype != other.dtype and not number) or one.shape != other.shape:
            return f"{one.dtype} {tuple(one.shape)}, not {other.dtype} {tuple(other.shape)}"
        if values and not other.is_sparse and other.layout == torch.strided:
            try:
                near = 2e-2 if other.dtype == torch.bfloat16 else 1e-3
                torch.testing.assert_close(one.cpu(), other, equal_nan=True, rtol=near, atol=near, check_dtype=False)
            except AssertionError as error:
                return str(error).splitlines()[0]
    return ""


def moved(sample: Any, device: str) -> Any:
    """The sample on another device, with the memory around each tensor, which some operators read."""
    import torch

    def move(value: Any) -> Any:
        if isinstance(value, torch.device):
            return torch.device(device)
        if not isinstance(value, torch.Tensor):
            return value
        if value.layout != torch.strided or value.is_quantized or value.is_conj() or value.is_neg():
            return value.detach().to(device).requires_grad_(value.requires_grad)
        around = torch.empty(0, dtype=value.dtype).set_(value.detach().untyped_storage()).to(device)
        there = around.as_strided(value.size(), value.stride(), value.storage_offset())
        return there.requires_grad_(value.requires_grad)

    return sample.transform(move)


def call(operator: Any, sample: Any) -> Any:
    """Run it."""
    return operator(sample.input, *sample.args, **sample.kwargs)


def traced(operator: Any, sample: Any) -> Any:
    """Trace it with fake tensors; the fake results."""
    import torch
    from torch.fx.experimental.proxy_tensor import make_fx
    from torch.utils import _pytree as pytree

    leaves, shape = pytree.tree_flatten((sample.input, sample.args, sample.kwargs))
    places = [place for place, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]
    results: list[Any] = []

    def run(*tensors: torch.Tensor) -> tuple[()]:
        changed = list(leaves)
        for place, tensor in zip(places, tensors, strict=True):
            changed[place] = tensor
        first, arguments, named = pytree.tree_unflatten(changed, shape)
        results.append(operator(first, *arguments, **named))
        return ()

    make_fx(run, tracing_mode="fake")(*(leaves[place] for place in places))
    return results[0]


def gradients(operator: Any, sample: Any) -> Any:
    """Gradients of all inputs, and, of one input, the derivative forwards."""
    import torch
    from torch.utils import _pytree as pytree

    inputs = [
        leaf
        for leaf in pytree.tree_leaves((sample.input, sample.args, sample.kwargs))
        if isinstance(leaf, torch.Tensor) and leaf.requires_grad
    ]
    outputs = [
        leaf
        for leaf in pytree.tree_leaves(call(operator, sample))
        if isinstance(leaf, torch.Tensor) and leaf.requires_grad and leaf.is_floating_point()
    ]
    if not inputs or not outputs:
        raise ValueError("nothing to differentiate")
    total = sum((output.sum() for output in outputs[1:]), start=outputs[0].sum())
    backward = torch.autograd.grad(total, inputs, allow_unused=True)
    forward = None
    if operator.supports_forward_ad and isinstance(sample.input, torch.Tensor) and sample.input.requires_grad:
        plain = sample.input.detach()
        _, forward = torch.func.jvp(
            lambda value: operator(value, *sample.args, **sample.kwargs), (plain,), (torch.ones_like(plain),)
        )
    return backward, forward


RUNS = {"values": call, "gradients": gradients, "traced": traced}


def tried(operator: Any, mode: str, counts: dict[str, int]) -> list[str]:
    """The complaints about one operator."""
    import torch

    complaints = []
    runs = RUNS[mode]
    for dtype in kinds(mode):
        if dtype not in operator.supported_dtypes("cpu") or (mode == "gradients" and not operator.supports_autograd):
            continue
        torch.manual_seed(SEED)
        try:
            samples = list(operator.sample_inputs("cpu", dtype, requires_grad=mode == "gradients"))
        except Exception:
            continue
        for number, sample in enumerate(samples):
            try:
                torch.manual_seed(SEED)
                expected = runs(operator, sample)
            except Exception:
                counts["refused by the CPU"] += 1
                continue
            try:
                torch.manual_seed(SEED)
                seen = runs(operator, moved(sample, "hpu"))
            except Exception as error:
                first = str(error).strip().splitlines()[0] if str(error).strip() else ""
                if REFUSALS.search(first) and not FAKE.search(first):
                    counts["refused"] += 1
                else:
                    complaints.append(f"{operator.name} {dtype} sample {number}: {type(error).__name__}: {first[:200]}")
                continue
            exact = mode != "traced" and not UNDEFINED.search(operator.name)
            if mode == "traced" and operator.name in CPU_SHAPES:
                continue
            difference = same(seen, expected, exact)
            if difference:
                complaints.append(f"{operator.name} {dtype} sample {number}: {difference[:200]}")
            else:
                counts["passed"] += 1
    return complaints


def work(mode: str, count: int) -> None:
    """Go through the operators from where the last process stopped."""
    import torch
    from torch.testing._internal.common_methods_invocations import op_db

    torch.set_num_threads(1)
    operators = list(op_db)
    if count:
        operators = random.Random(SEED).sample(operators, count)
    state = json.loads(STATE.read_text())
    while state["next"] < len(operators):
        operator = operators[state["next"]]
        state["next"] += 1
        state["crashed"].append(operator.name)  # taken away when it did not
        STATE.write_text(json.dumps(state))
        state["complaints"] += tried(operator, mode, state["counts"])
        state["crashed"].pop()
        if state["next"] % 50 == 0:
            print(f"{state['next']} of {len(operators)} operators: {state['counts']}", flush=True)
    STATE.write_text(json.dumps({**state, "done": True}))


def main(mode: str, count: int) -> None:
    """Run workers until all operators were tried."""
    counts = {"passed": 0, "refused": 0, "refused by the CPU": 0}
    STATE.write_text(json.dumps({"next": 0, "crashed": [], "complaints": [], "counts": counts, "done": False}))
    while not json.loads(STATE.read_text())["done"]:
        before = json.loads(STATE.read_text())["next"]
        subprocess.run([sys.executable, __file__, "--work", mode, str(count)], check=False)
        state = json.loads(STATE.read_text())
        if state["next"] == before and not state["done"]:
            sys.exit("WorkerError: a worker ended before its first operator")
    for name in state["crashed"]:
        print(f"CRASHED {name}")
    for complaint in state["complaints"]:
        print(f"COMPLAINT {complaint}")
    bad = sorted({complaint.split()[0] for complaint in state["complaints"]})
    summary = f"{state['next']} operators, {state['counts']}, {len(state['crashed'])} crashed, {len(bad)} differ"
    print(summary)
    if state["crashed"] or bad:
        sys.exit(f"OperatorError: {summary}; crashed: {state['crashed']}; differ: {', '.join(bad)}"[:1500])


if __name__ == "__main__":
    if sys.argv[1] == "--work":
        work(sys.argv[2], int(sys.argv[3]))
    else:
        main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 0)
