"""`gaudi3-train` whose processes come to a hang, of a kind that the environment names, in one rank and step.

    HANG_KIND=skipped HANG_RANKS=1 HANG_STEP=6

Each forward pass makes two collectives of its own, as a module that averages its metrics does. Where a phase is named
(`HANG_KIND=loader`), the process blocks there for good; `HANG_SECONDS` has it go on after that, and `HANG_MOVES` has it
do something meanwhile. A process says in the file `hung-RANK` of HANG_IN that it is there.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path
from typing import Any, NoReturn

import torch
import torch.distributed as dist

KIND = os.environ["HANG_KIND"]
STEP = int(os.environ["HANG_STEP"])
CHOSEN = os.environ["RANK"] in os.environ["HANG_RANKS"].split(",")
SECONDS = float(os.environ.get("HANG_SECONDS", "100000"))
PHASES = {
    "loader": "data",
    "forward": "forward",
    "backward": "backward",
    "optimizer": "optimizer",
    "checkpoint": "save",
}
"""Those of paused_job where a process blocks, by the kind of hang."""


def block() -> None:
    """Do nothing more."""
    (Path(os.environ["HANG_IN"]) / f"hung-{os.environ['RANK']}").touch()
    time.sleep(SECONDS)


def stop() -> None:
    """Be stopped, as all threads are."""
    (Path(os.environ["HANG_IN"]) / f"hung-{os.environ['RANK']}").touch()
    os.kill(os.getpid(), signal.SIGSTOP)
    time.sleep(SECONDS)  # any thread may take the signal: this one must not go on until it has


def lose_node() -> None:
    """The launcher is stopped first, and then its processes: nothing of the node answers any more."""
    if os.environ["LOCAL_RANK"] == "0":
        os.kill(os.getppid(), signal.SIGSTOP)
    stop()


def hold_interpreter() -> None:
    """A call that keeps the interpreter's lock: no thread of Python runs."""
    import ctypes

    (Path(os.environ["HANG_IN"]) / f"hung-{os.environ['RANK']}").touch()
    ctypes.PyDLL(None).sleep(int(min(SECONDS, 1000)))


def calls(step: int, device: torch.device) -> None:
    """The module's own collectives in a step."""
    due = CHOSEN and step == STEP
    if due and KIND in ("order", "extra", "skipped", "shape", "wedge"):
        (Path(os.environ["HANG_IN"]) / f"hung-{os.environ['RANK']}").touch()
    if KIND == "wedge" and step == STEP:
        WEDGED.set()
    if due and KIND == "order":
        dist.broadcast(torch.ones(3, device=device), 0)
        dist.all_reduce(torch.ones(7, device=device))
        return
    if due and KIND == "extra":
        dist.all_reduce(torch.ones(5, device=device))
    if not (due and KIND == "skipped"):
        dist.all_reduce(torch.ones(9 if due and KIND == "shape" else 7, device=device))
    dist.broadcast(torch.ones(3, device=device), 0)


WEDGED = threading.Event()


def wedge() -> None:
    """A collective that all have launched does not come back, and ends by its time limit."""
    from torch.distributed import distributed_c10d

    original = distributed_c10d.all_reduce

    def all_reduce(tensor: Any, *arguments: Any, group: Any = None, async_op: bool = False, **named: Any) -> Any:
        if WEDGED.is_set() and not async_op:
            block_for = float(os.environ["HANG_LIMIT"])
            time.sleep(block_for)
            raise RuntimeError(f"[gloo] Timed out waiting {1000 * block_for:.0f}ms for recv operation to complete")
        return original(tensor, *arguments, group=group, async_op=async_op, **named)

    distributed_c10d.all_reduce = dist.all_reduce = all_reduce


def install() -> None:
    """Have the job hang."""
    from gaudi3_scale.step.module import LanguageModule

    original = LanguageModule.training_step
    acts = {"stopped": stop, "dead node": lose_node, "interpreter": hold_interpreter}

    def step(self: LanguageModule, batch: Any, index: int) -> Any:
        number = self.trainer.global_step + 1
        if CHOSEN and number == STEP and KIND in acts:
            acts[KIND]()
        calls(number, self.device)
        return original(self, batch, index)

    LanguageModule.training_step = step  # type: ignore[method-assign]
    if KIND == "wedge":
        wedge()
    if KIND in PHASES and CHOSEN:
        import paused_job

        class Block(paused_job.Pause):
            def here(self, due: bool) -> None:
                if due and not self._paused:
                    self._paused = True
                    block()

        paused_job._INSTALL[PHASES[KIND]](Block(Path(os.environ["HANG_IN"]), os.environ["RANK"], STEP))


def main() -> NoReturn:
    """Be the command."""
    from gaudi3_scale.cli import main as command

    install()
    command()
    raise SystemExit


if __name__ == "__main__":
    main()
