"""Which documents are held out: whole ones, drawn alike for every seed, and no more than the evaluation reads."""

from __future__ import annotations

import numpy as np

from gaudi3_scale.data.order import SPLIT_KEY, permute
from gaudi3_scale.data.shards import Corpus
from gaudi3_scale.data.starts import Starts
from gaudi3_scale.data.stream import Positions

CANDIDATES = 2**16
CHUNK = 4096


def split(corpus: Corpus, starts: Starts, length: int, fraction: float, samples: int) -> tuple[Positions, Positions]:
    """Pieces of the corpus (n, 2) to train on, in its order, and held-out ones in the order they were drawn.

    Documents are held out until they fill `samples` windows, or the fraction of the corpus if that is less. One is
    left out of the draw that would take more than twice that. Where no window can be filled in this way (one document
    is most of the corpus), the end of the corpus is held out, and the document there is cut. There have to be two
    windows in the corpus.
    """
    blocks = (corpus.size - 1) // length
    count = min(samples, max(1, round(blocks * fraction)))
    needed = count * length + 1
    most = max(needed, min(2 * needed, corpus.size // 2))
    chosen: list[tuple[int, int]] = []
    total = 0
    tried = min(starts.documents, CANDIDATES)
    for first in range(0, tried, CHUNK):
        drawn = permute(np.arange(first, min(first + CHUNK, tried)), starts.documents, SPLIT_KEY)
        for begin, end in zip(starts.at(drawn).tolist(), starts.at(drawn + 1).tolist(), strict=True):
            if total < needed and end > begin and total + end - begin <= most:
                chosen.append((begin, end))
                total += end - begin
        if total >= needed:
            break
    if total <= length or corpus.size - total <= length:
        border = corpus.size - needed  # the token there is the last target of one and the first input of the other
        return np.array([[0, border + 1]]), np.array([[border, corpus.size]])
    held_out = np.array(chosen, dtype=np.int64)
    ordered = held_out[np.argsort(held_out[:, 0])]
    rest = np.stack([np.append(0, ordered[:, 1]), np.append(ordered[:, 0], corpus.size)], axis=1)
    return rest[rest[:, 1] > rest[:, 0]], held_out
