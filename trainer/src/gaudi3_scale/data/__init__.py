"""Data: where it comes from, how it is tokenised and packed once, and how every rank reads its part in order.

    sources.py, tabular.py   text, JSONL, Parquet and Hugging Face datasets, as documents from any position on
    records.py, encode.py    what a record has to have; documents, chats and prompts to tokens, and which are learnt
    tokenizer.py             bytes, or a tokenizer of the `tokenizers` library
    prepare.py, shards.py    documents -> memory-mapped files of token ids
    part.py, split.py        a part of that, resumable, and parts by several processes; writer.py writes the files
    order.py, samples.py     which window of tokens is the n-th sample
    holdout.py, starts.py    which documents are held out; stream.py reads windows of the others
    mixture.py               several sources in fixed proportions
    dataset.py, prefetch.py  the loader's face for a LightningModule of one's own, and the thread that reads ahead

The names below are imported when they are first used: preparing data does not need torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gaudi3_scale.lazy import lazily

if TYPE_CHECKING:
    from gaudi3_scale.data.dataset import PackedDataset
    from gaudi3_scale.data.mixture import Mixture
    from gaudi3_scale.data.prepare import collect, collect_all
    from gaudi3_scale.data.samples import RankBatches, Samples
    from gaudi3_scale.data.shards import Corpus, identity

__all__ = ["Corpus", "Mixture", "PackedDataset", "RankBatches", "Samples", "collect", "collect_all", "identity"]

__getattr__ = lazily(
    __name__,
    {
        "Corpus": "data.shards",
        "Mixture": "data.mixture",
        "PackedDataset": "data.dataset",
        "RankBatches": "data.samples",
        "Samples": "data.samples",
        "collect": "data.prepare",
        "collect_all": "data.prepare",
        "identity": "data.shards",
    },
)
