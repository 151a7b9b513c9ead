# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Compiled graphs of a replica on cards, kept from one start to the next (PT_HPU_RECIPE_CACHE_CONFIG).

Each replica has a folder of its own, as the bridge locks its files, and in it one for each key: of the release, the
card, the dtype, the parallelism and all that shapes follow from. The layout is that of `gaudi3-train recipe-cache`,
which packs such a folder for other hosts; the service may write the last one alone.

    recipes/replica-1/1.24.1_gaudi3_bfloat16_0123456789abcdef/key.json
    recipes/replica-1/1.24.1_gaudi3_bfloat16_0123456789abcdef/recipes/    what the bridge reads and writes
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from .versions import release_of

VARIABLE = "PT_HPU_RECIPE_CACHE_CONFIG"
#: Within the folder of a key.
RECORD, RECIPES = "key.json", "recipes"
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9.]+")


@dataclass(frozen=True)
class Key:
    """What graphs are for; the five fields of `gaudi3-train recipe-cache`."""

    release: str
    card: str
    dtype: str
    parallelism: str
    shapes: str

    @property
    def name(self) -> str:
        """The name of its folder, as the trainer's command makes it."""
        digest = hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()[:16]
        parts = (_NOT_IN_NAMES.sub("-", each)[:20].strip("-.") for each in (self.release, self.card, self.dtype))
        return "_".join([*(part or "x" for part in parts), digest])

    def record(self) -> str:
        """What its file says."""
        return json.dumps({"key": asdict(self)}, sort_keys=True) + "\n"

    def arguments(self) -> list[str]:
        """For the trainer's command."""
        return [word for name, value in asdict(self).items() for word in ("--key", f"{name}={value}")]


def key_of(release: str, card: str, cards: int, config: Mapping[str, Any], engine: Mapping[str, Any]) -> Key:
    """The key of a server on cards, which compute in bfloat16 whatever is given.

    ``engine`` has all that shapes and graphs depend on besides the model's configuration: image, arguments, variables.
    """
    digest = hashlib.sha256(json.dumps({"config": config, "engine": engine}, sort_keys=True).encode()).hexdigest()[:16]
    names = config.get("architectures")
    kind = str(names[0]) if isinstance(names, list) and names else "model"
    kind = "".join(each if each.isascii() and each.isprintable() else "?" for each in kind[:80])
    return Key(release_of(release) or "none", card, "bfloat16", f"tp{cards}", f"vllm {kind} {digest}")


def top_of(root: str, replica: int) -> str:
    """The folder with all of a replica's."""
    return f"{root}/recipes/replica-{replica}"


def folder_of(root: str, replica: int, name: str) -> str:
    """The folder that the bridge is given."""
    return f"{top_of(root, replica)}/{name}/{RECIPES}"


def variable(folder: str, megabytes: int) -> str:
    """The folder, kept at the start, with at most this many MB."""
    return f"{folder},false,{megabytes}"
