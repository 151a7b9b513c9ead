"""How long after a job's failure on its head the play says so, and how long until the play has ended.

    python benchmarks/failure_told.py                         # 64 nodes, 1, 5 and 32 forks

The nodes are folders of this machine with a stand-in for systemctl, and the real role plays on them over local
connections. While the play waits, the job's units fail on all nodes at one instant. `told` is the line with the head's
failure in Ansible's log, whose clock ticks in milliseconds; `ended` is the end of ansible-playbook, after one look at
each further node. The modules of all nodes run on this machine, so `ended` is longer here than with real nodes.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import threading
import time
from datetime import datetime
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "simulator/src"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "collections"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.plays.cluster import Cluster
from tests.plays.test_jobs import UNIT, nodes, train

_JOB = UNIT.removesuffix(".service")


def main() -> None:
    """Measure each number of forks and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=64, help="nodes of the job")
    parser.add_argument("--forks", type=int, nargs="+", default=[1, 5, 32], help="forks of ansible-playbook")
    parser.add_argument("--interval", type=float, default=5, help="seconds between two looks; 5 is the role's")
    options = parser.parse_args()
    print("nodes  forks  told after s  ended after s", flush=True)
    for forks in options.forks:
        with tempfile.TemporaryDirectory() as folder:
            told, ended = failure(
                Cluster(Path(folder) / "cluster", cheap=False), options.nodes, forks, options.interval
            )
        print(f"{options.nodes:5d}  {forks:5d}  {told:12.1f}  {ended:13.1f}", flush=True)


def failure(cluster: Cluster, number: int, forks: int, interval: float) -> tuple[float, float]:
    """Seconds from a failure until it is told, and until the play has ended."""
    nodes(cluster, number)
    started = train(cluster, trainer_state="started", forks=32)
    assert started.returncode == 0, started.messages()
    log, failed = cluster.folder / "log", []

    def fail() -> None:
        while not log.exists() or "Wait for the job]" not in log.read_text():
            time.sleep(0.1)
        time.sleep(1.5 * interval)
        for host in cluster.hosts.values():
            host.unit(_JOB, "failed")
        failed.append(time.time())

    breaker = threading.Thread(target=fail, daemon=True)
    breaker.start()
    logged = {"ANSIBLE_LOG_PATH": str(log), "ANSIBLE_STDOUT_CALLBACK": "ansible.builtin.default"}
    run = train(cluster, forks=forks, trainer_poll_interval=interval, environment=logged)
    ended = time.time()
    assert run.returncode == 2 and failed, run.everything[-2000:]
    line = next(line for line in log.read_text().splitlines() if "Job demo failed on this node" in line)
    told = datetime.strptime(line[:23], "%Y-%m-%d %H:%M:%S,%f").timestamp()
    return told - failed[0], ended - failed[0]


if __name__ == "__main__":
    main()
