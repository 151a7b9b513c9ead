"""torch's own database of operators on the card: `operators.py values|fake [COUNT]`, COUNT operators drawn by a seed.

Every sample runs on the CPU and on the card. What works on the CPU has to work on the card with the same result, or be
refused in one sentence; what the CPU itself refuses does not count. A crash ends the process: the next goes on after
it, and the crash is a failure.
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
REFUSALS = re.compile(
    r"gaudi3-hpu-simulator|not supported|not implemented|unsupported|hpu|HPU|same device|sparse|quantiz", re.IGNORECASE
)


def kinds(mode: str) -> list[Any]:
    """The dtypes to try."""
    import torch

    return [torch.float32] if mode == "fake" else [torch.float32, torch.bfloat16, torch.int64, torch.bool]


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
        if one.dtype != other.dtype or one.shape != other.shape:
            return f"{one.dtype} {tuple(one.shape)}, not {other.dtype} {tuple(other.shape)}"
        if values and not other.is_sparse and other.layout == torch.strided:
            try:
                torch.testing.assert_close(one.cpu(), other, equal_nan=True, rtol=1e-3, atol=1e-3)
            except AssertionError as error:
                return str(error).splitlines()[0]
    return ""


def moved(sample: Any, device: str) -> Any:
    """The sample on another device."""
    import torch

    return sample.transform(
        lambda value: (
            value.to(device)
            if isinstance(value, torch.Tensor)
            else torch.device(device)
            if isinstance(value, torch.device)
            else value
        )
    )


def call(operator: Any, sample: Any) -> Any:
    """Run it."""
    return operator(sample.input, *sample.args, **sample.kwargs)


def fake_call(operator: Any, sample: Any) -> Any:
    """Run it on fake tensors."""
    import torch
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode() as mode:
        faked = sample.transform(lambda value: mode.from_tensor(value) if isinstance(value, torch.Tensor) else value)
        return call(operator, faked)


def tried(operator: Any, mode: str, counts: dict[str, int]) -> list[str]:
    """The complaints about one operator."""
    import torch

    complaints = []
    runs = call if mode == "values" else fake_call
    for dtype in kinds(mode):
        if dtype not in operator.supported_dtypes("cpu"):
            continue
        torch.manual_seed(SEED)
        try:
            samples = list(operator.sample_inputs("cpu", dtype, requires_grad=False))
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
                if mode == "values" and REFUSALS.search(first):
                    counts["refused"] += 1
                else:
                    complaints.append(f"{operator.name} {dtype} sample {number}: {type(error).__name__}: {first[:200]}")
                continue
            exact = mode == "values" and not UNDEFINED.search(operator.name)
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
