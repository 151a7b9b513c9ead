"""site.yml on nodes with nothing but an operating system: it runs through, or is refused before the first change.

Each case is one simulated cluster of its own. Where a case has a refusal, the run is made first and every file of the
nodes is compared with what was there before; the same nodes, untouched, then take the run that the refusal asks for.
`make os-matrix` runs all cases. With the other tests one refusal is shown, on the node image that they use anyway.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from gaudi3_simulator.cluster import exec_in
from tests.ansible_run import PlaybookRun
from tests.suite.proof import Proof

from .conftest import Site

STEPS = 4
#: A job of seconds. It is on the cards, since nodes have some.
SHORT = {
    "trainer_processes_per_node": 2,
    "trainer_config": {
        "model": {
            "hidden_size": 32, "layers": 1, "heads": 2, "kv_heads": 1, "intermediate_size": 64, "sequence_length": 64,
        },
        "train": {"mode": "eager", "max_steps": STEPS, "log_every": 1, "warmup_steps": 1},
        "checkpoint": {"every": 2},
    },
}  # fmt: skip
NO_TRAINING = ("--skip-tags", "pytorch,train")
NO_MONITORING = ("--skip-tags", "monitoring")
#: What lets the role tuning start the kernel anew without translation, instead of accepting it.
CONSENT = {
    "tuning_accept_translated_iommu": False,
    "tuning_kernel_command_line_state": "present",
    "tuning_reboot_allowed": True,
}
NO_PACKAGE = (
    "dnf finds no package node-exporter on gaudi-1: enable EPEL and CodeReady Builder, or name the package of another "
    "repository in node_exporter_package."
)


@dataclass(frozen=True)
class Case:
    """One kind of node, and what has to happen on it."""

    #: Arguments of ``gaudi3-simulator up``.
    system: str
    profile: str = "cluster"
    board: str = "HL-325L"
    nodes: int = 1
    monitor: bool = False
    #: A sentence, or a part of it without addresses and point releases, that site.yml is refused with; empty where it
    #: is not.
    refused: str = ""
    refused_with: dict[str, Any] = field(default_factory=dict)
    #: With what it runs through.
    arguments: tuple[str, ...] = ()
    variables: dict[str, Any] = field(default_factory=dict)

    @property
    def trains(self) -> bool:
        return self.arguments != NO_TRAINING

    @property
    def reboots(self) -> bool:
        return bool(self.variables.get("tuning_reboot_allowed"))

    @property
    def names(self) -> list[str]:
        return [f"gaudi-{number}" for number in range(1, self.nodes + 1)]


#: Not every product of systems, profiles and boards, but one of each thing that makes a role take another way. Systems
#: differ in packages, Python and boot loader: each of them is there with cables (profile `cluster`), and the
#: monitoring host with the two Debians that can be one, since hosts under another name have Debian 12's packages.
#: Profiles and boards differ in ports and in the vendor's script for them, whatever the system: each is there once, on
#: one node, as `single` and `vm` have no way between nodes.
CASES = {
    # The fabric between nodes; everything at once.
    "debian-12": Case("--system debian-12", nodes=2, monitor=True),
    # Older than all: Python 3.9, node_exporter 1.1. Its Alertmanager has no TLS: no host for monitoring.
    "debian-11": Case(
        "--system debian-11",
        refused="'s Python 3.9 is too old for the trainer, which needs 3.11 or newer: set pytorch_python to such a "
        "Python (the vendor has a tarball for 3.11), or leave PyTorch and training out with --skip-tags pytorch,train.",
        arguments=NO_TRAINING,
    ),
    # Newer than all: Python 3.13, for which there is no tarball.
    "debian-13": Case(
        "--system debian-13",
        monitor=True,
        refused="The vendor's PyTorch of release 1.23.0-695 for ubuntu2204 is for Python 3.11, but pytorch_python is "
        "3.13: set pytorch_python to one of these, or leave PyTorch and training out with --skip-tags pytorch,train.",
        arguments=NO_TRAINING,
    ),
    # The vendor's suite `jammy`; the kernel's command line by update-grub.
    "ubuntu-22.04": Case(
        "--present-as ubuntu-22.04",
        refused="behind an IOMMU that translates addresses (iommu_group/type is DMA-FQ), which may make results wrong "
        "or stop the kernel: start the kernel with",
        refused_with={"tuning_accept_translated_iommu": False},
        variables=CONSENT,
    ),
    # `noble`, under a name of which support is newer.
    "ubuntu-24.04": Case("--present-as ubuntu-24.04"),
    # dnf and signed rpm packages; no repository with a node exporter.
    "rhel-9.4": Case("--present-as rhel-9.4", refused=NO_PACKAGE, arguments=NO_MONITORING),
    # The same with the other minor release's tarball and packages; the command line by grubby.
    "rhel-9.6": Case("--present-as rhel-9.6", refused=NO_PACKAGE, arguments=NO_MONITORING, variables=CONSENT),
    # Gaudi 2, whose script for the ports lies elsewhere, and ports without cables.
    "HL-225, single": Case("--present-as ubuntu-22.04", profile="single", board="HL-225"),
    # No port is a network device, no card has an IOMMU group.
    "vm": Case("--present-as ubuntu-24.04", profile="vm", variables={"tuning_accept_translated_iommu": False}),
}
SAMPLE = "ubuntu-22.04"
PROOF = Proof(
    "os-matrix",
    {"systems": list(CASES)},
    sample=[SAMPLE],
)  # fmt: skip
TEXT = """
Simulated nodes with nothing but an operating system, under the names that `gaudi3-simulator up` takes. `site.yml` runs
through on them (driver, PyTorch, a short job on the simulated cards, verification), and once more without a change. Or
its preflight refuses the node in one sentence and leaves every file on every host as it was. Where both are told, the
second run is what the refusal asks for, on the same nodes.

It proves which way the roles take. It proves nothing about packages, kernels or cards of a real system: see
[the simulator](../simulator/README.md#operating-systems).
"""

#: What programs write for themselves: logs, caches, locks, the state of the simulated hardware, Ansible's own folder.
LEFT_OUT = (
    "/root/.ansible", "/tmp", "/var/tmp", "/var/log", "/var/cache", "/var/lib/systemd", "/var/lib/gaudi3-simulator",
    "/var/lib/dnf", "/var/lib/rpm", "/var/lib/dpkg/lock", "/var/lib/dpkg/lock-frontend", "/var/lib/apt/lists/lock",
)  # fmt: skip


def files(case: Case) -> dict[str, str]:
    """Kind, mode, owner, size and time of all that is on the hosts' disks."""
    prune = [word for path in LEFT_OUT for word in ("-path", path, "-o")]
    # A folder's time changes with what was in it for a moment.
    told = [
        *("-name", "__pycache__", "-prune", "-o"),
        *("-type", "d", "-printf", r"%p\t%y %m %u:%g\n", "-o", "-printf", r"%p\t%y %m %u:%g %s %T@ %l\n"),
    ]
    found = {}
    for host in [*case.names, *(["monitor-1"] if case.monitor else [])]:
        listed = exec_in("os-matrix", host, "find", "/", "-xdev", "(", *prune[:-1], ")", "-prune", "-o", *told)
        assert listed.returncode == 0 and listed.stdout, listed.stderr
        for line in listed.stdout.splitlines():
            path, _, about = line.partition("\t")
            found[f"{host}:{path}"] = about
    return found


@contextmanager
def bare(case: Case) -> Iterator[Site]:
    """The cluster of a case; it is taken down in any case."""
    site = Site("os-matrix")
    site.down()
    try:
        monitor = [] if case.monitor else ["--no-monitor"]
        place = ["--board", case.board, "--profile", case.profile]
        site.up(case.nodes, "--cards", "2", *case.system.split(), *place, *monitor)
        yield site
    finally:
        site.down()


def play(site: Site, arguments: tuple[str, ...], variables: dict[str, Any]) -> PlaybookRun:
    return site.play(*arguments, "-e", json.dumps({**SHORT, **variables}))


def is_refused(site: Site, case: Case) -> None:
    """In one sentence on every node, with nothing changed on any host."""
    before = files(case)
    run = play(site, (), case.refused_with)
    assert run.returncode != 0, run.everything[-3000:]
    said = {host: str(result["msg"]) for host, _name, result in run.results() if result.get("failed")}
    assert set(said) == set(case.names), (said, run.output)
    for sentence in said.values():
        assert case.refused in sentence and "\n" not in sentence, sentence
    assert run.changed() == set()
    after = files(case)
    assert {path: (before.get(path), about) for path, about in after.items() if before.get(path) != about} == {}
    assert set(before) - set(after) == set()


def runs_through(site: Site, case: Case) -> None:
    """Driver and cards are there, the job trained on them, and nothing is left to do."""
    first = play(site, case.arguments, case.variables)
    assert first.returncode == 0, first.messages() or first.output
    for node in case.names:
        cards = first.result(node, "Read the cards back")["ansible_facts"]["gaudi"]
        assert cards["card_count"] == 2 and cards["driver_version"], cards
        if case.trains:
            status = site.status(node, "demo")
            assert (status["state"], status["step"], status["device"]) == ("finished", STEPS, "hpu"), status
        if case.reboots:
            assert first.result(node, "tuning : Reboot")["rebooted"]
            assert "iommu=pt intel_iommu=on" in exec_in(site.name, node, "cat", "/proc/cmdline").stdout
    second = play(site, case.arguments, case.variables)
    assert second.returncode == 0, second.messages() or second.output
    assert second.changed() == set()


def row(case: Case, began: float) -> dict[str, Any]:
    """What the table says of a case that held."""
    done = "trained" if case.trains else "driver" + (" and monitoring" if case.monitor else "")
    done += " after a reboot with `iommu=pt`" if case.reboots else ""
    with_ = f"with `{' '.join(case.arguments)}`: " if case.arguments else ""
    first = f'refused: "{case.refused}"; then ' if case.refused else ""
    return {
        "system": f"`{case.system}`",
        "profile": case.profile,
        "board": case.board,
        "hosts": case.nodes + case.monitor,
        "outcome": f"{first}{with_}{done}, second run without a change",
        "seconds": round(time.monotonic() - began),
    }


def say(name: str, text: str, began: float) -> None:
    """Progress; the proof shows it while it runs."""
    print(f"[{time.monotonic() - began:4.0f} s] {name}: {text}", flush=True)


@pytest.mark.parametrize("name", PROOF.parameters({name: name for name in CASES}))
def test_it_runs_through_or_is_refused_before_the_first_change(name: str) -> None:
    case, began = CASES[name], time.monotonic()
    PROOF.skip_if_held(name)
    if not PROOF.is_running and not Path("/sys/kernel/iommu_groups").is_dir():
        pytest.skip("this kernel has no IOMMU support, so nodes have no IOMMU groups to be refused for")
    say(name, f"bare nodes of {case.system}, {case.profile}, {case.board}", began)
    with bare(case) as site:
        if case.refused:
            say(name, "a run that has to be refused", began)
            is_refused(site, case)
        if not PROOF.is_running:
            return
        say(name, f"a run that has to pass {' '.join(case.arguments)}", began)
        runs_through(site, case)
    say(name, "held", began)
    PROOF.note(name, row(case, began))
    PROOF.write_table("Operating systems, places and cards", TEXT, list(row(case, began)))
