"""Who the cards are: the same for the same node, three different orders, kept across restarts."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from simulated_machine import Machine

from gaudi3_simulator.node import launchers, releases, store


@pytest.mark.parametrize("cards", [2, 3, 8])
def test_index_bus_and_module_are_different_orders(cards: int) -> None:
    for number in range(50):
        state = store.new_state(f"gaudi-{number}", cards)
        by_index = sorted(state["cards"], key=lambda card: card["index"])
        modules = [card["module_id"] for card in by_index]
        buses = [card["bus_id"] for card in by_index]
        assert modules != list(range(cards))
        assert sorted(modules) == list(range(cards))
        assert buses != sorted(buses)
        if cards > 2:
            assert [sorted(buses).index(bus) for bus in buses] != modules


# Index to module of eight cards, as owners published them: an HL-325L node with 1.24.1, one with 1.23.0, and a Gaudi 2.
SEEN = {(1, 3, 2, 6, 0, 7, 5, 4), (2, 6, 3, 7, 0, 4, 5, 1), (0, 4, 1, 5, 2, 6, 3, 7)}


def test_modules_of_eight_cards_are_as_they_were_seen() -> None:
    found = {
        tuple(card["module_id"] for card in store.new_state(f"gaudi-{number}", 8)["cards"]) for number in range(60)
    }
    assert found == SEEN


def test_same_name_gives_the_same_cards_and_other_names_others() -> None:
    assert store.new_state("gaudi-1", 8) == store.new_state("gaudi-1", 8)
    serials = [card["serial"] for node in range(1, 17) for card in store.new_state(f"gaudi-{node}", 8)["cards"]]
    macs = [card["mac"] for node in range(1, 17) for card in store.new_state(f"gaudi-{node}", 8)["cards"]]
    assert len(set(serials)) == len(set(macs)) == 128
    assert all(re.fullmatch(r"AO\d{8}", serial) for serial in serials)


def test_init_keeps_what_is_there_unless_forced(bare: Callable[..., Machine]) -> None:
    machine = bare("gaudi-1", 8)
    machine.ok("node", "init", "--node", "other", "--cards", "2")
    assert json.loads(machine.read("/var/lib/gaudi3-simulator/state.json"))["node"] == "gaudi-1"
    machine.ok("node", "init", "--node", "other", "--cards", "2", "--force")
    assert len(json.loads(machine.read("/var/lib/gaudi3-simulator/state.json"))["cards"]) == 2


@pytest.mark.parametrize("cards", ["0", "9"])
def test_wrong_number_of_cards_is_refused(bare: Callable[..., Machine], cards: str) -> None:
    machine = bare()
    result = machine.run("node", "init", "--node", "x", "--cards", cards, "--force")
    assert result.code == 1
    assert result.err == (
        f"gaudi3-simulator-node: {cards} cards do not fit: the board has 1 to 8 places, choose that many\n"
    )
    assert len(machine.names("/sys/bus/pci/devices")) == 8


def test_missing_state_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(tmp_path, monkeypatch)
    assert machine.run("hl-smi").err == (
        "hl-smi: /var/lib/gaudi3-simulator/state.json is missing: create it with "
        "'gaudi3-simulator-node init --node NAME --cards 8'\n"
    )


def test_status_is_json(machine: Machine) -> None:
    machine.ok("node", "fault", "card-in-reset", "--card", "1")
    status = json.loads(machine.ok("node", "status").out)
    assert status["simulator"] is True
    assert (status["node"], status["driver_up"], status["driver_version"]) == ("gaudi-1", True, "1.23.0-2eae87a")
    assert status["faults"] == [{"kind": "card-in-reset", "card": 1}]
    assert [card["status"] for card in status["cards"]][:3] == ["Operational", "In reset", "Operational"]


def test_a_change_waits_for_the_one_before(machine: Machine) -> None:
    program = "import sys; from gaudi3_simulator.node.cli import main; sys.exit(main(sys.argv[1:]))"
    with store.Lock():
        later = subprocess.Popen([sys.executable, "-c", program, "fault", "temperature-zero", "--card", "1"])
        with pytest.raises(subprocess.TimeoutExpired):
            later.wait(1.5)
        state = store.load_state()
        state["faults"].append({"kind": "pcie-width", "card": 0})
        store.save_state(state)
    assert later.wait(30) == 0
    assert [fault["kind"] for fault in store.load_state()["faults"]] == ["pcie-width", "temperature-zero"]


def test_launchers_run_as_installed(machine: Machine, tmp_path: Path) -> None:
    library = tmp_path / "lib"
    library.mkdir()
    (library / launchers.PACKAGE).symlink_to(Path(launchers.__file__).parent, target_is_directory=True)
    files = {**launchers.image_files(), "/hl-smi": (0o755, launchers.vendor_text("hl-smi", "1.23.0-695"))}
    outputs = {}
    for path, arguments in {
        "/hl-smi": ["-v"],
        "/usr/local/sbin/modprobe": ["-n", "-v", "habanalabs"],
        "/usr/local/bin/lsmod": [],
        "/usr/local/bin/dmesg": ["-t"],
        "/usr/local/sbin/gaudi3-simulator-node": ["status"],
    }.items():
        mode, text = files[path]
        assert mode == 0o755
        program = tmp_path / Path(path).name
        text = text.replace(launchers.LIBRARY, str(library)).replace("/usr/bin/python3", sys.executable)
        program.write_text(text)
        program.chmod(mode)
        result = subprocess.run([str(program), *arguments], capture_output=True, text=True, check=True)
        outputs[path] = result.stdout
    assert outputs["/hl-smi"].startswith("Habanalabs hl-smi/hlml version hl-1.23.0-fw-62.2.1.1 (")
    assert outputs["/usr/local/bin/lsmod"].splitlines()[0] == "Module                  Size  Used by"
    assert json.loads(outputs["/usr/local/sbin/gaudi3-simulator-node"])["driver_up"] is True


def test_hl_smi_imports_nothing_slow(machine: Machine) -> None:
    code = (
        "import sys; from gaudi3_simulator.node.hl_smi import main; main([], '1.23.0-695');"
        "print(sorted(set(sys.modules) & {'typing', 'pathlib', 'dataclasses', 'argparse', 'subprocess', 'socket'}))"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(releases.__file__).parents[2])}
    result = subprocess.run(
        [sys.executable, "-S", "-c", code], capture_output=True, text=True, check=True, env=environment
    )
    assert result.stdout.splitlines()[-1] == "[]"


def test_a_release_knows_the_one_before_it() -> None:
    assert releases.previous("1.24.1-482") == "1.24.0"
    assert releases.previous("1.15.1") == "1.15.1"
