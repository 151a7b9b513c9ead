"""torch.ops.hpu.*: against plain torch on the CPU, in several shapes; and their refusals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from gaudi3_hpu_simulator.errors import NotSimulated

pytestmark = pytest.mark.usefixtures("clean")

near = torch.testing.assert_close


def hpu(*values: Any) -> Any:
    return [[part.to("hpu") for part in value] if isinstance(value, list) else value.to("hpu") for value in values]


@pytest.mark.parametrize("activation", ["gelu", "relu", "silu"])
@pytest.mark.parametrize(("tokens", "experts", "top"), [(1, 4, 2), (7, 3, 1), (5, 6, 6)])
@pytest.mark.parametrize("permuted", [True, False])
def test_mixture_of_experts(activation: str, tokens: int, experts: int, top: int, permuted: bool) -> None:
    torch.manual_seed(tokens)
    x = torch.randn(tokens, 8)
    weights, table = torch.randn(tokens, experts).softmax(-1).topk(top)
    shapes = ((8, 12), (8, 12), (12, 8))
    gates, ups, downs = ([torch.randn(shape) for _ in range(experts)] for shape in shapes)
    expected = torch.zeros_like(x)
    for token in range(tokens):
        for share, expert in zip(weights[token], table[token].tolist(), strict=True):
            inner = getattr(functional, activation)(x[token] @ gates[expert]) * (x[token] @ ups[expert])
            expected[token] += share * (inner @ downs[expert])

    def given(parts: list[Tensor]) -> list[Tensor]:
        return [(part.t().contiguous() if permuted else part).to("hpu") for part in parts]

    common = hpu(x, table, weights)
    rest = (permuted, activation, 0, experts - 1)
    result = torch.ops.hpu.mixture_of_experts(*common, given(gates), given(ups), given(downs), *rest)
    near(result.cpu(), expected, rtol=1e-4, atol=1e-4)
    fused = [torch.cat(pair, 0 if permuted else 1) for pair in zip(given(gates), given(ups), strict=True)]
    result = torch.ops.hpu.mixture_of_experts(*common, fused, given(downs), *rest)
    near(result.cpu(), expected, rtol=1e-4, atol=1e-4)
    # Slices of the experts add up to all of them, as vLLM calls it.
    parts = [
        torch.ops.hpu.mixture_of_experts(
            *common, given(gates[first:last]), given(ups[first:last]), given(downs[first:last]), permuted, activation,
            first, last - 1,
        )
        for first, last in ((0, 1), (1, experts))
    ]  # fmt: skip
    near(sum(parts).cpu(), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("mode", [0, 1])
@pytest.mark.parametrize("shape", [(2, 3, 5, 8), (1, 2, 4, 4)])
def test_rotary_embedding_and_its_gradient(mode: int, shape: tuple[int, ...]) -> None:
    x = torch.randn(shape, requires_grad=True)
    positions = torch.randint(0, 9, (shape[0], shape[2]))
    table = torch.randn(9, shape[-1])
    sin, cos = table.sin(), table.cos()
    s, c = sin[positions][:, None], cos[positions][:, None]
    if mode == 0:
        turned = torch.cat((-x[..., shape[-1] // 2 :], x[..., : shape[-1] // 2]), -1)
    else:
        turned = torch.stack((-x[..., 1::2], x[..., ::2]), -1).flatten(-2)
    expected = x * c + turned * s
    gradient = torch.randn(shape)
    expected.backward(gradient)
    given = hpu(sin, cos, positions)
    result = torch.ops.hpu.rotary_pos_embedding(x.detach().to("hpu"), *given, 0, mode)
    near(result.cpu(), expected.detach())
    result = torch.ops.hpu.rotary_pos_embedding_backward(gradient.to("hpu"), *given, 0, mode)
    near(result.cpu(), x.grad)


@pytest.mark.parametrize("shape", [(2, 3, 8), (4, 6)])
@pytest.mark.parametrize("name", ["rms_norm", "rms_norm_fast"])
def test_rms_norm_and_its_gradient(name: str, shape: tuple[int, ...]) -> None:
    x, gamma = torch.randn(shape, requires_grad=True), torch.rand(shape[-1], requires_grad=True)
    expected = functional.rms_norm(x, shape[-1:], gamma, 1e-5)
    gradient = torch.randn(shape)
    expected.backward(gradient)
    card = hpu(x.detach(), gamma.detach())
    result, inverse = getattr(torch.ops.hpu, name)(*card, 1e-5)
    near(result.cpu(), expected.detach())
    of_data, of_gamma = getattr(torch.ops.hpu, f"{name}_backward")(gradient.to("hpu"), *card, inverse, False, 0)
    near(of_data.cpu(), x.grad)
    near(of_gamma.cpu(), gamma.grad)
    assert getattr(torch.ops.hpu, name)(card[0].bfloat16(), card[1], 1e-5)[0].dtype == torch.bfloat16


@pytest.mark.parametrize("limit", [0.5, 100.0])
def test_clipping_writes_the_norm_into_the_last_tensor(limit: float) -> None:
    weights = [torch.nn.Parameter(torch.zeros(3)), torch.nn.Parameter(torch.zeros(2, 2))]
    for weight in weights:
        weight.grad = torch.randn_like(weight)
    card = [weight.grad.to("hpu") for weight in weights if weight.grad is not None]
    expected = torch.nn.utils.clip_grad_norm_(weights, limit)
    placeholder = torch.zeros(1, device="hpu")
    total = torch.ops.hpu.fused_clip_norm([*card, placeholder], torch.tensor([limit], device="hpu"), 2.0)
    near(total.cpu(), expected[None])
    near(placeholder.cpu(), expected[None])
    for weight, gradient in zip(weights, card, strict=True):
        near(gradient.cpu(), weight.grad)


@pytest.mark.parametrize("size", [1.0, 1e-6])
@pytest.mark.parametrize("decay", [1.0, 0.9])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_adamw(size: float, decay: float, dtype: torch.dtype) -> None:
    weight, moment, square = torch.ones(3), torch.zeros(3, dtype=dtype), torch.zeros(3, dtype=dtype)
    lists = [[part.to("hpu")] for part in (weight, moment, square)]
    for step in (1, 2, 3):
        gradient = torch.tensor([1.0, -2.0, 0.5]) * size / step
        torch.ops.hpu.optimizer_adamw(
            [gradient.to("hpu")], *lists, torch.tensor([-0.1], device="hpu"), 0.9, 0.99, 1e-6,
            torch.tensor([decay], device="hpu"), decay != 1.0,
        )  # fmt: skip
        moment = (0.9 * moment + 0.1 * gradient).to(dtype)
        square = (0.99 * square + 0.01 * gradient**2).to(dtype)
        weight = weight * decay - 0.1 * moment / (square.sqrt() + 1e-6)
    rough = {"rtol": 2e-2, "atol": 2e-2} if dtype == torch.bfloat16 else {}
    near(lists[0][0].cpu(), weight.float(), **rough)
    assert lists[1][0].dtype == dtype


def test_softmaxes_of_scores() -> None:
    scores, mask = torch.randn(4, 5, 5), torch.randn(4, 1, 5)
    given, around = hpu(scores, mask)
    near(torch.ops.hpu.scaled_masked_softmax(given, around, 0.7).cpu(), (scores * 0.7 + mask).softmax(-1))
    lower = (scores * 1.3).masked_fill(torch.ones(5, 5).triu(1).bool(), -torch.inf).softmax(-1)
    near(torch.ops.hpu.scaled_triangular_softmax(given, 1.3).cpu(), lower)
    result, inverse, largest = torch.ops.hpu.scaled_triangular_softmax_retain(given, 1.3)
    assert torch.equal(torch.ops.hpu.scaled_triangular_softmax(given, 1.3, inverse, largest), result)
    bounds = torch.tensor([[1, 4], [0, 3]])
    expected = scores * 1.3
    for batch in range(4):
        first, last = bounds[batch // 2]
        expected[batch, :, :first] = -torch.inf
        expected[batch, :, last:] = -torch.inf
    expected = expected.masked_fill(torch.ones(5, 5).triu(1).bool(), -torch.inf).softmax(-1).nan_to_num(0)
    for form in (bounds, bounds.flatten()):
        result = torch.ops.hpu.scaled_masked_triangular_softmax(given, form.to("hpu"), 1.3, 2, True, 0)
        near(result.cpu(), expected)
    last_token = torch.ops.hpu.scaled_masked_triangular_softmax(given[:, :1], bounds.to("hpu"), 1.0, 2, True, 0)
    assert (last_token[0, 0, 1:4] > 0).all() and last_token[0, 0, 0] == 0


def test_beams_are_reordered_between_start_and_end() -> None:
    values = torch.randn(2, 4, 3, 6, 2)
    start, end = torch.tensor([2, 1]), torch.tensor([5, 1])
    beams = torch.tensor([[0, 2, 3, 2], [1, 0, 1, 3]])
    packed = (beams * torch.tensor([64, 16, 4, 1])).sum(-1).to(torch.uint8)
    expected = values.clone()
    for batch in range(2):
        for beam in range(4):
            chosen = values[batch, int(beams[batch, beam]), :, start[batch] : end[batch]]
            expected[batch, beam, :, start[batch] : end[batch]] = chosen
    card, *others = hpu(values, start.int(), end.int(), packed)
    assert torch.equal(torch.ops.hpu.kv_reorder(card, *others).cpu(), expected)
    assert torch.equal(card.cpu(), values)
    torch.ops.hpu.kv_reorder_(card, *others)
    assert torch.equal(card.cpu(), expected)


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("shape", [(16,), (3, 2, 8)])
@pytest.mark.parametrize("zero", ["none", "plain", "packed"])
def test_numbers_of_four_bits(signed: bool, shape: tuple[int, ...], zero: str) -> None:
    def packed(numbers: Tensor) -> Tensor:
        digits = (numbers & 15).reshape(*shape[:-1], -1, 8)
        whole = sum(digits[..., place].long() << (4 * place) for place in range(8))
        assert isinstance(whole, Tensor)
        return torch.where(whole >= 2**31, whole - 2**32, whole).int()

    low = -8 if signed else 0
    numbers, scale = torch.randint(low, low + 16, shape), torch.rand(shape)
    points = torch.randint(low, low + 8, shape)
    given = {"none": None, "plain": points.float().to("hpu"), "packed": packed(points).to("hpu")}[zero]
    operation = torch.ops.hpu.convert_from_int4 if signed else torch.ops.hpu.convert_from_uint4
    result = operation(packed(numbers).to("hpu"), scale.to("hpu"), given, torch.float32)
    near(result.cpu(), (numbers - (0 if zero == "none" else points)) * scale)


def test_small_ones() -> None:
    x = torch.rand(8, 3) + 0.1
    card = x.to("hpu")
    for name, expected in (("exp", x.exp()), ("sqrt", x.sqrt()), ("rsqrt", x.rsqrt())):
        near(getattr(torch.ops.hpu, f"{name}_fast_math")(card).cpu(), expected)
    assert torch.equal(torch.ops.hpu.in_place_interleave(card).cpu(), x[[0] * 4 + [1] * 4])
    mean = torch.ones(8, 3, device="hpu")
    torch.ops.hpu.optimizer_ema([card], [mean], torch.tensor(0.75, device="hpu"))
    near(mean.cpu(), 0.75 + 0.25 * x)


def test_they_are_traced_without_data() -> None:
    def norm(x: Tensor, gamma: Tensor) -> Tensor:
        return torch.ops.hpu.rms_norm(x, gamma, 1e-5)[0] + torch.ops.hpu.kv_reorder(x, gamma, gamma, gamma)

    with torch._subclasses.FakeTensorMode():
        result = norm(torch.empty(2, 3, device="hpu"), torch.empty(3, device="hpu"))
        assert (result.shape, result.device.type) == ((2, 3), "hpu")

    def scaled(x: Tensor, gamma: Tensor) -> Tensor:
        return torch.ops.hpu.rms_norm(x, gamma, 1e-5)[0] * 2

    given = hpu(torch.randn(2, 3), torch.rand(3))
    for backend in ("eager", "aot_eager"):
        near(torch.compile(scaled, backend=backend, fullgraph=True)(*given), scaled(*given))
    torch._dynamo.reset()


REFUSED: dict[str, Callable[[Tensor], Any]] = {
    "fp8": lambda x: torch.ops.hpu.cast_to_fp8_v2(x),
    "torch.ops.hpu.custom_softmax": lambda x: torch.ops.hpu.custom_softmax(x, 0),
    "torch.ops.hpu.ragged_softmax": lambda x: torch.ops.hpu.ragged_softmax(x, 0, False, x),
    "torch.ops.hpu.optimizer_lamb_fused_norm": lambda x: torch.ops.hpu.optimizer_lamb_fused_norm([x], 1.0),
    "torch.ops.hpu.sdpa_fwd": lambda x: torch.ops.hpu.sdpa_fwd(x, x, x, None, 0.0, 1.0, False, "None", None, "left"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_nobody_describes_is_refused(what: str) -> None:
    with pytest.raises(NotSimulated, match=rf"^The simulated HPU has no {what}: use "):
        REFUSED[what](torch.ones(2, 2, device="hpu"))


def test_they_want_the_cards_tensors() -> None:
    with pytest.raises(NotImplementedError, match="hpu::rms_norm"):
        torch.ops.hpu.rms_norm(torch.ones(2, 2), torch.ones(2), 1e-5)
