"""Prepared data for a LightningModule, or a plain loop, of one's own."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch.utils.data import IterableDataset, get_worker_info

from gaudi3_scale.config import DataConfig
from gaudi3_scale.data.mixture import Mixture
from gaudi3_scale.data.prefetch import Prefetched
from gaudi3_scale.data.prepare import collect_all
from gaudi3_scale.data.samples import RankBatches, Samples
from gaudi3_scale.data.shards import Corpus, identity
from gaudi3_scale.errors import ConfigError


class PackedDataset(IterableDataset[torch.Tensor]):
    """Micro-batches of packed samples, (batch_size, sequence_length + 1) int64; inputs are [:, :-1], targets [:, 1:].

    With data.content chat or prompt they are (batch_size, 2, sequence_length), inputs and labels; with data.documents
    (batch_size, 3, sequence_length), positions within the document too, which gaudi3_scale.data.sample_batch turns into
    what a transformers model wants.

        data = PackedDataset("corpus.jsonl", "prepared", sequence_length=1024, batch_size=8, tokenizer="tokenizer.json")
        trainer.fit(module, data)                                        # as it is: it knows its position
        loader = StatefulDataLoader(data, batch_size=None, num_workers=2)  # or DataLoader; batch_size=None, always

    Every rank gets its share of one global order, which depends on the seed only. Iterating takes up where the last
    iteration, or the loaded state, ended; an iteration ends with the epoch. The state counts the samples that all
    ranks consumed together, so that it may be loaded with another number of ranks or another batch size; not so the
    state that a StatefulDataLoader with workers makes of its workers' states.
    """

    def __init__(
        self,
        source: str | Path,
        directory: str | Path,
        *,
        sequence_length: int,
        batch_size: int,
        seed: int = 0,
        rank: int | None = None,
        world_size: int | None = None,
        **settings: Any,
    ) -> None:
        """Prepare the data in `directory` unless it is there. Rank and world size come from torch.distributed, or from
        torchrun's environment, if they are not given; `settings` are the other keys of the configuration's `data`.
        """
        super().__init__()
        config = DataConfig(source=str(source), **settings)
        if config.prefers:
            raise ConfigError(
                "data.content is preference, whose samples gaudi3-train fit alone makes: give PackedDataset text, chat "
                "or prompt."
            )
        self.corpus: Corpus | Mixture = collect_all(config, Path(directory))
        self._samples = Samples(self.corpus, config, sequence_length, seed)
        self._batch_size = batch_size
        self._seed = seed
        self._ahead = config.prefetch
        self._topology = (rank, world_size)
        self._position = 0
        self._within = False  # an epoch that several workers share

    def __len__(self) -> int:
        """Micro-batches of an epoch on each rank."""
        return max(1, self._samples.order.train_size // self._stride())

    def __iter__(self) -> Iterator[torch.Tensor]:
        stride, (rank, size) = self._stride(), self._ranks()
        worker = get_worker_info()
        number, workers = (worker.id, worker.num_workers) if worker else (0, 1)
        # Workers take turns; one that was restored in the middle of an epoch knows where its own next turn is.
        start = self._position if self._within else self._position + number * stride
        end = (self._position // stride // len(self) + 1) * len(self) * stride
        batches = RankBatches(self._samples, start, self._batch_size, rank, size, workers)
        turns = range(start, end, workers * stride)
        mine = (batch for _, batch in zip(turns, batches, strict=False))
        for turn, batch in zip(turns, Prefetched(mine, 0 if worker else self._ahead), strict=False):
            self._position, self._within = turn + workers * stride, workers > 1
            yield batch
        self._position, self._within = end, False

    def state_dict(self) -> dict[str, Any]:
        """Where the next iteration begins, and of which data."""
        return {"samples": self._position, "within": self._within, "seed": self._seed, **identity(self.corpus)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a state; ConfigError if it is of other data or another order."""
        for name, value in self.state_dict().items():
            if name not in ("samples", "within") and state.get(name) != value:
                raise ConfigError(
                    f"The data's state has the {name} {state.get(name)}, and this data has {value}: go on with the "
                    "data and the seed it was saved with."
                )
        self._position, self._within = state["samples"], state["within"]

    def _stride(self) -> int:
        return self._batch_size * self._ranks()[1]

    def _ranks(self) -> tuple[int, int]:
        """Rank and world size, asked for late: Lightning starts the process group after the data is made."""
        import torch.distributed as dist

        if dist.is_available() and dist.is_initialized():
            found = dist.get_rank(), dist.get_world_size()
        else:
            found = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
        rank, size = self._topology
        return found[0] if rank is None else rank, found[1] if size is None else size
