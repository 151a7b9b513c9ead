#!/usr/bin/env python3
"""What a checkpoint costs the training: the asynchronous save against the same save done synchronously.

A state of model and AdamW of the given size is saved by turns in four ways, with a step in between: asynchronously,
synchronously (the same files, digests and fsync), with `dcp.save` and with `torch.save`, which neither hash nor, the
latter, wait for the disk. The first round, which allocates the staging buffers, does not count.

    benchmarks/checkpoint_stall.py                     145 MiB, seven rounds
    benchmarks/checkpoint_stall.py --mebibytes 1024 --device cuda

Figures are ratios within one run on one machine, 1 being the synchronous save: `held up` is for how long training
stands still (wall time, and the CPU time of that, which a busy machine disturbs less), `durable` is the time until the
checkpoint is committed, `restore` the time to verify and load it, the best of three.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "trainer" / "src"))

LIMIT = 0.2


def main() -> int:
    """Measure and print; the exit code is 1 when the stall is above the limit."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--mebibytes", type=int, default=145, help="size of weights and moments together")
    parser.add_argument("--rounds", type=int, default=7, help="rounds that count")
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"], help="where the state lies")
    parser.add_argument(
        "--directory", type=Path, help="a directory on the disk to write to; default: the temporary one"
    )
    arguments = parser.parse_args()

    import torch
    from torch import nn
    from torch.distributed.checkpoint.state_dict_saver import save

    from gaudi3_scale.checkpoint import CheckpointStore
    from gaudi3_scale.checkpoint.fetch import load
    from gaudi3_scale.checkpoint.peers import CheckpointPeers
    from gaudi3_scale.checkpoint.restore import capture
    from gaudi3_scale.checkpoint.saver import Saver, Snapshot

    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    width, layers = 512, max(1, arguments.mebibytes * 2**20 // (3 * 4 * 512 * 512))

    def make() -> tuple[nn.Module, torch.optim.Optimizer]:
        model = nn.Sequential(*(nn.Linear(width, width, bias=False) for _ in range(layers))).to(arguments.device)
        return model, torch.optim.AdamW(model.parameters())

    model, optimizer = make()

    def step() -> None:
        model(torch.ones(1, width, device=arguments.device)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()

    step()
    held: dict[str, list[tuple[float, float]]] = {}
    durable: list[float] = []
    with tempfile.TemporaryDirectory(dir=arguments.directory, prefix="checkpoint-stall-") as name:
        folder = Path(name)

        def snapshot(_: int) -> Snapshot:
            tensors, rest = capture(model, [optimizer])
            return Snapshot(tensors, rest)

        def saver(kind: str) -> Saver:
            made = Saver(
                CheckpointStore(folder / kind, keep=1), CheckpointPeers.single(), asynchronous=kind == "asynchronous"
            )
            made.bind(snapshot)
            return made

        ours = {kind: saver(kind) for kind in ("asynchronous", "synchronous")}

        def plain(number: int) -> None:
            torch.save(snapshot(number).tensors, folder / "plain.pt")

        def distributed(number: int) -> None:
            shutil.rmtree(folder / "dcp", ignore_errors=True)
            save(snapshot(number).tensors, checkpoint_id=folder / "dcp", no_dist=True)

        ways: dict[str, Callable[[int], None]] = {kind: made.save for kind, made in ours.items()}
        ways |= {"dcp.save": distributed, "torch.save": plain}
        for number in range(arguments.rounds + 1):
            for kind, way in ways.items():
                step()
                used = time.thread_time if kind == "asynchronous" else time.process_time
                wall, cpu = time.perf_counter(), used()
                way(number)
                taken = time.perf_counter() - wall, used() - cpu
                if kind == "asynchronous":
                    ours[kind].wait()
                if number:
                    held.setdefault(kind, []).append(taken)
                    if kind == "asynchronous":
                        durable.append(ours[kind].last_duration or 0.0)
        step()
        ours["synchronous"].save(arguments.rounds + 1)
        times = []
        for _ in range(3):
            restored, fresh = make()
            began = time.perf_counter()
            checkpoint = ours["synchronous"].store.verify(arguments.rounds + 1)
            verified = time.perf_counter() - began
            load(checkpoint, CheckpointPeers.single(), restored, [fresh], checkpoint.state())
            times.append((time.perf_counter() - began, verified))
        restore, verified = min(times)
        same = all(torch.equal(a, b) for a, b in zip(model.parameters(), restored.parameters(), strict=True))
    medians = {kind: tuple(map(statistics.median, zip(*taken, strict=True))) for kind, taken in held.items()}
    wall, cpu = medians["synchronous"]
    size = checkpoint.manifest.size / 2**20
    print(f"{size:,.0f} MiB on {arguments.device}, medians of {arguments.rounds} rounds, 1 = the synchronous save")
    print(f"{'':32}{'wall':>8}{'CPU':>12}")
    for kind, (took, busy) in medians.items():
        print(f"{'held up, ' + kind:32}{took / wall:>8.3f}{busy / cpu:>12.3f}")
    print(f"{'durable, asynchronous':32}{statistics.median(durable) / wall:>8.3f}")
    print(f"{'restore (verify and load)':32}{restore / wall:>8.3f}   of which verify {verified / wall:.3f}")
    ratio = medians["asynchronous"][0] / wall
    plainly = medians["asynchronous"][0] / medians["dcp.save"][0]
    print(
        f"held up by {ratio:.3f} of a synchronous save and {plainly:.3f} of dcp.save (aim: at most {LIMIT}); "
        f"the synchronous save took {wall:.2f} s here"
    )
    if not same:
        print("what was restored is not what was saved")
    return 0 if max(ratio, plainly) <= LIMIT and same else 1


if __name__ == "__main__":
    sys.exit(main())
