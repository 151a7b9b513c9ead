"""Readings follow the job: they rise while a worker runs, fall when it is gone, and differ by card."""

from __future__ import annotations

import pytest
from simulated_machine import START, Machine

from gaudi3_simulator.node import processes

FIELDS = "temperature.aip,power.draw,utilization.aip,memory.used"


def by_module(machine: Machine) -> dict[int, tuple[int, int, int, int]]:
    found = {}
    for module_id, *values in machine.csv(f"module_id,{FIELDS}"):
        temperature, power, utilization, memory = (int(value) for value in values)
        found[int(module_id)] = (temperature, power, utilization, memory)
    return found


def test_idle_cards_are_cool_and_empty(machine: Machine) -> None:
    for temperature, power, utilization, memory in by_module(machine).values():
        assert 35 <= temperature <= 37
        assert 220 <= power <= 232
        assert (utilization, memory) == (0, 672)


def test_a_job_warms_its_card_only(machine: Machine) -> None:
    machine.process(4321, {"RANK": "10", "LOCAL_RANK": "2"})
    machine.at(START + 120)
    cards = by_module(machine)
    temperature, power, utilization, memory = cards[2]
    assert 58 <= temperature <= 62
    assert 675 <= power <= 705
    assert 92 <= utilization <= 98
    assert memory == pytest.approx(88000, abs=50)
    assert all(utilization == 0 and memory == 672 for other, (_, _, utilization, memory) in cards.items() if other != 2)


def test_readings_rise_and_fall_with_the_job(machine: Machine) -> None:
    machine.process(4321, {"LOCAL_RANK": "0"})
    warming = []
    for seconds in (1, 5, 15, 30, 60, 120):
        machine.at(START + seconds)
        warming.append(by_module(machine)[0])
    temperatures = [reading[0] for reading in warming]
    assert temperatures == sorted(temperatures)
    assert temperatures[-1] - temperatures[0] >= 20
    assert [reading[3] for reading in warming] == sorted(reading[3] for reading in warming)
    machine.kill(4321)
    machine.at(START + 121)
    temperature, _, utilization, memory = by_module(machine)[0]
    assert (utilization, memory) == (0, 672)
    assert temperature >= 57, "the card is still warm"
    machine.at(START + 140)
    assert by_module(machine)[0][1] < 250, "the power falls faster than the temperature"
    machine.at(START + 300)
    assert by_module(machine)[0][0] <= 37


def test_warmth_does_not_depend_on_how_often_it_is_read(machine: Machine) -> None:
    machine.process(4321, {"LOCAL_RANK": "0"})
    machine.process(4322, {"LOCAL_RANK": "1"})
    for second in range(1, 31):
        machine.at(START + second)
        often = by_module(machine)
    machine.path("/run/gaudi3-simulator/sensors.json").write_text("{}")
    assert by_module(machine) == often


def test_a_job_that_nobody_watched_is_as_warm(machine: Machine) -> None:
    machine.process(4321, {"LOCAL_RANK": "0"}, age=600)
    assert by_module(machine)[0][0] >= 58


def test_process_is_listed_with_its_memory(machine: Machine) -> None:
    machine.process(4321, {"LOCAL_RANK": "0"})
    machine.process(4400, {"LOCAL_RANK": "0"}, parent=4321)  # a data loader of the worker
    machine.process(300, {"LOCAL_RANK": "0"}, parent=4321)  # another, after the process ids wrapped around
    machine.process(4500, {"PATH": "/usr/bin"}, name="bash")
    machine.at(START + 60)
    index = next(cells[0] for cells in machine.csv("index,module_id") if cells[1] == "0")
    listed = [line for line in machine.ok("hl-smi").lines if " C    " in line and "%" not in line]
    assert len(listed) == 1
    assert listed[0].split() == ["|", index, "4321", "C", "gaudi3-train", listed[0].split()[5], "|"]
    assert listed[0].split()[5].endswith("MiB")


def test_other_users_processes_are_hidden_but_their_load_is_not(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.process(4321, {"LOCAL_RANK": "0"})
    machine.process(4322, {"LOCAL_RANK": "1"})
    machine.process(4600, {"LOCAL_RANK": "2"}, name="python3")
    monkeypatch.setattr(processes, "_local_rank", lambda pid: None)  # what a closed environment comes to
    machine.at(START + 60)
    busy = {module for module, reading in by_module(machine).items() if reading[2] > 0}
    assert busy == {0, 1}
    assert "4321     C    gaudi3-train" in machine.ok("hl-smi").out
    machine.as_user(1000)
    assert "4321" not in machine.ok("hl-smi").out


def test_power_stays_under_a_lowered_limit(machine: Machine) -> None:
    machine.process(4321, {"LOCAL_RANK": "0"})
    machine.at(START + 60)
    bus_id = next(cells[0] for cells in machine.csv("bus_id,module_id") if cells[1] == "0")
    machine.ok("hl-smi", "-p", "500", "-i", bus_id)
    assert by_module(machine)[0][1] == 500


def test_readings_of_one_moment_are_the_same(machine: Machine) -> None:
    assert machine.csv(FIELDS) == machine.csv(FIELDS)
    powers = set()
    for second in range(20):
        machine.at(START + second)
        powers.add(tuple(cells[0] for cells in machine.csv("power.draw")))
    assert len(powers) > 10


def test_a_spoilt_sensors_file_is_survived(machine: Machine) -> None:
    for text in ("", "[1]", '{"0": "warm"}', '{"0": [1, 9e9, -3]}'):
        machine.path("/run/gaudi3-simulator/sensors.json").write_text(text)
        assert all(30 <= reading[0] <= 62 for reading in by_module(machine).values())
