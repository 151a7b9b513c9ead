"""A job's data, the same on all of its nodes."""

from __future__ import annotations

from gaudi3_scale.data.mixture import Mixture
from gaudi3_scale.data.shards import Corpus, identity
from gaudi3_scale.errors import TrainerError
from gaudi3_scale.job.data import prepare
from gaudi3_scale.run import Run


def prepare_same(run: Run) -> Corpus | Mixture:
    """Prepare it on every node, and compare. Raises TrainerError on all ranks if nodes have different data."""
    during = "the preparation of the data"
    corpus = prepare(
        run.plan.config, run.process_group, run.console, lambda: run.interruption.check(during, run.progress.step)
    )
    found = run.process_group.gather(identity(corpus) if run.process_group.writer else None)
    known = [(rank, about) for rank, about in enumerate(found) if about is not None]
    first = known[0][1]
    for rank, about in known[1:]:
        if about != first:
            raise TrainerError(
                f"The nodes' data differ: {first['size']:,} {corpus.unit}s with SHA-256 {first['sha256'][:12]} at "
                f"rank 0, {about['size']:,} with {about['sha256'][:12]} at rank {rank}; give every node the same "
                "data.source (for stdlib: the same Python) and delete data/ in output_dir."
            )
    run.progress.unit = "pair" if run.config.data.prefers else corpus.unit
    return corpus
