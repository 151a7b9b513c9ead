# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""The name that somebody meant who wrote one that does not exist."""

from __future__ import annotations

import difflib
from collections.abc import Collection
from typing import Optional


def nearest(name: str, known: Collection[str], cutoff: float = 0.5) -> Optional[str]:
    """The known name that is most like this one; None where none is like it.

    ``cutoff`` is the least likeness, from 0 (none) to 1 (the same). Of dotted names, one with the same last part is
    taken where no whole name is like it: the key may stand in the wrong section.
    """
    section, _dot, last = name.rpartition(".")
    for each in known:
        above, _dot, own = each.rpartition(".")
        # lr for learning_rate, say.
        if section and above == section and "".join(word[:1] for word in own.split("_")) == last:
            return each
    near = difflib.get_close_matches(name, known, n=1, cutoff=cutoff)
    if near:
        return near[0]
    return next((each for each in known if "." in name and each.rpartition(".")[2] == last), None)
