"""What it costs a step that the process notes its collectives, with which a hang is explained.

    torchrun --nproc-per-node=2 benchmarks/hang_notes.py        # the tiny model; at most 0.02 ms a step

The same job runs with notes, and with the functions of torch as they were, in alternating rounds of one run. `cpu` is
the CPU time of all processes per step: the limit holds for each of them. That difference is far below what such rounds
differ by themselves. So the last line counts the notes of a step, and times a note by itself: a call of a function that
does nothing, with and without its note, best of many.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import timeit
from pathlib import Path
from types import FunctionType
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.trainer_step import MODELS, Bench, Times, summarise


class Notes:
    """Switches the notes of this process off and on again."""

    def __init__(self, bench: Bench, folder: str) -> None:
        """Begin to note."""
        import torch.distributed as dist
        from torch.distributed import distributed_c10d

        from gaudi3_scale.hangs import ring
        from gaudi3_scale.hangs.counter import NOTED
        from gaudi3_scale.hangs.start import begin
        from gaudi3_scale.internals import functional_collectives

        os.environ[ring.FOLDER] = folder
        begin(bench.topology.rank, bench.topology.world_size, bench.topology.local_world_size)
        self._ring: Any = ring
        self._current = ring.current()
        assert self._current is not None, "run it by torchrun with two processes"
        self._functions: list[tuple[Any, str, Any]] = [
            (module, name, function)
            for module in (dist, distributed_c10d, functional_collectives())
            for name, function in list(vars(module).items())
            if isinstance(function, FunctionType) and hasattr(function, NOTED)
        ]

    def switch(self, on: bool) -> None:
        """From now on."""
        for module, name, function in self._functions:
            setattr(module, name, function if on else function.__wrapped__)
        self._ring._current = self._current if on else None

    @property
    def ring(self) -> Any:
        """Where this process notes."""
        return self._current

    def made(self) -> int:
        """Notes so far."""
        return int(self.ring._count)


def note_us(ring: Any) -> float:
    """Microseconds of a note: a noted function that does nothing against the same without notes, best of 200."""
    import torch

    from gaudi3_scale.hangs.counter import PUBLIC, _noted

    def nothing(tensor: Any, op: Any = None, group: Any = None, async_op: bool = False) -> None:
        return

    function = next(each for each in PUBLIC if "all_reduce" in each.names)
    noted, tensor = _noted(ring, nothing, function, False), torch.ones(4, 2)

    def fastest(called: Any) -> float:
        return min(timeit.repeat(lambda: called(tensor), number=500, repeat=200)) / 500 * 1e6

    return fastest(noted) - fastest(nothing)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15, help="rounds of each job")
    parser.add_argument("--steps", type=int, default=200, help="timed steps per round")
    arguments = parser.parse_args()
    overrides = [f"model.{setting}" for setting in MODELS["tiny"]] + ["train.micro_batch_size=8"]
    runs: dict[str, list[Times]] = {"plain": [], "ours": []}
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder), arguments.steps, overrides)
        notes = Notes(bench, folder)
        bench.ours()  # whoever runs first pays for what both need
        for number in range(arguments.rounds):
            for kind in ("plain", "ours") if number % 2 else ("ours", "plain"):
                notes.switch(kind == "ours")
                runs[kind].append(bench.all_processes(bench.ours()))
        notes.switch(True)
        before = notes.made()
        bench.all_processes(bench.ours())
        each_step = (notes.made() - before) / arguments.steps
    if bench.topology.rank:
        return
    size = bench.topology.world_size
    for kind, each in summarise(runs).items():
        per_process = each["extra_ms"] / (size if kind == "cpu" else 1)
        print(
            f"{kind:4}  without {each['plain_ms']:7.3f} ms (+{each['plain_spread_ms']:.3f})  "
            f"with notes {each['ours_ms']:7.3f} ms (+{each['ours_spread_ms']:.3f})  "
            f"ratio {each['ratio']:.3f}  {per_process:+.4f} ms/step and process"
        )
    cost = note_us(notes.ring)
    print(f"{each_step:.2f} notes a step of {cost:.2f} us: {each_step * cost / 1000:.4f} ms of CPU/step and process")


if __name__ == "__main__":
    main()
