"""What role slurm makes of a node and a controller: services, cards as a gres, a job on two, and its account."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
import testinfra

testinfra_hosts = ["ansible://gaudi"]
#: Files of the engine that takes nodes out of service.
FENCES = "/var/lib/gaudi3-scale/health"


@pytest.fixture
def controller(request: pytest.FixtureRequest) -> Any:
    """The host of slurmctld, by the same way as the node."""
    inventory = request.config.option.ansible_inventory
    (found,) = testinfra.get_hosts(["ansible://monitoring"], ansible_inventory=inventory)
    return found


def wait(condition: Callable[[], bool], what: str, seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"waited {seconds:.0f} s for {what}"
        time.sleep(1)


def is_idle(controller: Any) -> bool:
    return "idle" in controller.run("sinfo -hN -o %t").stdout.split()


def test_all_runs_now_and_at_boot(host: Any, controller: Any) -> None:
    for where, names in ((host, ("munge", "slurmd")), (controller, ("munge", "mariadb", "slurmdbd", "slurmctld"))):
        for name in names:
            assert where.service(name).is_running and where.service(name).is_enabled, name


def test_the_node_has_its_cards(host: Any, controller: Any) -> None:
    wait(lambda: is_idle(controller), "an idle node")
    assert controller.run("sinfo -h -o %G").stdout.split() == ["gpu:gaudi3:8"]
    lines = host.file("/etc/slurm/gres.conf").content_string.splitlines()
    assert len([line for line in lines if line.startswith("Name=gpu Type=gaudi3 MultipleFiles=/dev/accel/accel")]) == 8


def test_a_job_has_two_modules_and_is_accounted(host: Any, controller: Any) -> None:
    wait(lambda: is_idle(controller), "an idle node")
    script = "#!/bin/sh\\nsrun printenv HABANA_VISIBLE_MODULES\\n"
    submit = f"printf '{script}' | sbatch --parsable -N1 --gres=gpu:gaudi3:2 --chdir=/root -o /root/job.out"
    done = controller.run(submit)
    assert done.rc == 0, done.stderr
    number = done.stdout.strip()
    asked = f"sacct -nPX -j {number} --format=State,AllocTRES"
    wait(lambda: controller.run(asked).stdout.startswith("COMPLETED|"), "the job in sacct")
    modules = host.file("/root/job.out").content_string.strip().split(",")
    assert len(modules) == 2 and set(modules) < set("01234567")
    assert "gres/gpu=2" in controller.run(asked).stdout.strip().split("|")[1].split(",")


def test_a_fenced_node_is_drained_and_comes_back(host: Any, controller: Any) -> None:
    # Again until it shows: slurmd may be at a check, to which ours leaves the node.
    check = f"SLURMD_NODENAME={controller.run('sinfo -hN -o %N').stdout.split()[0]} /usr/local/lib/gaudi-slurm/health"

    def reason() -> str:
        host.run(check)
        return str(controller.run("sinfo -hR -o %E").stdout)

    assert host.run(f'mkdir -p {FENCES} && echo \'{{"reason": "accel3: a test"}}\' > {FENCES}/fence.json').rc == 0
    try:
        wait(lambda: "gaudi3.scale: accel3: a test" in reason(), "a drained node")
    finally:
        host.run(f"rm -f {FENCES}/fence.json")
    wait(lambda: reason() == "" and is_idle(controller), "the node back")
