"""Data: where it comes from, how it is tokenised and packed once, and how every rank reads its part in order.

    sources.py, tabular.py   text, JSONL, Parquet and Hugging Face datasets, as documents from any position on
    tokenizer.py             bytes, or a tokenizer of the `tokenizers` library
    prepare.py, shards.py    documents -> memory-mapped files of token ids, resumable
    order.py, samples.py     which window of tokens is the n-th sample
    dataset.py, prefetch.py  the loader's face for a LightningModule of one's own, and the thread that reads ahead

The names below are imported when they are first used: preparing data does not need torch.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gaudi3_scale.data.dataset import PackedDataset
    from gaudi3_scale.data.prepare import collect
    from gaudi3_scale.data.samples import RankBatches, Samples
    from gaudi3_scale.data.shards import Corpus, identity

_HOMES = {
    "Corpus": "shards",
    "PackedDataset": "dataset",
    "RankBatches": "samples",
    "Samples": "samples",
    "collect": "prepare",
    "identity": "shards",
}

__all__ = ["Corpus", "PackedDataset", "RankBatches", "Samples", "collect", "identity"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
