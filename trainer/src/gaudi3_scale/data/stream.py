"""Tokens of some pieces of a corpus, one after the other, read by windows of a fixed length."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Positions = npt.NDArray[np.int64]
Array = npt.NDArray[Any]


class Stream:
    """The pieces' tokens as if they were one array; a piece is a range of positions in the corpus."""

    def __init__(self, lengths: Sequence[int], pieces: Positions, window: int) -> None:
        """`lengths` of the corpus's files; `pieces` (n, 2), begin and end, in the order of the stream."""
        self.window = window
        ends = np.cumsum(np.asarray(lengths, dtype=np.int64))
        begins = ends - lengths
        cut: list[tuple[int, int, int]] = []  # file, begin within it, tokens
        for begin, end in pieces.tolist():
            while begin < end:
                home = int(np.searchsorted(ends, begin, side="right"))
                until = min(end, int(ends[home]))
                cut.append((home, begin - int(begins[home]), until - begin))
                begin = until
        table = np.array(cut, dtype=np.int64).reshape(-1, 3)
        self._homes, self._offsets, sizes = table.T
        self._ends = np.cumsum(sizes)
        self._shifts = self._offsets - (self._ends - sizes)  # from a position in the stream to one in the file
        self._begins = begins
        self.size = int(self._ends[-1]) if len(cut) else 0
        self.blocks = max(0, (self.size - 1) // (window - 1))
        """Windows that share one token with the next."""

    def read(self, views: Sequence[Array | None], arrays: Sequence[Array], starts: Positions) -> Positions:
        """(B, window) int64: what `arrays` (one per file, with `views` of all their windows) hold from `starts` on."""
        if len(self._ends) == 1 and (view := views[self._homes[0]]) is not None:
            only: Positions = view[starts + self._shifts[0]].astype(np.int64)
            return only
        result = np.empty((len(starts), self.window), dtype=np.int64)
        piece = np.searchsorted(self._ends, starts, side="right")
        inside = starts + self.window <= self._ends[piece]
        homes, local = self._homes[piece], starts + self._shifts[piece]
        for home in np.unique(homes[inside]):
            view = views[home]
            assert view is not None, "a window lies in this file"
            here = np.flatnonzero(inside & (homes == home))
            result[here] = view[local[here]]
        for row in np.flatnonzero(~inside):
            done = 0
            for file, begin, count in self._ranges(int(starts[row])):
                result[row, done : done + count] = arrays[file][begin : begin + count]
                done += count
        return result

    def ranges(self, start: int) -> Iterator[tuple[int, int, int]]:
        """Of the window at `start`: offset within it, position in the corpus and tokens of each range."""
        done = 0
        for file, begin, count in self._ranges(start):
            yield done, int(self._begins[file]) + begin, count
            done += count

    def _ranges(self, start: int) -> Iterator[tuple[int, int, int]]:
        piece, missing = int(np.searchsorted(self._ends, start, side="right")), self.window
        while missing:
            count = min(missing, int(self._ends[piece]) - start)
            yield int(self._homes[piece]), start + int(self._shifts[piece]), count
            start, missing, piece = start + count, missing - count, piece + 1


def windows_of(arrays: Sequence[Array], window: int) -> list[Array | None]:
    """A view of all windows of each array, overlapping; None for one that is too short."""
    return [
        np.lib.stride_tricks.sliding_window_view(array, window) if len(array) >= window else None for array in arrays
    ]
