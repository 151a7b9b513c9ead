"""Simulated clusters for the system tests, bare or from a saved stage, and site.yml runs whose result is data."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any

import pytest

from gaudi3_simulator.home import load_cluster
from gaudi3_simulator.network import taken
from tests.ansible_run import ANSIBLE_PLAYBOOK, CALLBACK, PlaybookRun, callback_that_shows
from tests.suite.proof import Proof, in_turn

ROOT = Path(__file__).resolve().parents[2]
PACE = Path(__file__).resolve().parent / "pace"
SMALL = {"layers": 2, "hidden_size": 64, "intermediate_size": 128, "sequence_length": 64}
"""A model for jobs whose training is not what is tested."""


def run(
    *command: str,
    cwd: Path = ROOT,
    timeout: float = 1800,
    given: dict[str, str] | None = None,
    **environment: str,
) -> subprocess.CompletedProcess[str]:
    """Run ``command`` in the checkout, ``given`` being more of its environment; the caller asserts."""
    return subprocess.run(
        command,
        cwd=cwd,
        env={**os.environ, **(given or {}), **environment},
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


_JOBS = [
    "a user's script", "the inventory's job", "a job with a spare node", "a job whose first node is healed",
    "a job whose node is reclaimed",
]  # fmt: skip
JOBS = Proof(
    "node-jobs",
    {"jobs": _JOBS},
    sample=in_turn(_JOBS, 1),
)  # fmt: skip
"""Jobs on booted nodes that lose a process or a node and go on: minutes each, so that every commit has one of them."""


def keep_job(case: str, happened: str, steps: int) -> None:
    """Put down that a job of ``JOBS`` held."""
    JOBS.note(case, {"what happens to it": happened, "steps": steps})
    text = """
A job on simulated nodes that are booted as real ones are, with systemd, ssh and the vendor's tools. It is started by
`gaudi3.scale.train`, and at its end has every step once, those before the loss from its checkpoint.
"""
    JOBS.write_table("Jobs on nodes that lose something", text, ("what happens to it", "steps"))


STAGE = "trained"
"""Nodes on which site.yml has run: `test_site.py` saves them, and who comes first makes them where it did not."""
STAGE_NODES = 2
BARE = "test-site"
"""The cluster that becomes the stage."""


def free_network(prefix: str, numbers: range, suffix: str) -> str:
    """The first network that this machine does not reach: what an interrupted run left may still stand on others."""
    used = taken()
    candidates = (f"{prefix}{number}{suffix}" for number in numbers)
    return next(each for each in candidates if not any(IPv4Network(each).overlaps(other) for other in used))


def stage_network() -> str:
    """A stage brings its addresses along; no other cluster is given one of these."""
    return free_network("10.89.", range(77, 0, -1), ".0/24")


class Site:
    """A simulated cluster of its own, and playbook runs on it."""

    #: The inventory's own job, with as many steps as show that it learns.
    always: tuple[str, ...] = ("-e", json.dumps({"trainer_config": {"train": {"max_steps": 120}}}))

    def __init__(self, name: str) -> None:
        self.name = name

    @property
    def shown(self) -> Path:
        """Where the lines are that the last run has shown its user."""
        folder = ROOT / ".cache" / "test"
        folder.mkdir(parents=True, exist_ok=True)
        return folder / f"screen-{self.name}"

    def up(self, nodes: int, *arguments: str) -> None:
        result = run("gaudi3-simulator", "up", "--name", self.name, "--nodes", str(nodes), *arguments)
        assert result.returncode == 0, result.stderr

    def save(self, stage: str) -> None:
        """Keep the cluster as ``stage``; its nodes are restarted."""
        result = run("gaudi3-simulator", "save", stage, "--name", self.name)
        assert result.returncode == 0, result.stderr

    def down(self) -> None:
        run("gaudi3-simulator", "down", "--name", self.name)

    def play(self, *arguments: str, playbook: str = "site.yml", timeout: float = 1800) -> PlaybookRun:
        """Run ``ansible-playbook PLAYBOOK ARGUMENTS`` on the cluster."""
        return self.play_in(self.environment(), *self.always, *arguments, playbook=playbook, timeout=timeout)

    def play_in(self, environment: dict[str, str], *arguments: str, playbook: str, timeout: float) -> PlaybookRun:
        """Run ``ansible-playbook PLAYBOOK ARGUMENTS`` in ``environment``."""
        result = run(
            *ANSIBLE_PLAYBOOK, playbook, *arguments,
            timeout=timeout, given={**environment, **callback_that_shows(self.shown)}, ANSIBLE_STDOUT_CALLBACK=CALLBACK,
        )  # fmt: skip
        return PlaybookRun.read(result.returncode, result.stdout, result.stderr)

    def restart(self, node: str) -> None:
        """Switch ``node`` off and on, whatever state its network is in."""
        run("gaudi3-simulator", "restart", "--name", self.name, node)

    def fault(self, node: str, *arguments: str) -> None:
        """Put a fault into ``node``."""
        result = run("gaudi3-simulator", "fault", "--name", self.name, node, *arguments)
        assert result.returncode == 0, result.stderr

    def status(self, host: str, job: str) -> dict[str, Any]:
        """The trainer's own status of ``job`` on ``host``; empty before it wrote one."""
        text = self.ssh(host, f"cat /var/lib/gaudi3-scale/jobs/{job}/status.json").stdout
        start = text.find("{")
        try:
            return dict(json.JSONDecoder().raw_decode(text[start:])[0])
        except ValueError:
            return {}

    def copy(self, folder: Path) -> None:
        """Put a folder below /srv of every Gaudi node, for all to read."""
        copied = run(
            "ansible", "gaudi", "-m", "ansible.builtin.copy", "-a", f"src={folder} dest=/srv/ mode=a+rX",
            given=self.environment(),
        )  # fmt: skip
        assert copied.returncode == 0, copied.stdout

    def pace(self, seconds: float) -> dict[str, Any]:
        """Variables of a job whose steps take `seconds` at least, and next to no processor for it."""
        self.copy(PACE)
        return {"trainer_environment": {"PYTHONPATH": "/srv/pace", "PACE": str(seconds)}}

    def environment(self) -> dict[str, str]:
        """What Ansible finds the cluster by."""
        return {"GAUDI3_SIMULATOR_CLUSTER": self.name}

    def ssh(self, host: str, command: str) -> subprocess.CompletedProcess[str]:
        """Run ``command`` in ``host``'s shell as root: by ssh itself, as starting ansible costs a second of CPU."""
        cluster = load_cluster(self.name)
        assert cluster is not None, f"cluster {self.name} is not up"
        address = next(node.address for node in cluster.all_nodes() if node.name == host)
        options = ("BatchMode=yes", "StrictHostKeyChecking=yes", f"UserKnownHostsFile={cluster.folder / 'known_hosts'}")
        shell = command if cluster.user == "root" else f"sudo -n sh -c {shlex.quote(command)}"
        return run(
            "ssh", "-i", str(cluster.key), *(f"-o{option}" for option in options), f"{cluster.user}@{address}", shell,
        )  # fmt: skip


def ensure_stage() -> None:
    """Have the stage saved from the sources as they are."""
    known = json.loads(run("gaudi3-simulator", "stages", "--json").stdout)
    if any(row["stage"] == STAGE and row["current"] for row in known):
        return
    with cluster_from(None, f"stage-{STAGE}") as cluster:
        made = cluster.play()
        assert made.returncode == 0, made.messages() or made.output
        cluster.save(STAGE)


@contextmanager
def cluster_from(stage: str | None, name: str) -> Iterator[Site]:
    """Two Gaudi nodes and a monitoring host, as ``stage`` left them or bare, taken down in the end."""
    cluster = Site(name)
    cluster.down()
    if stage is not None:
        ensure_stage()
    try:
        cluster.up(STAGE_NODES, *(["--stage", stage] if stage else ["--subnet", stage_network()]))
        yield cluster
    finally:
        cluster.down()


@pytest.fixture(scope="session")
def site() -> Iterator[Site]:
    """Two bare Gaudi nodes and a monitoring host."""
    with cluster_from(None, BARE) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def trained() -> Iterator[Site]:
    """The same after all of site.yml: monitored, and the inventory's job finished. All modules share it."""
    Site(BARE).down()  # it has served, and its services go on
    with cluster_from(STAGE, "test-trained") as cluster:
        yield cluster


ORDER = [
    "chain", "os_matrix", "bad_input", "site", "own_script", "site_converged", "hang", "device", "healing",
    "healed_job", "spare",
]  # fmt: skip
"""`bad_input` and `site` share the bare cluster, which ends as the stage that the others share; each leaves its cluster
fit for the next."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """In this order, and others last."""
    place = {f"tests/system/test_{name}.py": number for number, name in enumerate(ORDER)}
    items.sort(key=lambda item: place.get(item.nodeid.partition("::")[0], len(ORDER)))


def wait_for(condition: Callable[[], bool], what: str, seconds: float = 240) -> None:
    """Until ``condition`` holds."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"waited {seconds:.0f} s for {what}"
        time.sleep(2)


def reached(
    site: Site, job: str, holds: Callable[[dict[str, Any]], bool], what: str, seconds: float = 240
) -> dict[str, Any]:
    """The status of ``job`` on the first node, once it ``holds``."""
    found: dict[str, Any] = {}

    def there() -> bool:
        found.clear()
        found.update(site.status("gaudi-1", job))
        return holds(found)

    wait_for(there, what, seconds)
    return found


def went_on(site: Site, job: str, after: int) -> dict[str, Any]:
    """The status of ``job`` on the first node once a checkpoint later than step ``after`` was written."""
    return reached(
        site,
        job,
        lambda status: status.get("state") == "running" and int(status.get("checkpoint_step") or 0) > after,
        f"a checkpoint after step {after}",
    )


def refused(site: Site, sentence: str, *arguments: str) -> None:
    """Assert that site.yml with ``arguments`` fails, says ``sentence``, and changes nothing."""
    result = site.play(*arguments)
    assert result.returncode != 0
    messages = " | ".join(result.messages())
    assert sentence in messages, messages or result.output
    assert result.changed() == set()
