"""trainer_launcher: slurm through the real role: one host submits, and the nodes get no unit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ..ansible_run import PlaybookRun
from .cluster import Cluster
from .host import Host

JOBS = "/opt/jobs"
#: The queue is a file with the job. A look at it makes the job start, and end where that is said.
COMMANDS = {
    "sbatch": 'echo sbatch >>{0}/calls; echo "17|PENDING|Resources||$2" >{0}/queue; echo 17',
    "squeue": 'cat {0}/queue 2>/dev/null; case "$(cat {0}/queue)" in *PENDING*) sed -i s/PENDING/RUNNING/ {0}/queue;; '
    '*) [ ! -e {0}/ends ] || rm -f {0}/queue;; esac',
    "scontrol": 'echo "JobId=17 JobName=demo JobState=$(cat {0}/end) Reason=None ExitCode=0:0 NodeList=n1"',
    "scancel": 'echo "scancel $1" >>{0}/calls; rm {0}/queue; echo CANCELLED >{0}/end',
}  # fmt: skip


class Site:
    """Two nodes of which the first submits, with a trainer and jobs in folders that are not the nodes' own."""

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        self.cluster, self.folder = cluster, folder
        cluster.gaudi(2, cards=8, trainer=True, variables={"trainer_cards": 8})
        programs = folder / "root/venv/bin"
        programs.mkdir(parents=True)
        for name in ("python", "gaudi3-train"):
            _script(programs / name, "cat cluster.yml job.yml")
        for name, body in COMMANDS.items():
            _script(self.head.folder / "bin" / name, body.format(folder))
        (folder / "end").write_text("COMPLETED\n")

    @property
    def head(self) -> Host:
        return self.cluster["gaudi-1"]

    def train(self, *arguments: str, **variables: Any) -> PlaybookRun:
        given = {
            "trainer_job_name": "demo", "trainer_poll_interval": 0.1, "trainer_user": "root", "trainer_jobs_dir": JOBS,
            "trainer_launcher": "slurm", "trainer_slurm": {"time": "24:00:00", "cpu": 128},
            "trainer_root": f"{self.folder}/root", "trainer_config": {"train": {"max_steps": 30}},
        }  # fmt: skip
        tags = ["--tags", "trainer_job", "--skip-tags", "trainer_preflight"]
        return self.cluster.role("trainer", *tags, *arguments, facts=False, **{**given, **variables})

    def calls(self) -> list[str]:
        """What Slurm was told."""
        found = self.folder / "calls"
        return found.read_text().splitlines() if found.exists() else []


def _script(place: Path, body: str) -> None:
    place.write_text(f"#!/bin/sh\n{body}\n")
    place.chmod(0o755)


@pytest.fixture
def site(new_cluster: Callable[[], Cluster], tmp_path: Path) -> Site:
    return Site(new_cluster(), tmp_path)


def test_a_job_is_submitted_by_one_host_and_watched_to_its_end(site: Site) -> None:
    checked = site.train("--check")
    assert checked.returncode == 0 and site.calls() == [], checked.messages()
    (site.folder / "ends").touch()
    first = site.train()
    assert checked.changed() == first.changed() != set()
    assert first.returncode == 0 and site.calls() == ["sbatch"], first.messages()
    script = site.head.path(f"{JOBS}/.control/demo/job.sbatch").read_text()
    assert '"nodes": 2' in script and '"processes_per_node": 8' in script and '"max_steps": 30' in script
    for host in site.cluster.hosts.values():
        assert not list(host.path("/etc/systemd/system").glob("gaudi-train-*")), "no unit"
    again = site.train()
    assert (again.returncode, again.changed()) == (0, set()), again.messages()
    assert site.calls() == ["sbatch"]


def test_a_job_is_cancelled(site: Site) -> None:
    assert site.train(trainer_state="started").returncode == 0
    stopped = site.train(trainer_state="stopped")
    assert stopped.returncode == 0 and site.calls() == ["sbatch", "scancel 17"], stopped.messages()
