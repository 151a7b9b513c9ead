"""torch.autocast on hpu, by the lists of HabanaAI/gaudi-pytorch-bridge 1.19 (hpu_ops/autocast_helpers.h)."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch.nn import functional

pytestmark = pytest.mark.usefixtures("clean")

Run = Callable[..., subprocess.CompletedProcess[str]]
Operation = Callable[[torch.Tensor], torch.Tensor]
ROWS = torch.tensor([1, 0])

LOWERED: dict[str, Operation] = {
    "linear": lambda x: functional.linear(x, x),
    "matmul": lambda x: x @ x,
    "addmm": lambda x: torch.addmm(x, x, x),
    "bmm": lambda x: torch.bmm(x[None], x[None]),
    "conv1d": lambda x: functional.conv1d(x[None], x[:, :, None]),
    "softmax": lambda x: x.softmax(-1),
    "log_softmax": lambda x: x.log_softmax(-1),
    "mul": lambda x: x * x,
    "mean": lambda x: x.mean(),
    "dropout": lambda x: functional.dropout(x, 0.5),
    "leaky_relu": lambda x: functional.leaky_relu(x),
    "scaled_dot_product_attention": lambda x: functional.scaled_dot_product_attention(x, x, x),
    "layer_norm": lambda x: functional.layer_norm(x, x.shape),
    "group_norm": lambda x: functional.group_norm(x, 2),
}
IN_FLOAT: dict[str, Operation] = {
    "div": lambda x: x / 2,
    "exp": lambda x: x.exp(),
    "pow": lambda x: x.pow(2),
    "logsumexp": lambda x: x.logsumexp(0),
    "topk": lambda x: x.topk(1).values,
    "embedding": lambda x: functional.embedding(ROWS.to("hpu"), x),
    "mse_loss": lambda x: functional.mse_loss(x, x),
    "cross_entropy_loss": lambda x: functional.cross_entropy(x[:2], ROWS.to("hpu")),
    "binary_cross_entropy": lambda x: functional.binary_cross_entropy(x.clamp(0, 1), x.clamp(0, 1)),
    "rsqrt": lambda x: x.abs().rsqrt(),
}
PROMOTED: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "add": torch.add,
    "sub": torch.sub,
    "cat": lambda x, y: torch.cat([x, y]),
    "stack": lambda x, y: torch.stack([x, y]),
    "addcmul": lambda x, y: torch.addcmul(x, y, y),
}


@pytest.mark.parametrize("low", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("size", [2, 6])
def test_each_list_by_type(low: torch.dtype, size: int) -> None:
    wide = torch.randn(size, size, device="hpu")
    narrow = wide.to(low)
    with torch.autocast("hpu", dtype=low):
        assert {name: operation(wide).dtype for name, operation in LOWERED.items()} == dict.fromkeys(LOWERED, low)
        for given in (wide, narrow):
            seen = {name: operation(given).dtype for name, operation in IN_FLOAT.items()}
            assert seen == dict.fromkeys(IN_FLOAT, torch.float32)
        for pair, expected in (((wide, narrow), torch.float32), ((narrow, narrow), low)):
            seen = {name: operation(*pair).dtype for name, operation in PROMOTED.items()}
            assert seen == dict.fromkeys(PROMOTED, expected)
        assert wide.double().mul(2).dtype == torch.float64, "doubles stay"
        assert torch.mm(wide.double(), wide.double()).dtype == torch.float64
        out = torch.empty(size, size, device="hpu")
        assert torch.mm(wide, wide, out=out).dtype == torch.float32, "an output is as it was given"
        assert wide.relu().dtype == torch.float32, "what is in no list runs as it is"


def test_normalisations_lower_their_input_alone() -> None:
    values, weight = torch.randn(3, 4, device="hpu"), torch.rand(4, device="hpu") * 100 + 0.12345
    with torch.autocast("hpu", dtype=torch.bfloat16):
        normal = functional.layer_norm(values, (4,), weight)
    assert normal.dtype == torch.bfloat16
    expected = functional.layer_norm(values.bfloat16(), (4,), weight)
    assert torch.equal(normal, expected)
    lowered = functional.layer_norm(values.bfloat16(), (4,), weight.bfloat16())
    assert not torch.equal(normal, lowered), "the weight is not lowered"


def test_casts_are_not_kept() -> None:
    weight = torch.randn(64, 64, device="hpu", requires_grad=True)
    with torch.autocast("hpu", dtype=torch.bfloat16):
        before = torch.hpu.memory_allocated()
        with torch.no_grad():
            torch.mm(weight, weight)
        assert torch.hpu.memory_allocated() == before
    with torch.autocast("hpu", enabled=False):
        assert torch.mm(weight, weight).dtype == torch.float32


OPERATIONS = """
import torch
x = torch.ones(2, 2, device="hpu")
with torch.autocast("hpu", dtype=torch.bfloat16):
    print(*((f(x) if f is not torch.add else f(x, x)).dtype for f in (torch.add, torch.exp, torch.relu)), (x @ x).dtype)
"""


def test_a_file_takes_the_place_of_a_list(run: Run, tmp_path: Path) -> None:
    low, wide = tmp_path / "low", tmp_path / "wide"
    low.write_text("add\nrelu\n")
    wide.write_text("matmul\n")

    def types(**files: str) -> list[str]:
        names = {name: f"PT_HPU_AUTOCAST_{name}_OPS_LIST" for name in ("LOWER_PRECISION", "FP32")}
        result = run(OPERATIONS, **{names[name]: path for name, path in files.items()})
        assert result.returncode == 0, result.stderr
        return [word.removeprefix("torch.") for word in result.stdout.split()]

    assert types() == ["float32", "float32", "float32", "bfloat16"]
    assert types(LOWER_PRECISION=str(low)) == ["bfloat16", "float32", "bfloat16", "float32"], "add alone, not mm"
    assert types(FP32=str(wide)) == ["float32", "float32", "float32", "bfloat16"], "the lowered list goes first"
    assert types(LOWER_PRECISION=str(low), FP32=str(wide)) == ["bfloat16", "float32", "bfloat16", "float32"]
    missing = run(OPERATIONS, PT_HPU_AUTOCAST_FP32_OPS_LIST=str(tmp_path / "none"))
    assert f"Failed to open file with ops to autocast: {tmp_path / 'none'}. Default list loaded." in missing.stderr
