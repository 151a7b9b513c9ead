"""The simulated hl_qual: which calls it takes, which mode notices which fault, and the report that it leaves."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from simulated_machine import Machine

ALL = ("-gaudi3", "-c", "all", "-rmod", "parallel")
MODES: dict[str, tuple[str, ...]] = {
    "functional": ("-f2", "-l", "extreme", "-t", "300"),
    "power": ("-s", "-toggle"),
    "edp": ("-e", "-Tw", "1", "-Ts", "2", "-sync"),
    "pcie": ("-p", "-b", "-gen", "gen5"),
    "memory-bandwidth": ("-mb", "-memOnly"),
    "hbm": ("-i", "3", "-hbm_dma_stress"),
    "nic": ("-nic_base", "-i", "100", "-sz", "134217728", "-test_type", "allreduce"),
    "end-to-end": ("-e2e_concurrency", "-toggle"),
    "ser": ("-ser",),
}
FLOORS = {"functional", "power", "edp", "memory-bandwidth", "end-to-end"}


def failing(machine: Machine) -> set[str]:
    """The modes that fail."""
    return {mode for mode, words in MODES.items() if machine.run("hl_qual", *ALL, *words).code}


def test_sound_cards_pass_every_mode(machine: Machine) -> None:
    assert failing(machine) == set()
    result = machine.ok("hl_qual", *ALL, *MODES["functional"])
    assert result.lines[-1] == "Passed"
    reports = machine.names("/var/log/habana_logs/qual")
    assert all("_hl_qual_report_" in name for name in reports)
    assert machine.read(f"/var/log/habana_logs/qual/{reports[-1]}") == result.out.rstrip("\n")


@pytest.mark.parametrize(
    ("fault", "modes"),
    [
        (("slow-card", "--card", "3"), FLOORS),
        (("slow-link", "--card", "3"), {"nic"}),
        (("qual-failed", "--card", "3"), set(MODES)),
        (("qual-failed", "--card", "3", "--event", "edp"), {"edp"}),
        (("ecc-uncorrected", "--card", "3"), {"hbm"}),
        (("row-pending", "--card", "3"), {"hbm"}),
        (("pcie-width", "--card", "3"), {"pcie"}),
        (("pcie-generation", "--card", "3"), {"pcie"}),
        (("throttled-thermal", "--card", "3"), {"power", "edp"}),
        (("port-down", "--card", "3", "--port", "0"), {"nic", "ser"}),
        (("port-symbol-errors", "--card", "3", "--port", "0"), {"ser"}),
        (("card-in-reset", "--card", "3"), set(MODES)),
        (("temperature-zero", "--card", "3"), set()),
        (("port-down", "--card", "3", "--port", "4"), set()),
    ],
)
def test_a_fault_fails_the_modes_that_notice_it(machine: Machine, fault: tuple[str, ...], modes: set[str]) -> None:
    machine.ok("node", "fault", *fault)
    assert failing(machine) == modes
    for mode in modes:
        lines = machine.run("hl_qual", *ALL, *MODES[mode]).lines
        assert lines[-1] == "Failed"
        assert next(line for line in lines if line.startswith("accel")).startswith("accel3 0000:")
    machine.ok("node", "fault", "--clear-all")
    assert failing(machine) == set()


def test_one_card_alone(machine: Machine) -> None:
    machine.ok("node", "fault", "slow-card", "--card", "3")
    addresses = [cells[0] for cells in machine.csv("bus_id")]
    one = ("-gaudi3", "-rmod", "serial", *MODES["functional"], "-c")
    assert [machine.run("hl_qual", *one, address).code for address in addresses] == [0, 0, 0, 1, 0, 0, 0, 0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("-gaudi2", "-c", "all", "-rmod", "parallel", "-f2"), "the cards are of another generation: give -gaudi3"),
        (("-gaudi3", "-rmod", "parallel", "-f2"), "no card chosen: give -c all"),
        (("-gaudi3", "-c", "all", "-f2"), "'' is no run mode: give -rmod parallel or -rmod serial"),
        (ALL, "0 tests chosen: give one of -f2,"),
        ((*ALL, "-f2", "-s"), "2 tests chosen: give one of -f2,"),
        ((*ALL, "-nic_base"), "-nic_base needs -test_type with one of pairs,"),
        ((*ALL, "--json"), "unknown option '--json'"),
    ],
)
def test_what_makes_no_sense_is_refused(machine: Machine, arguments: tuple[str, ...], message: str) -> None:
    result = machine.run("hl_qual", *arguments)
    assert (result.code, result.out) == (1, "")
    assert result.err.startswith(f"hl_qual: {message}")


def test_a_card_that_computes_is_left_alone(machine: Machine) -> None:
    pid = machine.hold(5)
    result = machine.run("hl_qual", *ALL, *MODES["functional"])
    assert (result.code, result.err) == (1, f"hl_qual: accel5 is held by process {pid}: end that first\n")


def test_without_a_driver_and_without_root(bare: Callable[..., Machine]) -> None:
    machine = bare("gaudi-1", 8)
    assert "the habanalabs driver is not up" in machine.run("hl_qual", *ALL, "-f2").err
    machine.as_user(1000)
    assert "this needs root" in machine.run("hl_qual", *ALL, "-f2").err


def test_gaudi_2(bare: Callable[..., Machine]) -> None:
    machine = bare("gaudi-1", 8, board="HL-225")
    machine.install()
    machine.load()
    assert machine.run("hl_qual", "-gaudi2", "-c", "all", "-rmod", "parallel", "-f2").code == 0


def test_an_external_port_has_no_slow_link(machine: Machine) -> None:
    result = machine.run("node", "fault", "slow-link", "--port", "4")
    assert "port 4 is external, which hl_qual does not measure" in result.err
