"""Whether a checkpoint's tensors are those of a model: what decides it is compared, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gaudi3_scale.errors import ConfigError

SIZES = ("hidden_size", "layers", "heads", "kv_heads", "intermediate_size", "vocab_size", "config")
LORA = ("rank", "alpha", "targets")
"""Of adapters: dropout has no tensors."""


def require_same(where: str, before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """The keys of `model` whose values are others than in the manifest of the checkpoint `where`, and may be.

    Raises ConfigError where one decides what the tensors mean. A key that the manifest lacks is one of a later version.
    Names and shapes are compared when the tensors are read.
    """
    before, now = _flat(before), _flat(now)
    changed = [key for key in now if key in before and before[key] != now[key]]
    for key in changed:
        if key in SIZES or (key.removeprefix("lora.") in LORA and key.startswith("lora.")):
            break
        if key == "name" and not ("/" in str(before[key]) and "/" in str(now[key])):  # a folder may have been moved
            break
    else:
        return changed
    raise ConfigError(
        f"The checkpoint {where} is of a model with other sizes than the configuration's (model.{key} is {now[key]!r}, "
        f"and was {before[key]!r}): use another output_dir, or the sizes it was written with."
    )


def _flat(model: Mapping[str, Any]) -> dict[str, Any]:
    lora = model.get("lora")
    parts = {f"lora.{name}": value for name, value in lora.items()} if isinstance(lora, Mapping) else {}
    return {**{name: value for name, value in model.items() if name != "lora"}, **parts}
