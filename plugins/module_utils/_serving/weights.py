# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""What a folder of a model says of itself: its config.json, and the bytes of its weights as they are served.

Only the heads of the safetensors files are read (8 bytes of length, then JSON), so a folder of any size takes no time.
"""

from __future__ import annotations

import json
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .._refusal import Refusal
from .footprint import BYTES

CONFIG = "config.json"
HEAD = 100_000_000
"""The longest head that safetensors itself reads."""
CONFIG_BYTES = 16 * 2**20
_FLOATING = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2}
_OTHER = {"F8_E4M3": 1, "F8_E5M2": 1, "I64": 8, "U64": 8, "I32": 4, "U32": 4, "I16": 2, "U16": 2, "I8": 1, "U8": 1}
_OTHER["BOOL"] = 1


def read_config(folder: str) -> dict[str, Any]:
    """The config.json of a folder. Raises Refusal where there is none that is a JSON object."""
    path = Path(folder) / CONFIG
    if not Path(folder).is_dir():
        raise Refusal(f"{folder} is no folder: give the folder of an exported model")
    try:
        # A pipe or a device in its place would be read for ever.
        if not stat.S_ISREG(path.stat().st_mode):
            raise Refusal(f"{path} is not a regular file: put the model's config.json there")
        with path.open("rb") as file:
            found = json.loads(file.read(CONFIG_BYTES))
    except OSError as error:
        raise Refusal(f"{path} cannot be read ({error.strerror}): give the folder of an exported model") from error
    except (ValueError, RecursionError) as error:
        raise Refusal(f"{path} is not JSON: export the model again") from error
    if not isinstance(found, dict) or not isinstance(found.get("text_config", {}), dict):
        raise Refusal(f"{path} is not a JSON object: export the model again")
    return found


def weights_bytes(folder: str, dtype: str = "bfloat16") -> int:
    """Bytes of all weights of a folder once they are served in this dtype; weights in 8 bits and integers stay so.

    Raises Refusal where a file is missing, cut short, or not of safetensors.
    """
    size = BYTES.get(dtype, 2)
    total = 0
    for path in _files(Path(folder)):
        for name, kind, count in _tensors(path):
            if kind in _FLOATING:
                total += count * min(size, _FLOATING[kind])
            elif kind in _OTHER:
                total += count * _OTHER[kind]
            else:
                raise Refusal(f"{path} has the tensor {name!r} of type {kind}, which is not known: export it again")
    return total


def _files(folder: Path) -> list[Path]:
    """The files of an index where there is one: an older one beside them is not loaded."""
    index = folder / "model.safetensors.index.json"
    if not index.is_file():
        found = sorted(folder.glob("*.safetensors"))
        if not found:
            raise Refusal(f"{folder} has no *.safetensors: export the model with safetensors, or give --weights-gib")
        return found
    try:
        names = json.loads(index.read_bytes())["weight_map"].values()
        files = sorted({str(name) for name in names})
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise Refusal(f"{index} is not an index of safetensors: export the model again") from error
    if odd := [name for name in files if "/" in name or name in ("", ".", "..")]:
        raise Refusal(f"{index} names {odd[0]!r}, which is not a file of its folder: export the model again")
    if missing := [name for name in files if not (folder / name).is_file()]:
        raise Refusal(f"{folder} has no {missing[0]}, which its index names: copy the whole model")
    return [folder / name for name in files]


def _tensors(path: Path) -> Iterator[tuple[str, str, int]]:
    """Name, type and number of elements of each tensor."""
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            if not 2 <= length <= min(HEAD, size - 8):
                raise Refusal(f"{path} is not a whole safetensors file: copy the model again")
            head = json.loads(file.read(length))
    except OSError as error:
        raise Refusal(f"{path} cannot be read ({error.strerror}): make it readable") from error
    except (ValueError, RecursionError) as error:
        raise Refusal(f"{path} is not a whole safetensors file: copy the model again") from error
    try:
        entries = {name: entry for name, entry in head.items() if name != "__metadata__"}
        end = max((int(entry["data_offsets"][1]) for entry in entries.values()), default=0)
        found = [(name, str(entry["dtype"]), _product(entry["shape"])) for name, entry in entries.items()]
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise Refusal(f"{path} is not a whole safetensors file: copy the model again") from error
    if 8 + length + end != size:
        raise Refusal(f"{path} has {size} bytes and its head says {8 + length + end}: copy the model again")
    yield from found


def _product(shape: list[Any]) -> int:
    count = 1
    for each in shape:
        count *= int(each)
    return count
