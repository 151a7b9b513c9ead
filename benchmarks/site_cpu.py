"""Controller CPU of site.yml: what a run costs at all, and what each further Gaudi node costs.

Run as ``python benchmarks/site_cpu.py [--nodes 2 4 8] [--grow]`` as root. Each line is one cluster, brought up for it:
CPU seconds (user and system) of ansible-playbook and all its children on the controller, and the same for each node
more than on the line before. The nodes run on the same machine, so wall time says nothing about real nodes and is not
printed; the nodes' own work is outside these CPU figures. At the end stand, for the first and the second run, the fixed
cost and the cost of a node: the line that fits the sizes best (least squares). With ``--grow`` one cluster is brought
to each size in turn, which takes half the time, and second runs alone are measured. With ``--beside FOLDER`` the
checkout there is measured too, each size right after this one, and the ratios are printed.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

# A node has one process, one thread and five steps of a tiny model: the controller is measured, and 32 nodes share this
# machine.
_TINY = {"hidden_size": 32, "layers": 1}
_SHORT = json.dumps(
    {
        "trainer_processes_per_node": 1,
        "trainer_threads": 1,
        "trainer_config": {"train": {"max_steps": 5}, "model": _TINY},
    }
)


def _cpu(command: list[str], cluster: str, checkout: Path) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = {**os.environ, "GAUDI3_SIMULATOR_CLUSTER": cluster}
    result = subprocess.run(command, cwd=checkout, env=environment, capture_output=True, text=True, check=False)
    if result.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{result.stdout[-3000:]}{result.stderr[-1000:]}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


@contextmanager
def _cluster(name: str) -> Iterator[None]:
    try:
        yield
    finally:
        subprocess.run(["gaudi3-simulator", "down", "--name", name], check=False, capture_output=True)


def _measure(cluster: str, nodes: int, checkout: Path) -> Iterator[tuple[str, float]]:
    """Both runs on a cluster that has so many nodes, or is brought up to them."""
    command = ["gaudi3-simulator", "up", "--name", cluster, "--nodes", str(nodes)]
    subprocess.run(command, check=True, capture_output=True)
    with tempfile.TemporaryDirectory() as folder:
        inventory = Path(folder, "inventory")
        inventory.mkdir()
        # The simulator that brought the cluster up is this checkout's, whose records an older one may not read.
        inventory.joinpath("nodes").symlink_to(ROOT / "inventories" / "simulated" / "nodes")
        inventory.joinpath("group_vars").symlink_to(checkout / "inventories" / "simulated" / "group_vars")
        for run in ("first", "second"):
            yield run, _cpu(["ansible-playbook", "-i", str(inventory), "site.yml", "-e", _SHORT], cluster, checkout)


def _line(points: list[tuple[int, float]]) -> tuple[float, float]:
    """Cost of a node, and the fixed cost."""
    slope, fixed = statistics.linear_regression(*zip(*points, strict=True))
    return slope, fixed


def main() -> None:
    """Measure each size and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, nargs="+", default=[2, 4, 8])
    parser.add_argument("--grow", action="store_true", help="one cluster that grows; second runs alone")
    parser.add_argument("--beside", type=Path, help="another checkout, measured on the same clusters")
    given = parser.parse_args()
    builds = {"this": ROOT, **({"beside": given.beside.resolve()} if given.beside else {})}
    print("nodes  build   run     controller CPU s  CPU s per further node")
    measured: dict[tuple[str, str], list[tuple[int, float]]] = {}
    with ExitStack() as clusters:
        for nodes in given.nodes:
            for build, checkout in builds.items():
                name = "bench" if given.grow else f"bench-{nodes}"
                if not given.grow:
                    clusters.close()
                clusters.enter_context(_cluster(name))
                for run, cpu in _measure(name, nodes, checkout):
                    if given.grow and run == "first":  # of the new nodes alone
                        continue
                    points = measured.setdefault((run, build), [])
                    more = f"{(cpu - points[-1][1]) / (nodes - points[-1][0]):.2f}" if points else "-"
                    points.append((nodes, cpu))
                    print(f"{nodes:5d}  {build:6s}  {run:6s}  {cpu:16.1f}  {more:>22s}", flush=True)
    for (run, build), points in measured.items():
        if len(points) > 1:
            slope, fixed = _line(points)
            print(f"{run} run, {build}: {fixed:.1f} s, and {slope:.2f} s for each node")
    for run in ("first", "second"):
        if (run, "beside") in measured and len(given.nodes) > 1:
            (slope, fixed), (slope_beside, fixed_beside) = (_line(measured[run, build]) for build in builds)
            print(f"{run} run, ratio: {fixed / fixed_beside:.2f} fixed, {slope / slope_beside:.2f} for each node")


if __name__ == "__main__":
    main()
