"""A process begins to note its collectives, if a launcher reads them, and says how it ends."""

from __future__ import annotations

import os
from pathlib import Path

from gaudi3_scale.hangs import ring, stacks

LOST = (
    # gloo: transport/tcp of pytorch/gloo, with a path that names it or, from its system calls, without one.
    "gloo",
    "connection closed by peer",
    "connection reset by peer",
    "connection refused",
    "caused pair closure",
    # HCCL: process_group_hccl_base.cpp and process_group_eager_hccl.cpp of HabanaAI/gaudi-pytorch-bridge.
    "hccl",
    "collective call returned error",
    "p2p call returned error",
)
"""What a RuntimeError of torch says when another process is gone. What HCCL says then has not been seen on a card."""
LATE = ("timed out", "timeout")
"""What it says besides if that process only did not answer in time."""


def begin(rank: int, world_size: int, local_world_size: int, folder: Path | None = None) -> None:
    """Note from here on; the process group is there. `folder` is the job's, where that is known."""
    first = ring.current() is None
    made = ring.start(rank, world_size, local_world_size, folder)
    if made is None or not first:
        return
    from gaudi3_scale.hangs.counter import install

    install(made)
    if stacks.offer(Path(os.environ[ring.FOLDER]) / f"{rank}.stacks"):
        made.gives_stacks()


def is_lost_contact(error: BaseException) -> bool:
    """Whether it is what happens when another process dies.

    torch has a type for errors of the store and of NCCL; gloo and Intel's plugin raise a plain RuntimeError. No other
    type counts: an upload, or whatever else talks to a network, speaks of connections, too.
    """
    import torch.distributed as dist

    said = str(error).lower()
    return isinstance(error, dist.DistError) or (type(error) is RuntimeError and any(text in said for text in LOST))


def end_of(error: BaseException) -> int:
    """In which way a process ends that ends with this error."""
    if not isinstance(error, Exception):
        return ring.LEFT
    if not is_lost_contact(error):
        return ring.FAILED
    return ring.TIMED_OUT if any(text in str(error).lower() for text in LATE) else ring.LOST
