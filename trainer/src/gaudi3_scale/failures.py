"""What is known of an error that ended a job, in one sentence."""

from __future__ import annotations

import errno
import re

import torch

from gaudi3_scale.config import Config
from gaudi3_scale.distributed import Topology
from gaudi3_scale.errors import TrainerError
from gaudi3_scale.status import Progress

FULL = (errno.ENOSPC, errno.EDQUOT)


def is_lost_contact(error: Exception) -> bool:
    """Whether it is what happens when another process dies."""
    text = str(error)
    lost = any(word in text.lower() for word in ("gloo", "connection", "pair closure"))
    return (lost or isinstance(error, torch.distributed.DistError)) and not isinstance(error, TrainerError)


def explain(error: Exception, topology: Topology, progress: Progress, config: Config) -> Exception:
    """The error as one sentence where another process died or a disk is full, else the error itself."""
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
    return error


def _gist(text: str) -> str:
    """A message from gloo without its source file and its advice."""
    return re.sub(r"^\[[^]]*\] *", "", text.splitlines()[0]).split(". ")[0][:200]
