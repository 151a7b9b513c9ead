"""The modules of a node's cards, as sysfs and the processes of the node show them."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._jobs.needs import CardModules, card_modules


def card(root: Path, index: int, module: str | None, status: str | None = "Operational") -> None:
    """A card with its control device."""
    device = root / f"sys/class/accel/accel{index}/device"
    device.mkdir(parents=True)
    (root / f"sys/class/accel/accel_controlD{index}").mkdir()
    for name, text in (("module_id", module), ("status", status)):
        if text is not None:
            (device / name).write_text(f"{text}\n")


def opens(root: Path, pid: int, *devices: str) -> None:
    """A process with these files open."""
    (root / f"proc/{pid}/fd").mkdir(parents=True)
    for number, device in enumerate(devices):
        (root / f"proc/{pid}/fd/{number}").symlink_to(device)


def found(root: Path) -> CardModules | None:
    return card_modules(str(root / "sys"), str(root / "proc"))


def test_modules_are_those_of_the_cards_and_not_their_indexes(tmp_path: Path) -> None:
    for index, module in enumerate("63175042"):
        card(tmp_path, index, module)
    opens(tmp_path, 4711, "/dev/null", "/dev/accel/accel1", "/dev/accel/accel_controlD1")
    opens(tmp_path, 4712, "/dev/accel/accel7")
    assert found(tmp_path) == CardModules(operational=list(range(8)), held=[2, 3])


def test_what_only_reads_a_card_does_not_hold_it(tmp_path: Path) -> None:
    card(tmp_path, 0, "5")
    opens(tmp_path, 9, "/dev/accel/accel_controlD0")
    assert found(tmp_path) == CardModules(operational=[5], held=[])


@pytest.mark.parametrize(
    ("status", "works"),
    [
        ("Operational", True),
        ("In reset", True),  # it leaves that state by itself
        ("In device creation", True),
        ("Disabled", False),
        ("Needs reset", False),
        ("In a state nobody knows", False),
        (None, False),
    ],
)
def test_a_card_counts_by_its_status(status: str | None, works: bool, tmp_path: Path) -> None:
    card(tmp_path, 0, "3", status)
    card(tmp_path, 1, "1")
    opens(tmp_path, 4711, "/dev/accel/accel0")
    assert found(tmp_path) == CardModules([1, 3] if works else [1], [3] if works else [])


def test_a_card_without_a_module_is_left_out(tmp_path: Path) -> None:
    card(tmp_path, 0, None)
    card(tmp_path, 1, "N/A")
    card(tmp_path, 2, "4")
    assert found(tmp_path) == CardModules([4], [])


def test_before_the_driver_is_loaded_nothing_is_known(tmp_path: Path) -> None:
    assert found(tmp_path) is None
    card(tmp_path, 0, None)
    assert found(tmp_path) is None
