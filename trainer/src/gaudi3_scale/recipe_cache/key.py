"""What compiled graphs are for. Where one of these differs, they are compiled again, or worse, fit by accident."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from gaudi3_scale.errors import ConfigError, TrainerError

LONGEST = 200
_TEXT = re.compile(rf"[ -~]{{1,{LONGEST}}}")
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9.]+")


class CacheRefusedError(TrainerError):
    """A cache that is not to be used here, and why."""


@dataclass(frozen=True)
class CacheKey:
    """The five fields, each a text as its user wrote it; they are compared letter by letter."""

    release: str
    """Of the Gaudi software, to the digit: `1.24.1`."""
    card: str
    """`gaudi3` or `gaudi2`."""
    dtype: str
    """As `bfloat16`, `fp8` or a training's precision."""
    parallelism: str
    """As `tp4`, or a training's strategy with its processes."""
    shapes: str
    """What the sizes of all tensors follow from: the model, lengths, batches, bucket set."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not isinstance(value, str) or not _TEXT.fullmatch(value):
                raise ConfigError(
                    f"The recipe cache's {field.name} is {str(value)[:80]!r}: give 1 to {LONGEST} plain characters."
                )

    @property
    def name(self) -> str:
        """The name of its folder: for readers, and unlike that of any other key."""
        digest = hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()[:16]
        parts = (_NOT_IN_NAMES.sub("-", each)[:20].strip("-.") for each in (self.release, self.card, self.dtype))
        return "_".join([*(part or "x" for part in parts), digest])

    def refuse_unless(self, wanted: Mapping[str, str]) -> None:
        """CacheRefusedError that names the first of these fields which differs."""
        for name, value in wanted.items():
            mine = getattr(self, name)
            if mine != value:
                raise CacheRefusedError(
                    f"The recipe cache is for {name} {mine!r} and {value!r} is wanted: pack one that was made there."
                )


NAMES = tuple(field.name for field in fields(CacheKey))


def of_record(record: Any) -> CacheKey:
    """A key as it was written down; CacheRefusedError for anything else."""
    if not isinstance(record, dict) or set(record) != set(NAMES):
        raise CacheRefusedError("The recipe cache has no key of the five fields: pack it again.")
    try:
        return CacheKey(**record)
    except ConfigError as error:
        raise CacheRefusedError(str(error)) from None
