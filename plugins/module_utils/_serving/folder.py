# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""A folder of a model, looked at in a second: whether it is whole, how long its sequences are, and who may read it.

vLLM finds the same only behind all its imports or in its third process, minutes later, and in words of its own
("Repo id must be in the form" for a folder that is not there). Of the weights only the headers are read: a file of
safetensors says in its first bytes how long it is.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .._printable import printable
from .._refusal import Refusal
from . import reach

INDEX = "model.safetensors.index.json"
#: One of these is what a tokenizer is read from.
TOKENIZERS = ("tokenizer.json", "tokenizer.model", "vocab.json", "tokenizer_config.json")
_HIDDEN = ("/home", "/root", "/run/user", "/tmp", "/var/tmp")
#: safetensors itself refuses a longer header (100 MB).
LONGEST_HEADER = 100_000_000


@dataclass(frozen=True)
class Model:
    """What a folder holds."""

    path: str
    config: Mapping[str, Any]
    files: Sequence[str]
    """Names of all its files, sorted; folders and links to nowhere are none of a model's."""
    weights_bytes: int
    """Of its weights, in bytes."""
    total_bytes: int
    identity: str
    """Another one for other names, sizes, times or settings: the contents of weights are not read."""

    @property
    def longest(self) -> int:
        """The longest sequence in tokens, by ``max_position_embeddings``; 0 where config.json does not say."""
        text = self.config.get("text_config")
        for each in (self.config, text if isinstance(text, Mapping) else {}):
            value = each.get("max_position_embeddings")
            if isinstance(value, int) and not isinstance(value, bool) and value > 0:
                return value
        return 0


def read(path: str) -> Model:
    """Look at a folder; ``Refusal`` with the first thing that vLLM could not start from."""
    if not os.path.isabs(path):
        raise Refusal(
            f"serving_model is {printable(path)}: give the whole path of a folder on the host, from / on, or "
            "registry:NAME@ALIAS."
        )
    try:
        return _read(path)
    except OSError as error:
        raise Refusal(
            f"{printable(error.filename or path)} cannot be read by root of this host ({error.strerror}): put a copy "
            "of the model where it can, as a share may keep root out (root_squash of NFS)."
        ) from None


def _read(path: str) -> Model:
    if not os.path.isdir(path):
        kind = "is no folder" if os.path.exists(path) else "is not there"
        raise Refusal(
            f"The model's folder {printable(path)} {kind}: give one that `gaudi3-train export` wrote as serving_model."
        )
    config = _object(path, "config.json", "it has no config.json, so it is no exported model")
    names = sorted(entry.name for entry in os.scandir(path) if entry.is_file())
    for name in names:
        with reach.opened(path, name):
            pass
    weights = _weights(path, names)
    if not any(name in names for name in TOKENIZERS):
        raise Refusal(
            f"{printable(path)} has no tokenizer ({', '.join(TOKENIZERS[:2])}): export the model with its tokenizer."
        )
    sizes = {name: os.stat(os.path.join(path, name)) for name in names}
    digest = hashlib.sha256(json.dumps(config, sort_keys=True).encode())
    for name, status in sizes.items():
        # A name need not be UTF-8.
        digest.update(os.fsencode(f"\0{name}\0{status.st_size}\0{status.st_mtime_ns}"))
    return Model(
        path,
        config,
        names,
        sum(sizes[name].st_size for name in weights),
        sum(status.st_size for status in sizes.values()),
        digest.hexdigest(),
    )


def length_problem(model: Model, wanted: int) -> str:
    """Why sequences of this length cannot be served; empty where they can. 0 is the model's own length."""
    if not wanted or not model.longest or wanted <= model.longest:
        return ""
    return (
        f"serving_max_model_len is {wanted}, and {printable(model.path)} was trained for {model.longest} tokens "
        f"(max_position_embeddings in its config.json): give {model.longest} or less."
    )


def unreadable(model: Model, uid: int, gids: Collection[int]) -> str:
    """The first file or folder that a user may not read; empty where all may be read."""
    places = [*_ancestors(model.path), *(os.path.join(model.path, name) for name in model.files)]
    for place in places:
        status = os.stat(place)
        wanted = stat.S_IROTH if stat.S_ISREG(status.st_mode) else stat.S_IXOTH
        if place == model.path:
            wanted |= stat.S_IROTH
        if uid == 0:
            continue
        shift = 6 if status.st_uid == uid else 3 if status.st_gid in gids else 0
        if status.st_mode >> shift & wanted != wanted:
            return place
    return ""


def hidden(path: str) -> str:
    """The folder above a place that a unit with ProtectHome and PrivateTmp does not see; empty where it sees it."""
    whole = os.path.normpath(path) + "/"
    return next((each for each in _HIDDEN if whole.startswith(f"{each}/")), "")


def _ancestors(path: str) -> Iterator[str]:
    """A folder's real place and those above it, from the top."""
    parts = os.path.realpath(path).strip("/").split("/")
    for count in range(len(parts)):
        yield "/" + "/".join(parts[:count])
    yield path


def _object(path: str, name: str, missing: str) -> Mapping[str, Any]:
    place = os.path.join(path, name)
    try:
        if os.path.lexists(place) and not os.path.isfile(place):
            raise ValueError("no file")  # a pipe would be waited for
        with open(place, encoding="utf-8") as stream:
            found = json.load(stream)
    except FileNotFoundError:
        raise Refusal(f"{printable(path)} cannot be served: {missing}; export it again.") from None
    except (ValueError, RecursionError) as error:
        raise Refusal(f"{printable(place)} cannot be read ({printable(error, 200)}): export the model again.") from None
    if not isinstance(found, dict):
        raise Refusal(f"{printable(place)} is no JSON object: export the model again.")
    return found


def _weights(path: str, names: Sequence[str]) -> list[str]:
    """Names of the files of weights, each whole."""
    if INDEX in names:
        index = _object(path, INDEX, "")
        listed = index.get("weight_map")
        found = sorted({str(each) for each in listed.values()}) if isinstance(listed, Mapping) else []
        lacking = [name for name in found if name not in names]
        if lacking or not found:
            raise Refusal(
                f"{printable(path)} lacks {printable(', '.join(lacking[:3])) or 'weights'}, which {INDEX} names: copy "
                "or export the model again."
            )
    else:
        found = [name for name in names if name.endswith(".safetensors")]
    if not found:
        raise Refusal(f"{printable(path)} has no weights (*.safetensors): export the model again.")
    for name in found:
        _whole(os.path.join(path, name))
    return found


def _whole(path: str) -> None:
    """``Refusal`` unless a file of safetensors is as long as its header says."""
    size = os.stat(path).st_size
    expected = 0
    try:
        with open(path, "rb") as stream:
            length = int.from_bytes(stream.read(8), "little")
            if not 2 <= length <= LONGEST_HEADER:
                raise ValueError(f"a header of {length} bytes")
            header = json.loads(stream.read(length))
        ends = [each["data_offsets"][1] for name, each in header.items() if name != "__metadata__"]
        expected = 8 + length + max([0, *map(int, ends)])
    except (AttributeError, LookupError, TypeError, ArithmeticError, ValueError, RecursionError) as error:
        raise Refusal(
            f"{printable(path)} is no file of weights ({printable(error, 120)}): copy or export the model again."
        ) from None
    if size != expected:
        raise Refusal(
            f"{printable(path)} has {size} bytes, and by its header {expected}, so it was cut short or changed: copy "
            "or export the model again."
        )
