"""Where the documents of a corpus begin."""

from __future__ import annotations

import numpy as np

from gaudi3_scale.data.shards import Corpus
from gaudi3_scale.data.stream import Positions


class Starts:
    """Positions of the documents' first tokens, mapped from the files beside the shards."""

    def __init__(self, corpus: Corpus) -> None:
        self._files = corpus.starts()
        self._ends = np.cumsum([len(file) for file in self._files])
        self._tokens = np.cumsum([shard.tokens for shard in corpus.shards])
        self._size = corpus.size
        self.documents = int(self._ends[-1])

    def at(self, documents: Positions) -> Positions:
        """Where each of these begins; the one after the last begins at the corpus's end."""
        result = np.full(len(documents), self._size, dtype=np.int64)
        homes = np.searchsorted(self._ends, documents, side="right")
        for home in np.unique(homes[homes < len(self._files)]):
            here = np.flatnonzero(homes == home)
            before = self._ends[home] - len(self._files[home])
            result[here] = self._files[home][documents[here] - before].astype(np.int64) + self._begin(home)
        return result

    def between(self, begin: int, end: int) -> Positions:
        """Positions from begin to end - 1, all of one file, where a document begins."""
        home = int(np.searchsorted(self._tokens, begin, side="right"))
        file, offset = self._files[home], self._begin(home)
        first, last = np.searchsorted(file, [begin - offset, end - offset])
        return file[first:last].astype(np.int64) + offset

    def _begin(self, home: int) -> int:
        return int(self._tokens[home - 1]) if home else 0
