"""What is known of an error that ended a job, in one sentence."""

from __future__ import annotations

import errno
import os
import re
import sys
from typing import NoReturn

from gaudi3_scale.config import Config
from gaudi3_scale.distributed.process_group import Topology
from gaudi3_scale.errors import TrainerError
from gaudi3_scale.hangs import ring
from gaudi3_scale.hangs.start import is_lost_contact
from gaudi3_scale.hpu.device import OUT_OF_MEMORY, is_out_of_memory
from gaudi3_scale.status import Progress, StatusFile

FULL = (errno.ENOSPC, errno.EDQUOT)
CARD = (
    # Synapse: graph.cpp and device.cpp in backend/synapse_helpers there.
    "synstatus",
    "device acquire failed",
)
"""What a RuntimeError says when this process's own Gaudi card fails, or is not available."""


def is_card_failure(error: Exception) -> bool:
    """Whether Synapse says that this process's card failed; memory that does not suffice is another matter."""
    said = str(error).lower()
    return type(error) is RuntimeError and any(text in said for text in CARD) and not is_out_of_memory(error)


def explain(error: Exception, topology: Topology, progress: Progress, config: Config) -> Exception:
    """The error as one sentence where it is known what to do, else the error itself.

    Known are another process that died, a card that failed, memory that does not suffice, and a full disk.
    """
    if isinstance(error, OSError) and error.errno in FULL:
        return TrainerError(
            f"{error.filename or config.output_dir} cannot be written ({error.strerror}): give the disk room, or "
            "output_dir another place; started again, the job resumes from its newest checkpoint."
        )
    if topology.world_size > 1 and is_lost_contact(error):
        return TrainerError(
            f"Rank {topology.rank} lost contact with another process after step {progress.step} "
            f"({_gist(str(error))}): look for the first failure in the other processes' logs; started again, "
            "the job resumes from its newest checkpoint."
        )
    if is_out_of_memory(error):
        size = config.train.micro_batch_size
        smaller = f"to auto or below {size}" if isinstance(size, int) and size > 1 else "to a smaller number"
        return TrainerError(
            f"Rank {topology.rank} {OUT_OF_MEMORY} after step {progress.step} ({_gist(str(error))}): set "
            f"train.micro_batch_size {smaller}, or memory.activation_checkpointing to full; started again, the job "
            "resumes from its newest checkpoint."
        )
    if is_card_failure(error):
        said = str(error).splitlines()[0].rstrip(". ")[:200]
        return TrainerError(
            f"The card of rank {topology.rank} failed after step {progress.step} ({said}): look at hl-smi and the "
            "kernel's log of this node, and whether another process has the card; started again, the job resumes from "
            "its newest checkpoint."
        )
    return error


def leave_hung(seconds: float, topology: Topology, progress: Progress, status: StatusFile | None) -> NoReturn:
    """End this process, from any thread, as it waits for others for good; `status` is of the node's first process."""
    ring.announce(ring.HUNG)
    words = (
        f"Rank {topology.rank} got no further for {seconds:.0f} s after step {progress.step}: another process or a "
        "card hangs; look for the rank that says nothing in the nodes' logs, and at hl-smi; started again, the job "
        "resumes from its newest checkpoint."
    )
    try:
        print(f"gaudi3-train: {words}", file=sys.stderr, flush=True)
        if status is not None:
            status.write("failed", progress, words)
        ring.ending(ring.HUNG)
    finally:
        os._exit(1)


def _gist(text: str) -> str:
    """A message without its source file and its advice."""
    return re.sub(r"^\[[^]]*\] *", "", text.splitlines()[0]).split(". ")[0][:200]
