"""Which module holds which, and how large they are: lsmod against a public transcript of 1.23.0."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from simulated_machine import Machine

from gaudi3_simulator.node import kernel

# The Gaudi 2E manual for 1.23.0; there ib_uverbs and ib_core are held by modules of other hardware as well.
SEEN = """\
habanalabs_ib          98304  0
habanalabs_en          69632  0
habanalabs_cn         864256  1 habanalabs_en
habanalabs           2248704  0
habanalabs_compat      16384  1 habanalabs
"""
COMPAT_OFF = ["habanalabs_ib", "habanalabs_en", "habanalabs_cn", "habanalabs", "habanalabs_compat"]
OLDER_OFF = ["habanalabs", "habanalabs_cn", "habanalabs_ib", "habanalabs_en"]


def lsmod(machine: Machine) -> list[str]:
    return machine.ok("lsmod").lines[1:]


def test_lsmod_shows_what_a_node_shows(machine: Machine) -> None:
    shown = lsmod(machine)
    assert [line for line in shown if line.startswith("habanalabs")] == SEEN.splitlines()
    users = {line.split()[0]: line.split()[2:] for line in shown}
    assert users["ib_uverbs"] == ["1", "habanalabs_ib"]
    assert users["ib_core"][0] == "2"
    assert set(users["ib_core"][1].split(",")) == {"ib_uverbs", "habanalabs_ib"}


@pytest.mark.parametrize("tool", [("rmmod",), ("modprobe", "-r")])
@pytest.mark.parametrize(
    ("release", "order"), [("1.18.0-524", OLDER_OFF), ("1.20.1-97", OLDER_OFF), ("1.21.0-555", COMPAT_OFF),
                           ("1.23.0-695", COMPAT_OFF), ("1.24.1-482", COMPAT_OFF)]
)  # fmt: skip
def test_each_documented_order_takes_everything_out(
    bare: Callable[..., Machine], release: str, order: list[str], tool: tuple[str, ...]
) -> None:
    machine = bare(cards=2)
    machine.install(release)
    machine.load()
    for name in order:
        if any(line.split()[0] == name for line in lsmod(machine)):
            machine.ok(*tool, name)
    assert [line for line in lsmod(machine) if line.startswith("habanalabs")] == []
    machine.load()
    assert len(machine.csv("index", release=release)) == 2


def test_the_counts_refuse_and_nothing_else_does(machine: Machine) -> None:
    for name, users in (("habanalabs_compat", "habanalabs"), ("habanalabs_cn", "habanalabs_en")):
        result = machine.run("rmmod", name)
        assert (result.code, result.err) == (1, f"rmmod: ERROR: Module {name} is in use by: {users}\n")
    machine.ok("rmmod", "habanalabs")
    assert machine.names("/dev/accel") == []
    assert [line.split()[0] for line in lsmod(machine)][:3] == ["habanalabs_ib", "habanalabs_en", "habanalabs_cn"]


def test_dependencies_are_those_of_the_counts(machine: Machine) -> None:
    depends = {name: machine.ok("modinfo", "-F", "depends", name).out.strip() for name in COMPAT_OFF}
    assert depends == {
        "habanalabs": "habanalabs_compat", "habanalabs_cn": "", "habanalabs_en": "habanalabs_cn",
        "habanalabs_ib": "", "habanalabs_compat": "",
    }  # fmt: skip


def test_modinfo_takes_an_installed_file_and_says_that_one_is_empty(machine: Machine) -> None:
    path = kernel.module_path("habanalabs")
    assert machine.ok("modinfo", "-F", "version", path).out == machine.ok("modinfo", "-F", "version", "habanalabs").out
    machine.ok("node", "fault", "module-empty")
    said = machine.run("modinfo", "habanalabs")
    assert (said.code, said.err) == (1, "modinfo: ERROR: could not get modinfo from 'habanalabs': Invalid argument\n")
