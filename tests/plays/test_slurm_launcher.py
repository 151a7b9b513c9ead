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
#: Files of the queue by the names of jobs. A look at a job makes it start, and end where that is said.
COMMANDS = {
    "sbatch": """
name=$(basename "$(dirname "$2")"); number=$((17 + $(ls {0}/name.* 2>/dev/null | wc -l)))
echo "sbatch $name" >>{0}/calls; echo "$name" >{0}/name.$number
echo "$number|PENDING|Resources||$2" >{0}/queue.$name; echo $number""",
    "squeue": """
for each; do case $each in --name=*) queue={0}/queue.${{each#--name=}};; esac; done
cat $queue 2>/dev/null
case "$(cat $queue 2>/dev/null)" in
  *PENDING*) sed -i s/PENDING/RUNNING/ $queue;;
  *) [ ! -e {0}/ends ] || rm -f $queue;;
esac""",
    "scontrol": 'echo "JobId=$4 JobName=$(cat {0}/name.$4) JobState=$(cat {0}/end) Reason=None ExitCode=0:0"',
    "scancel": 'echo "scancel $1" >>{0}/calls; rm {0}/queue.$(cat {0}/name.$1); echo CANCELLED >{0}/end',
}


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
            for host in cluster.hosts.values():
                _script(host.folder / "bin" / name, body.format(folder))
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
        whole = {name: value for name, value in {**given, **variables}.items() if value is not None}
        return self.cluster.role("trainer", *tags, *arguments, facts=False, **whole)

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
    assert first.returncode == 0 and site.calls() == ["sbatch demo"], first.messages()
    script = site.head.path(f"{JOBS}/.control/demo/job.sbatch").read_text()
    assert '"nodes": 2' in script and '"processes_per_node": 8' in script and '"max_steps": 30' in script
    for host in site.cluster.hosts.values():
        assert not list(host.path("/etc/systemd/system").glob("gaudi-train-*")), "no unit"
    again = site.train()
    assert (again.returncode, again.changed()) == (0, set()), again.messages()
    assert site.calls() == ["sbatch demo"]


def test_a_job_is_cancelled(site: Site) -> None:
    assert site.train(trainer_state="started").returncode == 0
    stopped = site.train(trainer_state="stopped")
    assert stopped.returncode == 0 and site.calls() == ["sbatch demo", "scancel 17"], stopped.messages()


def test_a_list_is_submitted_in_its_order(site: Site) -> None:
    """gaudi-1 answers first, and has no part in the first job: jobs once came in the order of answers."""
    del site.cluster.all["trainer_job_name"]
    jobs = [{"name": name, "nodes": nodes} for name, nodes in (("a", [2]), ("b", [1, 2]), ("c", [1]), ("d", [2]))]
    for job in jobs:
        job["nodes"] = [f"gaudi-{number}" for number in job["nodes"]]
    given = {"trainer_job_name": None, "trainer_jobs": jobs, "trainer_state": "started"}
    done = site.train(forks=1, **given)
    assert done.returncode == 0 and site.calls() == [f"sbatch {name}" for name in "abcd"], done.messages()
    submitted = [host for host, name, result in done.results() if name.endswith(" in Slurm") and result.get("changed")]
    assert submitted == ["gaudi-2", "gaudi-1", "gaudi-1", "gaudi-2"]
    again = site.train(forks=1, **given)
    assert again.returncode == 0 and again.changed() == set() and len(site.calls()) == 4, again.messages()


def test_all_jobs_of_a_list_are_submitted_before_one_is_waited_for(site: Site) -> None:
    (site.folder / "ends").touch()
    del site.cluster.all["trainer_job_name"]
    jobs = [{"name": "left", "nodes": ["gaudi-1"]}, {"name": "right", "nodes": ["gaudi-1", "gaudi-2"]}]
    done = site.train(trainer_job_name=None, trainer_jobs=jobs)
    assert done.returncode == 0 and site.calls() == ["sbatch left", "sbatch right"], done.messages()
    steps = [
        name.partition(" : ")[2]
        for host, name, result in done.results()
        if host == "gaudi-1" and " in Slurm" in name and not result.get("skipped")
    ]
    assert steps == ["Bring the job to its state in Slurm"] * 2 + ["Wait for the job in Slurm"] * 2
    script = site.head.path(f"{JOBS}/.control/right/job.sbatch").read_text()
    assert '"nodes": 2' in script
