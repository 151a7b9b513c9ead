"""Functions run as the ranks of a process group, without paying for torch's import in every process."""

from __future__ import annotations

import multiprocessing
import os
import signal
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

PRELOAD = ["torch", "torch.distributed.fsdp", "gaudi3_scale.callbacks.gaudi_checkpoint"]
SECONDS = 60


def run(size: int, folder: Path, function: Callable[..., Any], *arguments: Any, killed: bool = False) -> list[Any]:
    """The results of `function(rank, *arguments)` on `size` gloo ranks; `killed`: all must end by SIGKILL."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOAD)
    folder.mkdir(parents=True, exist_ok=True)
    meeting = folder / f"meeting-{os.urandom(4).hex()}"
    receivers, processes = [], []
    for rank in range(size):
        receiver, sender = context.Pipe(duplex=False)
        process = context.Process(
            target=_main, args=(sender, rank, size, meeting, dict(os.environ), function, arguments)
        )
        process.start()
        sender.close()
        receivers.append(receiver)
        processes.append(process)
    try:
        outcomes = []
        for receiver in receivers:
            assert receiver.poll(SECONDS), f"no answer within {SECONDS} s"
            try:
                outcomes.append(receiver.recv())
            except EOFError:
                outcomes.append((False, "ended without an answer"))
        for process in processes:
            process.join(SECONDS)
    finally:
        for process in processes:
            process.kill()
    if killed:
        assert [process.exitcode for process in processes] == [-signal.SIGKILL] * size, outcomes
        return []
    assert all(good for good, _ in outcomes), "\n".join(text for good, text in outcomes if not good)
    return [value for _, value in outcomes]


def _main(sender: Any, rank: int, size: int, meeting: Path, environment: Any, function: Any, arguments: Any) -> None:
    import objects
    import torch
    import torch.distributed as dist

    objects.forbid()
    os.environ.update(environment)  # the fork server's is older
    torch.set_num_threads(1)
    try:
        if size > 1:
            dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=size)
        sender.send((True, function(rank, *arguments)))
        if size > 1:
            dist.barrier()
    except BaseException:
        sender.send((False, f"rank {rank}: {traceback.format_exc()}"))
    os._exit(0)  # without the destructors of process groups
