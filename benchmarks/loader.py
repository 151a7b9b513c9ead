"""What the loader costs beside torch's own, on the same packed tokens on disk, without worker processes.

    python benchmarks/loader.py                       # 16 samples of 1,024 tokens a batch, uint16
    python benchmarks/loader.py --batch 64 --length 4096 --rounds 15 --json

plain     torch.utils.data.DataLoader(shuffle=True) over a dataset whose __getitem__ cuts one window out of the memmap,
          with the default collation
stateful  the same dataset in torchdata's StatefulDataLoader: what resuming costs there
ours      PackedDataset: global order, position and state; without reading ahead, which moves work and saves none

The loaders take turns, in an order that rotates, so that a busy machine disturbs all alike. `ratio` is the tokens per
second of CPU time against the plain one's, from the medians; the aim is at least 2.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from itertools import islice
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "trainer" / "src"))

TOKENS = 32_000_000
VOCABULARY = 50_000


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--batch", type=int, default=16, help="samples per batch")
    parser.add_argument("--length", type=int, default=1024, help="tokens per sample")
    parser.add_argument("--rounds", type=int, default=9, help="rounds of each loader")
    parser.add_argument("--batches", type=int, default=200, help="batches per round")
    parser.add_argument("--json", action="store_true", help="print one JSON object only")
    arguments = parser.parse_args()
    import torch

    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        loaders = build(Path(folder), arguments.length, arguments.batch)
        seconds: dict[str, list[float]] = {name: [] for name in loaders}
        names = list(loaders)
        for number in range(arguments.rounds + 1):
            for name in names[number % 3 :] + names[: number % 3]:
                took = cpu_seconds(loaders[name], arguments.batches)
                if number:  # the first round reads the file
                    seconds[name].append(took)
    tokens = arguments.batch * arguments.length * arguments.batches
    rates = {name: tokens / statistics.median(each) for name, each in seconds.items()}
    result = {name: {"tokens_per_cpu_second": rate, "ratio": rate / rates["plain"]} for name, rate in rates.items()}
    if arguments.json:
        print(json.dumps(result))
        return
    for name, each in result.items():
        print(f"{name:8}  {each['tokens_per_cpu_second'] / 1e6:8.1f} Mtokens/s of CPU  ratio {each['ratio']:.2f}")


def cpu_seconds(loader: Callable[[], Iterable[Any]], batches: int) -> float:
    """CPU time of this process for so many batches, the making of their order included."""
    iterator = iter(loader())
    began = time.process_time()
    for batch in islice(iterator, batches):
        assert batch.shape[1] > 1
    return time.process_time() - began


def build(folder: Path, length: int, batch: int) -> dict[str, Callable[[], Iterable[Any]]]:
    """The three loaders over the same tokens."""
    import numpy as np
    import torch
    from torch.utils.data import DataLoader, Dataset
    from torchdata.stateful_dataloader import StatefulDataLoader

    from gaudi3_scale.config import DataConfig
    from gaudi3_scale.data import PackedDataset
    from gaudi3_scale.data.prepare import key
    from gaudi3_scale.data.shards import Corpus, write_index
    from gaudi3_scale.data.tokenizer import load_tokenizer
    from gaudi3_scale.data.writer import ShardWriter

    config = DataConfig(source="benchmark")
    tokenizer = load_tokenizer(config)
    home = folder / key(config, tokenizer)  # as if it had been prepared with it
    home.mkdir()
    writer = ShardWriter(home, "uint16", TOKENS, [])
    writer.begin_document()
    writer.write(np.random.default_rng(0).integers(0, VOCABULARY, TOKENS))
    writer.finish()
    write_index(Corpus(home, "benchmark", "uint16", 1, tokenizer.vocabulary, 0, None, "token", tuple(writer.shards)))

    class Windows(Dataset[torch.Tensor]):
        """One window at a time, as one would write it."""

        def __init__(self) -> None:
            self.tokens = np.memmap(home / writer.shards[0].file, dtype=np.uint16, mode="r")

        def __len__(self) -> int:
            return (TOKENS - 1) // length

        def __getitem__(self, index: int) -> torch.Tensor:
            return torch.from_numpy(self.tokens[index * length : index * length + length + 1].astype(np.int64))

    def ours() -> Iterable[Any]:
        return PackedDataset("benchmark", folder, sequence_length=length, batch_size=batch, prefetch=0)

    return {
        "plain": lambda: DataLoader(Windows(), batch_size=batch, shuffle=True),
        "stateful": lambda: StatefulDataLoader(Windows(), batch_size=batch, shuffle=True),
        "ours": ours,
    }


if __name__ == "__main__":
    main()
