"""Whether a model's folder holds its weights, whole and in a form that is read. What it lacks is never made up."""

from __future__ import annotations

import json
import os
from functools import lru_cache
from pathlib import Path
from typing import Any

from gaudi3_scale.errors import ConfigError
from gaudi3_scale.git_lfs import HEAD_BYTES, is_pointer

SINGLE = "model.safetensors"
INDEX = "model.safetensors.index.json"
ADAPTERS = "adapter_config.json"
HEADER_LIMIT = 100_000_000
"""Bytes of the longest header that safetensors reads."""
OTHER_FORMS = {
    "*.bin": "pickles (*.bin)",
    "*.pth": "pickles (*.pth)",
    "*.pt": "pickles (*.pt)",
    "*.ckpt": "a pickle (*.ckpt)",
    "*.gguf": "GGUF (*.gguf)",
    "*.h5": "HDF5 (*.h5)",
    "*.msgpack": "Flax's form (*.msgpack)",
    "*.onnx": "ONNX (*.onnx)",
    "*.npz": "NumPy's form (*.npz)",
    "*/*.pth": "pickles in a folder below (*.pth)",
    "*/*.safetensors": "a folder below",
}
RANDOM = "or set model.weights to random to begin from random ones."


def weight_paths(folder: Path) -> tuple[Path, ...]:
    """The files of a folder that hold its weights, in the order of their names, each of them whole.

    Raises:
        ConfigError: The folder has none that are read, or some of them are missing, cut off, or pointers of Git LFS.
    """
    refuse_adapters(folder)
    try:
        listing = tuple((p.name, p.stat().st_size, p.stat().st_mtime_ns) for p in sorted(folder.glob("*.safetensors*")))
        return _whole(folder, listing)
    except OSError as error:
        raise ConfigError(
            f"The weights in {str(folder)!r} cannot be read ({error.strerror}): mend the folder, {RANDOM}"
        ) from None


def refuse_adapters(folder: Path) -> None:
    """ConfigError for adapters in the folder, which transformers would put into the model without a word."""
    if os.path.lexists(folder / ADAPTERS):
        raise ConfigError(
            f"The folder {str(folder)!r} holds adapters of peft ({ADAPTERS}), which are not trained on: give the "
            "folder of their base, or merge them with merge_and_unload() and save the model to a folder of its own."
        )


@lru_cache(maxsize=8)
def _whole(folder: Path, listing: tuple[tuple[str, int, int], ...]) -> tuple[Path, ...]:
    where = f"The folder {str(folder)!r}"
    single = folder / SINGLE
    paths = [folder / name for name in _indexed(folder)] if (folder / INDEX).is_file() else []
    missing = [path.name for path in paths if not path.is_file()]
    if single.is_file() and single not in paths:
        # save_pretrained leaves the index behind when it writes one file in the place of several.
        if len(missing) < len(paths):
            raise ConfigError(
                f"{where} has its weights twice, in {SINGLE} and in the files of {INDEX}: delete those that are not "
                "meant (transformers reads the former, also where it has saved the latter since)."
            )
        paths, missing = [single], []
    if missing:
        more = f" and {len(missing) - 1} more of its {len(paths)} files" if missing[1:] else ""
        raise ConfigError(f"{where} lacks {missing[0]}{more} with weights: download it again, {RANDOM}")
    if not paths:
        others = [name for name, *_ in listing if name.endswith(".safetensors")]
        if others:
            raise ConfigError(
                f"{where} has {others[0]}, and neither {SINGLE} nor {INDEX}: give a folder that save_pretrained wrote, "
                f"{RANDOM}"
            )
        form = next((what for pattern, what in OTHER_FORMS.items() if any(folder.glob(pattern))), None)
        if form is not None:
            raise ConfigError(
                f"{where} has its weights as {form}, which are not read: convert them with save_pretrained, {RANDOM}"
            )
        raise ConfigError(f"{where} has no weights: give a folder with {SINGLE}, {RANDOM}")
    for path in paths:
        _check_whole(path)
    return tuple(paths)


def _indexed(folder: Path) -> list[str]:
    try:
        named: Any = json.loads((folder / INDEX).read_text(encoding="utf-8"))["weight_map"]
        return sorted({Path(str(name)).name for name in named.values()})
    except (ValueError, KeyError, AttributeError, TypeError, RecursionError):
        if _is_pointer(folder / INDEX):
            raise _pointer(folder / INDEX) from None
        raise ConfigError(f"{folder / INDEX} is no index of weights: download it again, {RANDOM}") from None


def _check_whole(path: Path) -> None:
    """Whether a file is as long as its header says."""
    if _is_pointer(path):
        raise _pointer(path)
    size = path.stat().st_size
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if size < 8 or length > HEADER_LIMIT:
            raise ConfigError(f"{path} is no file of safetensors: download it again, {RANDOM}")
        header = file.read(length)
    try:
        values = json.loads(header)
        ends = [int(each["data_offsets"][1]) for name, each in values.items() if name != "__metadata__"]
    except (ValueError, KeyError, IndexError, AttributeError, TypeError, RecursionError):
        if len(header) < length:
            raise _cut_off(path, size) from None
        raise ConfigError(f"{path} is no file of safetensors: download it again, {RANDOM}") from None
    whole = 8 + length + max(ends, default=0)
    if size < whole:
        raise _cut_off(path, size, whole)


def _cut_off(path: Path, size: int, whole: int | None = None) -> ConfigError:
    of = f" of {whole:,}" if whole else ""
    return ConfigError(f"{path} is cut off after {size:,}{of} bytes: download it again, {RANDOM}")


def _is_pointer(path: Path) -> bool:
    with path.open("rb") as file:
        return is_pointer(file.read(HEAD_BYTES))


def _pointer(path: Path) -> ConfigError:
    return ConfigError(f"{path} is a pointer of Git LFS and not the weights: run 'git lfs pull' in its folder.")
