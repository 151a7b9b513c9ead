"""The process that answers, asked as the library asks it."""

from __future__ import annotations

import os
import socket
import threading

import pytest
from hlml_program import AIP_IS_LOST, DRIVER_NOT_LOADED, INVALID_ARGUMENT, NOT_FOUND, NOT_SUPPORTED, SUCCESS
from simulated_machine import RELEASE, Machine

from gaudi3_simulator.node import faults, hlml, hlml_values, releases

UNKNOWN = 49
INFO = releases.release_info(RELEASE)
CHOICES = {"errors": "1 0 all", "macs": "1", "set-power-limit": "600000"}


def ask(question: str, release: str = RELEASE) -> list[str]:
    """Code and fields of an answer."""
    answer = hlml.answer(question, releases.release_info(release))
    assert answer.endswith("\n")
    assert answer.count("\n") == 1
    return answer.rstrip("\n").split("\t")


def code(question: str, release: str = RELEASE) -> int:
    """Code of an answer."""
    return int(ask(question, release)[0])


def test_every_question_about_a_card_is_answered(machine: Machine) -> None:
    """With a value, or by saying that there is none: nothing else on a sound node."""
    machine.at(machine.now + 10)
    unsupported = {
        name for name in hlml_values.OF_A_CARD if code(f"{name} 5 {CHOICES.get(name, '0')}") == NOT_SUPPORTED
    }
    assert unsupported <= {"unsupported", "pcie-generation", "pcie-width", "processors"}
    for name in set(hlml_values.OF_A_CARD) - unsupported:
        assert ask(f"{name} 5 {CHOICES.get(name, '0')}")[0] == str(SUCCESS), name


def test_a_question_about_the_node_is_answered(machine: Machine) -> None:
    bus_id, uuid = machine.csv("bus_id,uuid")[4]
    assert ask("init") == ["0"]
    assert ask("count") == ["0", "8"]
    assert ask("by-index 4") == ["0", "4"]
    assert ask(f"by-address {bus_id}") == ["0", "4"]
    assert ask(f"by-address {bus_id.partition(':')[2].upper()}") == ["0", "4"]
    assert ask(f"by-uuid {uuid}") == ["0", "4"]
    assert len(ask("events")) == 1 + 8 * 7
    assert ask("driver-version") == ["0", machine.csv("driver_version")[0][0]]
    assert ask("library-version", "1.24.0-1007") == ["0", releases.release_info("1.24.0-1007").tool]


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("by-index 8", INVALID_ARGUMENT),
        ("by-index -1", INVALID_ARGUMENT),
        ("by-address 0000:ff:00.0", NOT_FOUND),
        ("by-uuid nobody", NOT_FOUND),
        ("serial 8", AIP_IS_LOST),
        ("serial x", INVALID_ARGUMENT),
        ("serial", UNKNOWN),
        ("clock 0 1", NOT_SUPPORTED),
        ("clock 0 4", INVALID_ARGUMENT),
        ("temperature 0 4", NOT_SUPPORTED),
        ("temperature 0 6", INVALID_ARGUMENT),
        ("errors 0 0 2 all", INVALID_ARGUMENT),
        ("errors 0 0 1 none", INVALID_ARGUMENT),
        ("link 0 24", INVALID_ARGUMENT),
        ("counters 0 99", INVALID_ARGUMENT),
        ("set-power-limit 0 1000", INVALID_ARGUMENT),
        ("", UNKNOWN),
        ("no-such-thing 0", UNKNOWN),
    ],
)
def test_a_question_that_has_no_answer_gets_its_code(machine: Machine, question: str, expected: int) -> None:
    assert code(question) == expected


def test_what_an_older_library_does_not_know(machine: Machine) -> None:
    assert code("errors 0 0 0 all", "1.19.1-26") == NOT_SUPPORTED
    assert code("errors 0 0 0 all", "1.20.0-543") == SUCCESS
    assert code("performance-state 0", "1.18.0-524") == NOT_SUPPORTED
    assert code("performance-state 0", "1.22.1-6") == SUCCESS
    assert code("temperature 0 4", "1.16.2-2") == INVALID_ARGUMENT


def test_rules_can_be_turned_round(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    machine.ok("node", "fault", faults.CARD_MISSING, "--card", "2")
    assert code("by-index 2") == INVALID_ARGUMENT
    assert ask("by-index 7") == ["0", "7"]
    monkeypatch.setenv("GAUDI3_SIMULATOR_STRICTNESS", "hlml-index-is-minor=off hlml-needs-driver=off")
    assert ask("by-index 2") == ["0", "3"]
    assert code("by-index 7") == INVALID_ARGUMENT
    machine.ok("node", "fault", faults.DRIVER_NOT_LOADED)
    assert ask("init") == ["0"]
    assert ask("count") == ["0", "0"]
    assert code("serial 0") == DRIVER_NOT_LOADED


def test_a_node_without_state_is_an_error_and_not_the_end(machine: Machine) -> None:
    machine.path("/var/lib/gaudi3-simulator/state.json").unlink()
    assert code("init") == UNKNOWN


def test_the_energy_of_a_user_who_may_not_keep_it(machine: Machine) -> None:
    machine.path("/run/gaudi3-simulator/energy.json").unlink()
    machine.path("/run/gaudi3-simulator/energy.json").mkdir()  # root writes any file, but no folder
    (_, energy), draw = ask("energy 3"), machine.csv("power.draw")[3][0]
    assert int(energy) == int(draw) * 100 * 1000


def test_every_user_may_write_the_meters(machine: Machine) -> None:
    assert machine.path("/run/gaudi3-simulator/energy.json").stat().st_mode & 0o777 == 0o666


def test_damaged_meters_start_anew(machine: Machine) -> None:
    machine.write("/run/gaudi3-simulator/energy.json", '{"3": [1]}')
    assert int(ask("energy 3")[1]) > 0


def test_questions_come_in_pieces_and_in_bunches(machine: Machine) -> None:
    ours, theirs = socket.socketpair()
    server = threading.Thread(target=hlml.serve, args=(theirs.fileno(), INFO))
    server.start()
    ours.sendall(b"mino")
    ours.sendall(b"r 3\ncount\nby-index 6\n")
    answers = b""
    while answers.count(b"\n") < 3:
        answers += os.read(ours.fileno(), 100)
    ours.close()
    server.join(timeout=10)
    theirs.close()
    assert answers == b"0\t3\n0\t8\n0\t6\n"
    assert not server.is_alive()
