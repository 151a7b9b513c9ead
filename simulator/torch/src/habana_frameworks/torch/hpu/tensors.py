"""torch.hpu.FloatTensor and the others, as torch.cuda has them: torch.tensor with type and device given."""

from __future__ import annotations

from typing import Any

import torch

_TYPES = {
    "BFloat16Tensor": torch.bfloat16, "BoolTensor": torch.bool, "ByteTensor": torch.uint8, "CharTensor": torch.int8,
    "DoubleTensor": torch.float64, "FloatTensor": torch.float32, "HalfTensor": torch.float16,
    "IntTensor": torch.int32, "LongTensor": torch.int64, "ShortTensor": torch.int16,
}  # fmt: skip
__all__ = list(_TYPES)


def _type(name: str, dtype: torch.dtype) -> type[torch.Tensor]:
    def __new__(cls: type[torch.Tensor], *arguments: Any, **options: Any) -> torch.Tensor:
        for key, wanted in (("device", "hpu"), ("dtype", dtype)):
            if options.setdefault(key, wanted) != wanted:
                raise RuntimeError(f"torch.hpu.{name} has the {key} {wanted}, and {options[key]} was given.")
        return torch.Tensor._make_subclass(cls, torch.tensor(*arguments, **options))

    return type(name, (torch.Tensor,), {"__new__": __new__, "__doc__": f"A tensor of {dtype} on hpu."})


globals().update({name: _type(name, dtype) for name, dtype in _TYPES.items()})
