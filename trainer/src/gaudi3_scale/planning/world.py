"""A process group of any size in one process: nothing is exchanged, and nobody waits."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch.distributed as dist

from gaudi3_scale.errors import TrainerError
from gaudi3_scale.internals import FAKE_COLLECTIVES, FAKE_STORE


@contextmanager
def fake_world(size: int) -> Iterator[None]:
    """This process is the first of `size`, whose collectives do nothing. TrainerError where there is a real group."""
    if dist.is_initialized():
        raise TrainerError(
            "A sharded step is predicted in a process group of its own, and this process is in one already: predict "
            "before it is made, or with predict_in_child."
        )
    FAKE_COLLECTIVES.check()
    dist.init_process_group("fake", store=FAKE_STORE.get()(), rank=0, world_size=size)
    try:
        yield
    finally:
        dist.destroy_process_group()
