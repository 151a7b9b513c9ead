#!/usr/bin/env python3
"""Controller CPU and memory of site.yml by the number of hosts, up to more than one machine simulates as nodes.

Hosts are folders with simulated cards, as in tests/plays, over local connections: no root, no ssh. Each line is one run
of a playbook for all of them: CPU seconds of the controller (user and system, without the modules on the hosts), what
each host more than on the line before costs, and the resident memory of ansible-playbook. `preflight` is what a host
costs that is looked at and needs nothing; `site` predicts all phases on bare nodes (--check), so that every task runs.

    benchmarks/many_hosts.py                                    16, 32, 64 and 128 hosts
    benchmarks/many_hosts.py --hosts 4 16 --core 2.17 2.21      by ansible-core, of `make proof-core-matrix`

The aims are a flat slope (the last one at most 1.2 times the first) and less than 1 GB.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "simulator/src"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "collections"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.health_cpu import forget_times, have_times, modules_cpu
from tests import stand_in_pytorch
from tests.plays.cluster import Cluster
from tests.stand_in_pytorch import Vendor

ROOT = Path(__file__).resolve().parents[1]
PLAYS = {"preflight": ("preflight.yml",), "site": ("site.yml", "--check")}
FORKS, SLOPE, MEMORY_MB = 5, 1.2, 1000


class Measured(Cluster):
    """Hosts whose modules write down what they cost, and runs that are measured."""

    cpu_s = 0.0
    """Of the last run, without the modules."""
    memory_mb = 0.0
    """Largest resident memory of a process of the last run."""

    def _run(self, arguments: list[str], environment: dict[str, str], umask: int, fresh: bool) -> tuple[int, str, str]:
        forget_times(self)
        with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
            process = subprocess.Popen(
                ["ansible-playbook", *arguments], cwd=self.folder, env=environment, stdout=output, stderr=errors
            )
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            said = []
            for stream in (output, errors):
                stream.seek(0)
                said.append(stream.read().decode(errors="replace"))
        self.cpu_s = used.ru_utime + used.ru_stime - modules_cpu(self)
        self.memory_mb = used.ru_maxrss / 1000
        return process.returncode, said[0], said[1]


def site(folder: Path, number: int, variables: dict[str, Any]) -> Measured:
    """Gaudi nodes and a monitoring host."""
    made = Measured(folder / f"site-{number}", folder / "boards", cheap=False)
    made.gaudi(number, cards=1)
    made.add("mon", "monitoring", cards=0, system="debian")
    for host in made.hosts.values():
        have_times(host)
    made.all |= {"gaudi_secrets_dir": str(made.folder / "secrets"), "grafana_enabled": False, **variables}
    return made


def measure(sizes: list[int], folder: Path, variables: dict[str, Any]) -> bool:
    """Print the lines of this environment's ansible-core; whether the aims are met."""
    path = str(Path(sys.executable).parent)
    environment = {"PATH": f"{path}:{os.environ['PATH']}"}
    shown = subprocess.run([f"{path}/ansible-playbook", "--version"], capture_output=True, text=True, check=True)
    print(shown.stdout.splitlines()[0], flush=True)
    good = True
    for name, words in PLAYS.items():
        points: list[tuple[int, float]] = []
        slopes: list[float] = []
        for number in sizes:
            made = site(folder / name, number, variables)
            run = made.play(*words, forks=FORKS, environment=environment)
            assert run.returncode == 0, run.messages() or run.everything[-2000:]
            if points:
                slopes.append((made.cpu_s - points[-1][1]) / (number - points[-1][0]))
            points.append((number, made.cpu_s))
            more = f"{slopes[-1]:.2f}" if slopes else "-"
            print(f"{name:10s} {number:6d} {made.cpu_s:16.1f} {more:>12s} {made.memory_mb:10.0f}", flush=True)
            good = good and made.memory_mb < MEMORY_MB
        if len(points) > 1:
            slope, fixed = statistics.linear_regression(*zip(*points, strict=True))
            print(f"{name}: {fixed:.1f} s, and {slope:.2f} s for each host")
        good = good and (len(slopes) < 2 or slopes[-1] <= SLOPE * slopes[0])
    return good


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", type=int, nargs="+", default=[16, 32, 64, 128])
    parser.add_argument("--core", nargs="+", help="versions of ansible-core that `make proof-core-matrix` has")
    asked = parser.parse_args()
    if asked.core:
        # By the Python of each, so that the hosts' modules are those of its ansible-core.
        words = [__file__, "--hosts", *map(str, asked.hosts)]
        pythons = [ROOT / ".cache/core-matrix" / core / "bin/python" for core in asked.core]
        codes = [subprocess.run([python, *words], check=False).returncode for python in pythons]
        sys.exit(any(codes))
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    print("playbook    hosts controller CPU s  each further  memory MB")
    with tempfile.TemporaryDirectory(prefix="many-hosts-") as name:
        folder = Path(name)
        vendor = Vendor(folder / "vendor")
        vendor.tarballs()
        script = {
            "gaudi3_scale-0.1.0.dist-info/entry_points.txt": "[console_scripts]\ngaudi3-train = gaudi3_scale:main\n"
        }
        with vendor.served() as address, Path(os.devnull).open("w") as requests, contextlib.redirect_stderr(requests):
            variables = {
                "trainer_wheel": str(stand_in_pytorch.wheel(folder, "gaudi3_scale", "0.1.0", files=script)),
                "pytorch_repository_url": f"{address}/artifactory/gaudi-pt-modules",
                "pytorch_pip_index_url": f"{address}/pypi/simple",
                "pytorch_python_versions": [stand_in_pytorch.PYTHON],
                "pytorch_packages": [],
                "pytorch_requirements": [],
                "pytorch_root": str(folder / "opt"),
                "pytorch_user": "root",
            }
            good = measure(asked.hosts, folder, variables)
    sys.exit(not good)


if __name__ == "__main__":
    main()
