"""Controller CPU per host of site.yml: first and second run at 2, 4 and 8 simulated nodes.

Run as ``python benchmarks/site_cpu.py [--nodes 2 4 8]`` as root. Each line is one cluster, brought up for it: CPU
seconds (user and system) of ansible-playbook and all its children on the controller, divided by the number of Gaudi
nodes. The nodes run on the same machine, so wall time says nothing about real nodes and is not printed;
the nodes' own work is outside these CPU figures. Read the ratio to the row of 2 nodes: 1.0 and below means that a host
more costs no more than the first ones.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

# One process per node and five steps: what is measured is the controller, not training.
_SHORT = json.dumps({"trainer_processes_per_node": 1, "trainer_config": {"train": {"max_steps": 5}}})


def _cpu(command: list[str], cluster: str) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = {**os.environ, "GAUDI3_SIMULATOR_CLUSTER": cluster}
    result = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    if result.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{result.stdout[-3000:]}{result.stderr[-1000:]}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Measure each size and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, nargs="+", default=[2, 4, 8])
    sizes = parser.parse_args().nodes
    print("nodes  run     controller CPU s  CPU s per node  ratio to the first row")
    base: dict[str, float] = {}
    for nodes in sizes:
        cluster = f"bench-{nodes}"
        subprocess.run(
            ["gaudi3-simulator", "up", "--name", cluster, "--nodes", str(nodes)],
            check=True,
            capture_output=True,
        )
        try:
            for run in ("first", "second"):
                cpu = _cpu(["ansible-playbook", "site.yml", "-e", _SHORT], cluster)
                base.setdefault(run, cpu / nodes)
                print(
                    f"{nodes:5d}  {run:6s}  {cpu:16.1f}  {cpu / nodes:14.2f}  {cpu / nodes / base[run]:10.2f}",
                    flush=True,
                )
        finally:
            subprocess.run(["gaudi3-simulator", "down", "--name", cluster], check=False, capture_output=True)


if __name__ == "__main__":
    main()
