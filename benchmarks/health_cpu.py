#!/usr/bin/env python3
"""Cost of a node's examination at depth quick: its own CPU, wall time beside the vendor's tools, the controller's CPU.

Nodes are folders with eight simulated cards, as in tests/plays, and need no root. The simulated hl-smi is a Python
program: what it costs says nothing of the vendor's tool, so its time is taken out everywhere. The controller's part is
that of heal.yml, which runs every few minutes, and of health.yml, which also writes reports and passports. It is
without the modules on the nodes and without ssh: the slope between one node and several.

    benchmarks/health_cpu.py                 9 examinations, and playbooks with 1 and 5 nodes
    benchmarks/health_cpu.py --runs 3 --nodes 3
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "collections"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from ansible_collections.gaudi3.scale.plugins.module_utils._health.collect import Sources
from ansible_collections.gaudi3.scale.plugins.module_utils._health.examine import Patience, examine
from ansible_collections.gaudi3.scale.plugins.module_utils._hl_smi.command import HlSmi, Runner
from tests.plays.cluster import Cluster
from tests.plays.host import Host, program

OWN_CPU_S, OWN_WALL_S, CONTROLLER_S = 0.5, 1.0, 0.2


def nodes(folder: Path, number: int) -> Cluster:
    """Nodes with eight cards each, whose modules write down what they cost."""
    cluster = Cluster(folder / f"site-{number}", folder, cheap=False)
    cluster.gaudi(number, cards=8)
    for host in cluster.hosts.values():
        program(host, "dmesg", "dmesg", "main")
        program(host, "modinfo", "kmod_tools", "modinfo")
        have_times(host)
    return cluster


def have_times(host: Host) -> None:
    """Have a host's modules write down what they cost, for `modules_cpu`."""
    start, last = host.interpreter.read_text().rstrip("\n").rsplit("\n", 1)
    timed = f"{last.removeprefix('exec ')}\ncode=$?\ntimes >> {host.folder}/times\nexit $code\n"
    host.interpreter.write_text(f"{start}\n{timed}")


def modules_cpu(cluster: Cluster) -> float:
    """CPU seconds of all modules since the last `forget_times`."""
    noted = [host.folder / "times" for host in cluster.hosts.values()]
    return sum(seconds(word) for path in noted if path.exists() for word in path.read_text().split())


def forget_times(cluster: Cluster) -> None:
    """Begin to count from zero."""
    for host in cluster.hosts.values():
        (host.folder / "times").unlink(missing_ok=True)


def examination(host: Host) -> tuple[float, float, float]:
    """One examination: own CPU seconds, own wall seconds, and the tools' wall seconds."""
    env = {
        "GAUDI3_SIMULATOR_ROOT": str(host.root),
        "PATH": f"{host.folder}/bin:/usr/bin:/bin",
    }
    tool, spent = Runner(60, env), 0.0

    def call(command: list[str]) -> tuple[int, str, str]:
        nonlocal spent
        began = time.monotonic()
        try:
            return tool([str(host.folder / "bin" / Path(command[0]).name), *command[1:]])
        finally:
            spent += time.monotonic() - began

    run = Patience(call)
    cpu, wall = time.process_time(), time.monotonic()
    done = examine(Sources(run, HlSmi("hl-smi", run), os.uname().release, str(host.root)), time.monotonic, time.sleep)
    cpu, wall = time.process_time() - cpu, time.monotonic() - wall
    assert done.readings == 1 and len(done.reading.cards) == 8, done.report
    return cpu, wall - spent, spent


def seconds(text: str) -> float:
    """What the shell's `times` printed, in seconds."""
    minutes, _, rest = text.rstrip("s").partition("m")
    return 60 * float(minutes) + float(rest)


def controller(cluster: Cluster, playbook: str) -> float:
    """CPU seconds of a run of a playbook without those of the modules on the nodes."""
    forget_times(cluster)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    run = cluster.play(playbook, health_directory=str(cluster.folder / "health"))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert run.returncode == 0, run.messages()
    whole = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return whole - modules_cpu(cluster)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=9, help="examinations, of which the medians count")
    parser.add_argument("--nodes", type=int, default=5, help="nodes of the larger playbook")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="health-cpu-") as folder:
        one, several = nodes(Path(folder), 1), nodes(Path(folder), asked.nodes)
        cpu, wall, tools = map(
            statistics.median, zip(*(examination(one["gaudi-1"]) for _ in range(asked.runs)), strict=True)
        )
        slopes = {
            playbook: (controller(several, playbook) - controller(one, playbook)) / (asked.nodes - 1)
            for playbook in ("heal.yml", "health.yml")
        }
    print(f"own CPU of an examination, eight cards: {cpu:.3f} s (aim: at most {OWN_CPU_S})")
    print(f"wall time beside the tools' own ({tools:.1f} s, simulated): {wall:.3f} s (aim: at most {OWN_WALL_S})")
    for playbook, slope in slopes.items():
        print(f"controller's CPU for each further node, {playbook}: {slope:.2f} s (aim: at most {CONTROLLER_S})")
    sys.exit(cpu > OWN_CPU_S or wall > OWN_WALL_S or max(slopes.values()) > CONTROLLER_S)


if __name__ == "__main__":
    main()
