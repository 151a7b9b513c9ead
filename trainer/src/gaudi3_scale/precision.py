"""Precision, always chosen here: Lightning's own `bf16-mixed` would autocast for CUDA on a device it does not know."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch
from lightning.pytorch.plugins.precision import Precision
from torch import Tensor, nn
from torch.distributed.tensor import DTensor
from torch.overrides import TorchFunctionMode

from gaudi3_scale.config.auto_precision import precision_of
from gaudi3_scale.errors import ConfigError
from gaudi3_scale.finite import gradient_norm
from gaudi3_scale.hpu.device import Device
from gaudi3_scale.hpu.kernels import autocast_overruled

PRECISIONS = ("32-true", "bf16-mixed", "bf16-true")

log = logging.getLogger(__name__)


def refusal(precision: str) -> str:
    """The sentence about one that is not offered."""
    return f"precision is {precision!r}: give one of {', '.join(PRECISIONS)}."


def lightnings(plugin: Any) -> str | None:
    """The class's name of a plugin that is Lightning's, in either of its distributions; that of 32 bit is Precision."""
    kind = type(plugin)
    return kind.__name__ if kind.__module__.split(".")[0] in ("lightning", "pytorch_lightning") else None


class GaudiMixedPrecision(Precision):
    """Precision of a run, for `Trainer(plugins=[GaudiMixedPrecision()])`, with options that each do something.

    Args:
        precision: `bf16-mixed` = bfloat16 autocast over float32 weights and optimizer, no loss scaling needed;
            `bf16-true` = all of it bfloat16; `32-true` = all of it float32.
        optimize_bmm: batched matrix products (of eager attention, for example) in bfloat16; False keeps them float32.
        use_fused_rope: rotary embedding by the device's own kernel, where it has one.
        use_flash_attention_v2: attention by the device's fused kernel, elsewhere by torch's; False leaves it as built.
        cache_fp32_weights: cast each float32 weight to bfloat16 once per optimizer step instead of at every use, for
            2 bytes per parameter that stay allocated through all passes of the step.
        device: type of the device; None = that of the module's trainer, outside of one that of its parameters.

    `report()` says what each option does for this model on this device, or why it does nothing; it is also logged.
    """

    def __init__(
        self,
        precision: str = "bf16-mixed",
        optimize_bmm: bool = True,
        use_fused_rope: bool = True,
        use_flash_attention_v2: bool = True,
        cache_fp32_weights: bool = True,
        device: str | None = None,
    ) -> None:
        if precision not in PRECISIONS:
            raise ConfigError(refusal(precision))
        self.precision = precision
        self.optimize_bmm = optimize_bmm
        self.use_fused_rope = use_fused_rope
        self.use_flash_attention_v2 = use_flash_attention_v2
        self.cache_fp32_weights = cache_fp32_weights
        self._device = device
        self._module: nn.Module | None = None
        self._effects: dict[str, str] = {}
        self._sharded = False
        self._holds_cache = False

    @property
    def dtype(self) -> torch.dtype:
        """Of matrix products."""
        return torch.float32 if self.precision == "32-true" else torch.bfloat16

    @property
    def device_type(self) -> str:
        """Where the products are computed."""
        if self._device is not None:
            return self._device
        root = self._root_device()
        if root is not None:
            return root.type
        first = next(self._module.parameters(), None) if self._module is not None else None
        return first.device.type if first is not None else "cpu"

    def report(self) -> dict[str, str]:
        """Option and its effect; before the module is known, what can be said without it."""
        return {**self._without_module(), **self._effects}

    def convert_module(self, module: nn.Module) -> nn.Module:
        """Apply the options to the module, whose class and parameters' names stay."""
        from gaudi3_scale.memory.attention import use_attention
        from gaudi3_scale.memory.rotary import use_fused_rotary

        if self.precision == "bf16-true":
            module = module.to(torch.bfloat16)
        self._module = module
        self._sharded = any(isinstance(parameter, DTensor) for parameter in module.parameters())
        if self.use_flash_attention_v2:
            self._effects["use_flash_attention_v2"] = use_attention(module, "flash", self.device_type)
        if self.use_fused_rope:
            self._effects["use_fused_rope"] = use_fused_rotary(module, self.device_type)
        if not self.optimize_bmm and self.precision != "32-true":
            _keep_batched_products_float32(module)
        for option, effect in self.report().items():
            log.info("%s: %s", option, effect)
        return module

    def convert_input(self, data: Any) -> Any:
        """Floating-point inputs in the dtype of the weights."""
        if self.precision != "bf16-true":
            return data
        from lightning.fabric.utilities.apply_func import apply_to_collection

        return apply_to_collection(
            data, Tensor, lambda tensor: tensor.to(torch.bfloat16) if torch.is_floating_point(tensor) else tensor
        )

    def tensor_init_context(self) -> AbstractContextManager[Any]:
        """New weights in the dtype they are kept in."""
        return _default_dtype(torch.bfloat16) if self.precision == "bf16-true" else nullcontext()

    def module_init_context(self) -> AbstractContextManager[Any]:
        return self.tensor_init_context()

    @contextmanager
    def forward_context(self) -> Iterator[None]:
        """Autocast on the device that is used, with the cache of cast weights kept until the optimizer has stepped."""
        if self.precision != "bf16-mixed":
            with self.tensor_init_context():
                yield
            return
        # Without gradients a cast has no history, and a later pass that found it would learn nothing.
        caches = self.cache_fp32_weights and torch.is_grad_enabled() and not self._sharded
        if caches and not self._holds_cache and self._passes() != 1:
            torch.autocast_increment_nesting()  # autocast forgets when its depth is back at zero
            self._holds_cache = True
        with torch.autocast(self.device_type, dtype=torch.bfloat16, cache_enabled=caches):
            yield

    def optimizer_step(self, optimizer: Any, model: Any, closure: Any, **kwargs: Any) -> Any:
        """Step, and drop the casts of the weights as they were."""
        try:
            return super().optimizer_step(optimizer, model=model, closure=closure, **kwargs)
        finally:
            self.drop_cache()

    def clip_grad_by_norm(self, optimizer: Any, clip_val: float) -> None:
        """As torch does, and of split matrices as well, whose gradients are on a mesh of their own."""
        gradient_norm(list(self.main_params(optimizer)), float(clip_val))

    def teardown(self) -> None:
        self.drop_cache()

    def drop_cache(self) -> None:
        """Forget the cast weights; to be called when weights were changed other than through `optimizer_step`."""
        if self._holds_cache:
            self._holds_cache = False
            torch.autocast_decrement_nesting()
            torch.clear_autocast_cache()

    def _root_device(self) -> torch.device | None:
        """Where the trainer will put the module, which Lightning converts before moving it; None without one."""
        try:
            module: Any = self._module
            return getattr(module.trainer.strategy, "root_device", None)
        except (AttributeError, RuntimeError):  # a module that is in no trainer says so by an error
            return None

    def _passes(self) -> int | None:
        """Forward passes per optimizer step; None where no trainer says."""
        try:
            module: Any = self._module
            trainer = module.trainer
        except (AttributeError, RuntimeError):  # a module that is in no trainer says so by an error
            return None
        return getattr(trainer, "accumulate_grad_batches", None)

    def _without_module(self) -> dict[str, str]:
        full = "no effect: 32-true computes everything in float32"
        bmm = "batched products in bfloat16" if self.optimize_bmm else "batched products in float32"
        if self.use_flash_attention_v2:
            bmm += "; those of fused attention are inside its kernel"
        overruled = autocast_overruled(self.device_type, "bmm")
        if self.optimize_bmm and self.precision == "bf16-mixed" and overruled:
            bmm = f"no effect: {overruled}"
        if self.precision == "32-true":
            cache = full
        elif self.precision == "bf16-true":
            cache = "no effect: with bf16-true there are no float32 weights"
        elif not self.cache_fp32_weights:
            cache = "weights cast at every use"
        elif self._sharded:
            cache = "no effect: it would keep every gathered weight of a sharded model"
        elif self._passes() == 1:
            cache = "weights cast once per forward pass, of which there is one per optimizer step"
        else:
            cache = "weights cast once per optimizer step"
        return {
            "precision": self.precision,
            "optimize_bmm": full if self.precision == "32-true" else bmm,
            "use_fused_rope": "the module is not known yet" if self.use_fused_rope else "off: as the model is written",
            "use_flash_attention_v2": (
                "the module is not known yet" if self.use_flash_attention_v2 else "off: as the model is built"
            ),
            "cache_fp32_weights": cache,
        }


def build_precision(name: str, device: Device) -> GaudiMixedPrecision:
    """The plugin for `train.precision`, also `auto`; attention is `memory.attention`'s to choose."""
    name = precision_of(name, device.type)
    return GaudiMixedPrecision(name, use_fused_rope=False, use_flash_attention_v2=False, device=device.type)


class _Float32Products(TorchFunctionMode):
    """Batched matrix products in float32, as autocast's own list of float32 operations would have them.

    Without autocast the result is back in the operands' dtype, since nothing after it would cast.
    """

    NAMES = frozenset({"matmul", "__matmul__", "__rmatmul__", "bmm", "baddbmm", "einsum"})

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Cast around a product of which an operand is a batch of matrices; leave all else alone."""
        kwargs = kwargs or {}
        if getattr(func, "__name__", "") not in self.NAMES:
            return func(*args, **kwargs)
        tensors = [each for each in args if isinstance(each, Tensor)]
        if sum(each.ndim > 2 for each in tensors) < 2 or not all(each.is_floating_point() for each in tensors):
            return func(*args, **kwargs)
        wide = [each.float() if isinstance(each, Tensor) else each for each in args]
        mixed = torch.is_autocast_enabled(tensors[0].device.type)
        with torch.autocast(tensors[0].device.type, enabled=False):
            product = func(*wide, **kwargs)
        return product if mixed else product.to(tensors[0].dtype)


class _InFloat32Products:
    """A module's forward with `_Float32Products` on. Picklable and copyable."""

    def __init__(self, forward: Any) -> None:
        self.forward = forward

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        with _Float32Products():
            return self.forward(*args, **kwargs)


def _keep_batched_products_float32(module: nn.Module) -> None:
    """Within the blocks, not around them: recomputation runs a block's inside again, without what surrounds it."""
    from gaudi3_scale.models.blocks import repeated_blocks

    blocks = {id(block) for _, block in repeated_blocks(module)}

    def visit(part: nn.Module) -> bool:
        """Is there a block in it?"""
        inner = [visit(child) for child in part.children()]
        around = id(part) in blocks or any(inner)
        if around:
            for child, contains in zip(part.children(), inner, strict=True):
                if not contains:
                    child.forward = _InFloat32Products(child.forward)
        return around

    if not visit(module):
        module.forward = _InFloat32Products(module.forward)


@contextmanager
def _default_dtype(dtype: torch.dtype) -> Iterator[None]:
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)
