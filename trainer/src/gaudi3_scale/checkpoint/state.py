"""What a checkpoint has besides model and optimizer, in one safetensors file: its tensors, and the rest as JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch

from gaudi3_scale.checkpoint.manifest import DamagedCheckpointError
from gaudi3_scale.codec import NotPlainError, decode, encode
from gaudi3_scale.errors import TrainerError

KEY = "state"
"""The only entry of the file's metadata: of more than one the order would differ from node to node."""


def pack(state: dict[str, Any]) -> bytes:
    """The file's content, equal for equal states; TrainerError names a type that is not stored."""
    from safetensors.torch import save

    tensors: dict[str, torch.Tensor] = {}
    try:
        plain = encode(state, tensors)
    except NotPlainError as error:
        raise TrainerError(
            f"The state to be saved holds an object of type {error}, which is not read from a checkpoint for safety: "
            "let the state_dict of your loaders, callbacks and schedulers have numbers, strings, tensors, lists and "
            "dictionaries only."
        ) from None
    text = json.dumps(plain, separators=(",", ":"), allow_nan=False)
    return save(tensors, {KEY: text})


def unpack(path: Path) -> dict[str, Any]:
    """The state in a file; DamagedCheckpointError if it is none. Nothing but data can come out of it."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as file:
            tensors = {name: file.get_tensor(name).clone() for name in file.keys()}  # noqa: SIM118
            state = decode(json.loads((file.metadata() or {})[KEY]), tensors)
    except (SafetensorError, OSError, ValueError, KeyError, TypeError, RecursionError, RuntimeError) as error:
        raise DamagedCheckpointError(f"{path.name} cannot be read ({type(error).__name__})") from None
    if not isinstance(state, dict):
        raise DamagedCheckpointError(f"{path.name} holds no state")
    return state
