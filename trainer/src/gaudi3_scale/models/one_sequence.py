"""Rows of one sequence each: no explicit attention mask, and no look at the position ids to find that out.

transformers asks the position ids whether several sequences share a row. That reads a value from the device in each
forward pass, and under a tracer, which has no values, the answer is a mask of (B, 1, T, T), with which attention is no
longer causal to its kernel. The job knows the answer. It also asks torch whether the model is being exported, which
torch 2.9 to 2.11 say of all that they compile, and then makes that mask, too. A loss is not exported.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def one_sequence_per_row() -> Iterator[None]:
    """While this is entered, transformers takes each row for one sequence.

    transformers 5 has no argument for it: `find_packed_sequence_indices` is called by all of its functions that make
    masks, and None is its own answer for such rows.
    """
    masks: Any = sys.modules.get("transformers.masking_utils")
    if masks is None:  # no model of transformers is built yet, so none is called
        yield
        return
    asked, exports = masks.find_packed_sequence_indices, masks.is_torchdynamo_exporting
    masks.find_packed_sequence_indices, masks.is_torchdynamo_exporting = _none, _no
    try:
        yield
    finally:
        masks.find_packed_sequence_indices, masks.is_torchdynamo_exporting = asked, exports


def _none(position_ids: Any) -> None:
    """There are no packed sequences."""


def _no() -> bool:
    """Nothing is exported."""
    return False
