"""What a card shows follows whoever holds it: its memory, its load, its warmth and the list of processes."""

from __future__ import annotations

import pytest
from simulated_machine import MIB, START, Machine

FIELDS = "temperature.aip,power.draw,utilization.aip,memory.used"


def by_index(machine: Machine) -> list[tuple[int, int, int, int]]:
    rows = [tuple(int(value) for value in values) for values in machine.csv(FIELDS)]
    return [(row[0], row[1], row[2], row[3]) for row in rows]


def listed(machine: Machine) -> list[list[str]]:
    """Index, process number, name and memory of each process in the table."""
    lines = [line.strip("|").split() for line in machine.ok("hl-smi").lines if " C    " in line and "%" not in line]
    return [[line[0], line[1], line[3], line[4]] for line in lines]


def test_idle_cards_are_cool_and_empty(machine: Machine) -> None:
    for temperature, power, utilization, memory in by_index(machine):
        assert 35 <= temperature <= 37
        assert 220 <= power <= 232
        assert (utilization, memory) == (0, 672)
    assert listed(machine) == []


def test_a_holder_without_a_rank_is_seen(machine: Machine) -> None:
    """A plain program on one card: 1 GiB in use, named, and at work."""
    pid = machine.hold(3, mib=1024)
    machine.at(START + 60)
    cards = by_index(machine)
    assert cards[3][3] == 672 + 1024
    assert 92 <= cards[3][2] <= 98
    assert listed(machine) == [["3", str(pid), "python3", "1024MiB"]]
    assert [row[2:] for index, row in enumerate(cards) if index != 3] == [(0, 672)] * 7


@pytest.mark.parametrize("rank", [0, 5])
def test_a_rank_without_a_card_is_not(machine: Machine, rank: int) -> None:
    """A job on the host's processor alone: launched like a Gaudi job, it opens no card."""
    machine.process(4321, {"RANK": str(rank), "LOCAL_RANK": str(rank)}, age=600)
    machine.at(START + 60)
    assert {row[2:] for row in by_index(machine)} == {(0, 672)}
    assert listed(machine) == []


@pytest.mark.parametrize(("card", "mib"), [(0, 1), (2, 88000), (7, 130400)])
def test_memory_is_the_cards_own_count(machine: Machine, card: int, mib: int) -> None:
    pid = machine.hold(card, mib=mib)
    assert machine.csv("memory.used,memory.free,memory.total")[card] == [
        str(672 + mib), str(130400 - mib), "131072",
    ]  # fmt: skip
    machine.use(pid, 7)
    assert machine.csv("memory.used")[card] == ["679"]


def test_memory_is_counted_in_whole_mebibytes_upward(machine: Machine) -> None:
    pid = machine.hold(1, mib=0)
    file = machine.card_file(1)
    content = bytearray(file.read_bytes())
    content[16:24] = (MIB + 1).to_bytes(8, "little")
    file.write_bytes(content)
    assert machine.csv("memory.used")[1] == ["674"]
    machine.kill(pid)


@pytest.mark.parametrize("ending", ["release", "kill"])
def test_a_holder_that_ended_holds_nothing(machine: Machine, ending: str) -> None:
    """Killed in the middle of its work, it leaves its number in the card's file, which then means nothing."""
    pid = machine.hold(4, mib=4096)
    machine.at(START + 30)
    assert by_index(machine)[4][3] == 672 + 4096
    getattr(machine, ending)(pid)
    assert (int.from_bytes(machine.card_file(4).read_bytes()[8:16], "little") == pid) is (ending == "kill")
    machine.at(START + 31)
    assert by_index(machine)[4][2:] == (0, 672)
    assert listed(machine) == []


def test_a_holder_that_computes_nothing_has_no_load(machine: Machine) -> None:
    pid = machine.hold(0, mib=512, share=0.0, age=100)
    busy = machine.hold(1, mib=512, share=0.5, age=100)
    for second in (1, 5, 60):
        machine.at(START + second)
        cards = by_index(machine)
        assert cards[0][2:] == (0, 672 + 512)
        assert cards[1][2] >= 92
    assert cards[0][0] <= 37 < 58 <= cards[1][0]
    assert [line[1] for line in listed(machine)] == [str(pid), str(busy)]


def test_readings_rise_and_fall_with_the_job(machine: Machine) -> None:
    pid = machine.hold(0)
    warming = []
    for seconds in (1, 5, 15, 30, 60, 120):
        machine.at(START + seconds)
        warming.append(by_index(machine)[0])
    temperatures = [reading[0] for reading in warming]
    assert temperatures == sorted(temperatures)
    assert temperatures[-1] - temperatures[0] >= 20
    machine.release(pid)
    machine.at(START + 121)
    temperature, _, utilization, memory = by_index(machine)[0]
    assert (utilization, memory) == (0, 672)
    assert temperature >= 57, "the card is still warm"
    machine.at(START + 140)
    assert by_index(machine)[0][1] < 250, "the power falls faster than the temperature"
    machine.at(START + 300)
    assert by_index(machine)[0][0] <= 37


def test_warmth_does_not_depend_on_how_often_it_is_read(machine: Machine) -> None:
    machine.hold(0, 5)
    for second in range(1, 31):
        machine.at(START + second)
        often = by_index(machine)
    machine.path("/run/gaudi3-simulator/sensors.json").write_text("{}")
    assert by_index(machine) == often


def test_a_job_that_nobody_watched_is_as_warm(machine: Machine) -> None:
    machine.hold(6, age=600)
    assert by_index(machine)[6][0] >= 58


def test_one_process_on_several_cards_is_listed_with_each(machine: Machine) -> None:
    pid = machine.hold(2, 4, mib=100, name="gaudi3-train")
    assert listed(machine) == [[str(card), str(pid), "gaudi3-train", "100MiB"] for card in (2, 4)]


def test_other_users_processes_are_hidden_but_their_load_is_not(machine: Machine) -> None:
    pid = machine.hold(1, mib=64)
    machine.at(START + 60)
    assert [line[1] for line in listed(machine)] == [str(pid)]
    machine.as_user(4242)
    assert listed(machine) == []
    assert by_index(machine)[1][2] >= 92
    assert by_index(machine)[1][3] == 672 + 64


def test_power_stays_under_a_lowered_limit(machine: Machine) -> None:
    machine.hold(0)
    machine.at(START + 60)
    machine.ok("hl-smi", "-p", "500", "-i", machine.csv("bus_id")[0][0])
    assert by_index(machine)[0][1] == 500


def test_readings_of_one_moment_are_the_same(machine: Machine) -> None:
    machine.hold(5, share=0.3)
    assert machine.csv(FIELDS) == machine.csv(FIELDS)
    powers = set()
    for second in range(20):
        machine.at(START + second)
        powers.add(tuple(cells[0] for cells in machine.csv("power.draw")))
    assert len(powers) > 10


def test_a_spoilt_sensors_file_is_survived(machine: Machine) -> None:
    machine.hold(0)
    for text in ("", "[1]", '{"0": "warm"}', '{"0": [1, 9e9, -3]}', '{"0": [1, 0.5, 0.5, 4, 1e9, 7, true]}'):
        machine.path("/run/gaudi3-simulator/sensors.json").write_text(text)
        assert all(30 <= reading[0] <= 62 for reading in by_index(machine))


def test_a_spoilt_card_file_is_survived(machine: Machine) -> None:
    pid = machine.hold(0, mib=8)
    for content in (b"", b"x" * 5, b"\xff" * 64):
        machine.card_file(0).write_bytes(content)
        assert by_index(machine)[0][3] in (672, 131072)
        assert listed(machine)[0][1] == str(pid)


def test_a_held_card_keeps_the_driver(machine: Machine) -> None:
    for name in ("habanalabs_ib", "habanalabs_en", "habanalabs_cn"):
        machine.ok("modprobe", "-r", name)
    pid = machine.hold(7)
    assert machine.run("modprobe", "-r", "habanalabs").err == "modprobe: FATAL: Module habanalabs is in use.\n"
    assert machine.run("rmmod", "habanalabs").err == "rmmod: ERROR: Module habanalabs is in use\n"
    machine.kill(pid)
    machine.ok("modprobe", "-r", "habanalabs")
