"""The operations `torch.ops.hpu.*`: each as the computation that its name and its tests at Habana say, or refused.

As on a Gaudi, they take the card's tensors alone and have no gradients: programs wrap them. Formulas are those of the
tests in HabanaAI/gaudi-pytorch-bridge 1.19 (`tests/pytest_working`) where no other source is named.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from torch import Tensor

from gaudi3_hpu_simulator.errors import refuse
from gaudi3_hpu_simulator.vendor_schemas import SCHEMAS

Operation = Callable[..., Any]

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "gelu": torch.nn.functional.gelu,
    "relu": torch.nn.functional.relu,
    "silu": torch.nn.functional.silu,
}


def _experts(
    x: Tensor,
    table: Tensor,
    weights: Tensor,
    gates: list[Tensor],
    ups: list[Tensor],
    downs: list[Tensor],
    permuted: bool,
    activation: str,
    first: int,
    last: int,
) -> tuple[Tensor, Tensor]:
    """Every expert on every token, weighted by the table; and the largest value before each expert's last product."""
    if last - first + 1 != len(downs):
        raise RuntimeError(f"mixture_of_experts got the weights of {len(downs)} experts for {first} to {last}.")
    if activation not in ACTIVATIONS:
        raise RuntimeError(f"mixture_of_experts got the activation {activation!r}: use {', '.join(ACTIVATIONS)}.")
    total = torch.zeros_like(x)
    largest = []
    for number, (gate, up, down) in enumerate(zip(gates, ups, downs, strict=True)):
        if permuted:
            gate, up, down = gate.t(), up.t(), down.t()
        inner = ACTIVATIONS[activation](x @ gate) * (x @ up)
        largest.append(inner.amax().float())
        share = torch.where(table == first + number, weights, 0).sum(-1, keepdim=True)
        total = total + (inner @ down * share).to(x.dtype)
    return total, torch.stack(largest)


def _halves(fused: list[Tensor], permuted: bool) -> tuple[list[Tensor], list[Tensor]]:
    pairs = [weight.chunk(2, 0 if permuted else 1) for weight in fused]
    return [pair[0] for pair in pairs], [pair[1] for pair in pairs]


def _mixture(
    hidden_states: Tensor, expert_routing_table: Tensor, router_weights: Tensor, w1: Any, w2: Any, w3: Any,
    permuted_weights: bool, activation: str, experts_min: int, experts_max: int,
) -> Tensor:  # fmt: skip
    return _experts(
        hidden_states, expert_routing_table, router_weights, w1, w2, w3, permuted_weights, activation, experts_min,
        experts_max,
    )[0]  # fmt: skip


def _mixture_fused(
    hidden_states: Tensor, expert_routing_table: Tensor, router_weights: Tensor, w12: Any, w3: Any,
    permuted_weights: bool, activation: str, experts_min: int, experts_max: int,
) -> Tensor:  # fmt: skip
    return _experts(
        hidden_states, expert_routing_table, router_weights, *_halves(w12, permuted_weights), w3, permuted_weights,
        activation, experts_min, experts_max,
    )[0]  # fmt: skip


def _mixture_measured(
    hidden_states: Tensor, expert_routing_table: Tensor, router_weights: Tensor, w1: Any, w2: Any, w3: Any,
    permuted_weights: bool, activation: str, experts_min: int, experts_max: int, measurement_mode: bool,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    return _experts(
        hidden_states, expert_routing_table, router_weights, w1, w2, w3, permuted_weights, activation, experts_min,
        experts_max,
    )  # fmt: skip


def _mixture_fused_measured(
    hidden_states: Tensor, expert_routing_table: Tensor, router_weights: Tensor, w12: Any, w3: Any,
    permuted_weights: bool, activation: str, experts_min: int, experts_max: int, measurement_mode: bool,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    return _experts(
        hidden_states, expert_routing_table, router_weights, *_halves(w12, permuted_weights), w3, permuted_weights,
        activation, experts_min, experts_max,
    )  # fmt: skip


def _turned(x: Tensor, mode: int) -> Tensor:
    """Quarter turns of pairs: of the two halves (mode 0), or of neighbours (mode 1)."""
    if mode == 0:
        first, second = x.chunk(2, dim=-1)
        return torch.cat((-second, first), dim=-1)
    return torch.stack((-x[..., 1::2], x[..., ::2]), dim=-1).flatten(-2)


def _angles(sin: Tensor, cos: Tensor, positions: Tensor | None, offset: int, x: Tensor) -> tuple[Tensor, Tensor]:
    if positions is not None:
        sin, cos = (table.reshape(-1, table.size(-1))[positions].unsqueeze(1) for table in (sin, cos))
        return sin, cos
    if offset:
        return sin.narrow(-2, offset, x.size(-2)), cos.narrow(-2, offset, x.size(-2))
    return sin, cos


def _rotary(input: Tensor, sin: Tensor, cos: Tensor, position_ids: Tensor | None, offset: int, mode: int) -> Tensor:
    sin, cos = _angles(sin, cos, position_ids, offset, input)
    return input * cos + _turned(input, mode) * sin


def _rotary_backward(
    grad_in: Tensor, sin: Tensor, cos: Tensor, position_ids: Tensor | None, offset: int, mode: int
) -> Tensor:
    sin, cos = _angles(sin, cos, position_ids, offset, grad_in)
    return grad_in * cos - _turned(grad_in * sin, mode)


def _rms_norm(data_in: Tensor, gamma: Tensor, epsilon: float) -> tuple[Tensor, Tensor]:
    wide = data_in.float()
    inverse = torch.rsqrt(wide.square().mean(-1, keepdim=True) + epsilon)
    return (wide * inverse * gamma.float()).to(data_in.dtype), inverse


def _rms_norm_backward(
    grad_in: Tensor, data_in: Tensor, gamma: Tensor, inverse_rms: Tensor, use_stages: bool, bwd_mode: int
) -> tuple[Tensor, Tensor]:
    normal = data_in.float() * inverse_rms
    scaled = grad_in.float() * gamma.float()
    of_data = inverse_rms * (scaled - normal * (scaled * normal).mean(-1, keepdim=True))
    of_gamma = (grad_in.float() * normal).flatten(0, -2).sum(0)
    return of_data.to(data_in.dtype), of_gamma.to(gamma.dtype)


def _clip_norm(grad: list[Tensor], max_norm: Tensor, norm_type: float) -> Tensor:
    """The last of the tensors receives the norm of the others, which are clipped to `max_norm`."""
    *gradients, total = grad
    norm = torch.linalg.vector_norm(torch.stack([torch.linalg.vector_norm(g, norm_type) for g in gradients]), norm_type)
    factor = (max_norm / (norm + 1e-6)).clamp(max=1.0)
    for gradient in gradients:
        gradient.mul_(factor.to(gradient.dtype))
    total.copy_(norm.expand_as(total))
    return total.clone()


def _adamw(
    gradient_vec: list[Tensor], weight_vec: list[Tensor], exp_avg_vec: list[Tensor], exp_avg_sq_vec: list[Tensor],
    neg_step_t: Tensor, beta1: float, beta2: float, epsilon: float, weight_decay: Tensor, has_weight_decay: bool,
    exp_avg_scales: Any = None, exp_avg_sq_scales: Any = None,
) -> None:  # fmt: skip
    """`hpu_ops/backend/optimizer_adamw_gen.cpp`: epsilon beside the root of the uncorrected square."""
    if exp_avg_scales is not None or exp_avg_sq_scales is not None:
        raise refuse("fp8", "keep the moments in float32 or bfloat16")
    for gradient, weight, moment, square in zip(gradient_vec, weight_vec, exp_avg_vec, exp_avg_sq_vec, strict=True):
        moment.copy_(moment * beta1 + gradient * (1 - beta1))
        square.copy_(square * beta2 + gradient * gradient * (1 - beta2))
        decayed = weight * weight_decay if has_weight_decay else weight
        weight.copy_(decayed + neg_step_t * (moment / (square.sqrt() + epsilon)))


def _average(model_inputs: list[Tensor], updated_ema: list[Tensor], decay: Tensor) -> None:
    for new, mean in zip(model_inputs, updated_ema, strict=True):
        mean.copy_(mean * decay + new * (1 - decay))


def _masked_softmax(input: Tensor, mask: Tensor, scale: float) -> Tensor:
    return (input * scale + mask).softmax(-1)


def _triangle(x: Tensor) -> Tensor:
    """True where a row may look: up to its own column, the last row up to the last."""
    rows, columns = x.shape[-2:]
    return torch.ones(rows, columns, dtype=torch.bool, device=x.device).tril(columns - rows)


def _triangular_parts(self: Tensor, inv_scale_attn: float) -> tuple[Tensor, Tensor]:
    scaled = (self * inv_scale_attn).masked_fill(~_triangle(self), -torch.inf)
    return scaled, scaled.amax(-1, keepdim=True)


def _triangular_softmax(
    self: Tensor, inv_scale_attn: float, exp_sum_recpr: Tensor | None = None, max: Tensor | None = None
) -> Tensor:
    if exp_sum_recpr is None or max is None:
        return _triangular_softmax_retain(self, inv_scale_attn)[0]
    return (_triangular_parts(self, inv_scale_attn)[0] - max).exp() * exp_sum_recpr


def _triangular_softmax_retain(self: Tensor, inv_scale_attn: float) -> tuple[Tensor, Tensor, Tensor]:
    scaled, largest = _triangular_parts(self, inv_scale_attn)
    powers = (scaled - largest).exp()
    inverse = powers.sum(-1, keepdim=True).reciprocal()
    return powers * inverse, inverse, largest


def _masked_triangular_softmax(
    self: Tensor, start_end: Tensor, inv_scale_attn: float, grouped_batch_size: int, use_max: bool, mode: int,
    out_dtype: torch.dtype | None = None,
) -> Tensor:  # fmt: skip
    """Columns from start to end of each group of batches; zeros where a row sees none."""
    if out_dtype is not None and out_dtype.itemsize == 1:
        raise refuse("fp8", "leave out_dtype away")
    bounds = start_end.reshape(-1, 2).repeat_interleave(grouped_batch_size, 0)[: self.size(0), :, None, None]
    columns = torch.arange(self.size(-1), device=self.device)
    seen = _triangle(self) & (columns >= bounds[:, 0]) & (columns < bounds[:, 1])
    result = (self * inv_scale_attn).masked_fill(~seen, -torch.inf).softmax(-1).masked_fill(~seen, 0)
    return result if out_dtype is None else result.to(out_dtype)


def _reorder_(self: Tensor, start: Tensor, end: Tensor, beam_idx: Tensor) -> Tensor:
    """Of each batch, the rows from start to end of the four beams; `beam_idx` holds four times two bits."""
    for batch, (first, last, packed) in enumerate(zip(start.tolist(), end.tolist(), beam_idx.tolist(), strict=True)):
        beams = torch.tensor([packed >> shift & 3 for shift in (6, 4, 2, 0)], device=self.device)
        part = self[batch].narrow(-2, first, last - first)
        part.copy_(part.index_select(0, beams))
    return self


def _unpacked(x: Tensor, signed: bool) -> Tensor:
    """Eight numbers of four bits from each integer of 32, the lowest first."""
    shifts = torch.arange(0, 32, 4, device=x.device, dtype=torch.int64)
    numbers = (x.long().unsqueeze(-1) >> shifts & 15).flatten(-2)
    return torch.where(numbers > 7, numbers - 16, numbers) if signed else numbers


def _from_4_bits(signed: bool) -> Operation:
    def convert(input: Tensor, scale: Tensor, zero_point: Tensor | None, out_dtype: torch.dtype) -> Tensor:
        numbers = _unpacked(input, signed)
        if zero_point is not None and not zero_point.is_floating_point():
            return (numbers - _unpacked(zero_point, signed)).to(out_dtype) * scale.to(out_dtype)
        zero = 0 if zero_point is None else zero_point.to(out_dtype)
        return (numbers.to(out_dtype) - zero) * scale.to(out_dtype)

    return convert


def _interleave(self: Tensor) -> Tensor:
    """The first quarter of the rows, four times each."""
    return self[: self.size(0) // 4].repeat_interleave(4, 0)


def _accumulate(variables: list[Tensor], new_grads: list[Tensor]) -> None:
    torch._foreach_add_(variables, new_grads)


OPERATIONS: dict[str, Operation] = {
    "mixture_of_experts": _mixture,
    "mixture_of_experts.fused_weights": _mixture_fused,
    "mixture_of_experts.fp8_measurement": _mixture_measured,
    "mixture_of_experts.fp8_measurement_fused_weights": _mixture_fused_measured,
    "rotary_pos_embedding": _rotary,
    "rotary_pos_embedding_backward": _rotary_backward,
    "rms_norm": _rms_norm,
    "rms_norm_backward": _rms_norm_backward,
    "rms_norm_fast": _rms_norm,
    "rms_norm_fast_backward": _rms_norm_backward,
    "fused_clip_norm": _clip_norm,
    "optimizer_adamw": _adamw,
    "optimizer_ema": _average,
    "scaled_masked_softmax": _masked_softmax,
    "scaled_triangular_softmax": _triangular_softmax,
    "scaled_triangular_softmax_retain": _triangular_softmax_retain,
    "scaled_masked_triangular_softmax": _masked_triangular_softmax,
    "kv_reorder": lambda self, start, end, beam_idx: _reorder_(self.clone(), start, end, beam_idx),
    "kv_reorder_": _reorder_,
    "convert_from_int4": _from_4_bits(signed=True),
    "convert_from_uint4": _from_4_bits(signed=False),
    "in_place_interleave": _interleave,
    "in_place_interleave_": lambda self: self.copy_(_interleave(self)),
    "custom_foreach_add_": _accumulate,
    "exp_fast_math": torch.exp,
    "sqrt_fast_math": torch.sqrt,
    "rsqrt_fast_math": torch.rsqrt,
    "linear": torch.nn.functional.linear,
    "matmul": torch.matmul,
}

# Where the shape follows from the arguments and the computation looks at data.
SHAPES: dict[str, Operation] = {
    "kv_reorder": lambda self, start, end, beam_idx: torch.empty_like(self),
    "kv_reorder_": lambda self, start, end, beam_idx: self,
}


@cache
def register() -> Any:
    """Define every operation, once; they last as long as the library that is returned."""
    library: Any = torch.library.Library("hpu", "DEF")  # type: ignore[no-untyped-call]
    for schema in SCHEMAS.strip().splitlines():
        name = schema.partition("(")[0]
        library.define(schema)
        run = OPERATIONS.get(name)
        if run is None:
            library.impl(name, _refusal(name), "HPU")
            continue
        library.impl(name, run, "HPU")
        torch.library.register_fake(f"hpu::{name}", SHAPES.get(name, run), lib=library)
    return library


def _refusal(name: str) -> Operation:
    def refused(*arguments: Any, **options: Any) -> None:
        if "fp8" in name:
            raise refuse("fp8", "use bfloat16, or run on hardware")
        raise refuse(f"torch.ops.hpu.{name}", "use torch's own operations, or run on hardware")

    return refused
