"""Rows of one sequence each: no explicit attention mask, and no look at the position ids to find that out.

transformers asks the position ids whether several sequences share a row. That reads a value from the device in each
forward pass, and under a tracer, which has no values, the answer is a mask of (B, 1, T, T), with which attention is no
longer causal to its kernel. The job knows the answer.
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
    asked = masks.find_packed_sequence_indices
    masks.find_packed_sequence_indices = _none
    try:
        yield
    finally:
        masks.find_packed_sequence_indices = asked


def _none(position_ids: Any) -> None:
    """There are no packed sequences."""
