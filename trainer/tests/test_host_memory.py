"""What a host can give is the least of what it says and of what its control groups leave, less a reserve."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gaudi3_scale import host_memory
from gaudi3_scale.batch import room
from gaudi3_scale.batch.search import FoundBatch
from gaudi3_scale.errors import ConfigError
from gaudi3_scale.hpu import device as devices

MIB = 2**20
MEMINFO = "MemTotal:        {} kB\nMemFree:         1 kB\nMemAvailable:    {} kB\n"
V2 = ("memory.max", "memory.current", "inactive_file", "active_file")
V1 = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file", "total_active_file")


def machine(root: Path, whole: int, available: int, groups: str = "") -> Path:
    """Sizes in MiB."""
    (root / "proc" / "self").mkdir(parents=True)
    (root / "proc" / "meminfo").write_text(MEMINFO.format(whole * 1024, available * 1024))
    (root / "proc" / "self" / "cgroup").write_text(groups)
    return root


def group(folder: Path, names: tuple[str, ...], limit: int | str, used: int, cache: int, active: int = 0) -> None:
    """Sizes in MiB, and "max" for no limit."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / names[0]).write_text(f"{limit * MIB if isinstance(limit, int) else limit}\n")
    (folder / names[1]).write_text(f"{used * MIB}\n")
    (folder / "memory.stat").write_text(
        f"anon 5\n{names[2]} {cache * MIB}\n{names[3]} {active * MIB}\nother_{names[3]} 7\n"
    )


def test_a_part_of_what_is_available_is_left_to_the_host(tmp_path: Path) -> None:
    assert host_memory.room(machine(tmp_path / "small", 1600, 1000)) == 900 * MIB
    assert host_memory.room(machine(tmp_path / "large", 2**20, 2**19)) == (2**19 - 1024) * MIB, "but never over 1 GiB"
    assert host_memory.room(machine(tmp_path / "full", 1600, 50)) == 0
    assert host_memory.room(tmp_path / "without") is None


def test_the_simulated_device_leaves_the_host_the_same() -> None:
    source = Path(__file__).resolve().parents[2] / "simulator" / "torch" / "csrc" / "host_memory.cpp"
    constants = dict(re.findall(r"^constexpr int64_t (k\w*Reserve) = (.*);", source.read_text(), re.MULTILINE))
    assert constants == {"kReserve": str(host_memory.RESERVE), "kMostReserve": "1 << 30"}
    assert host_memory.MOST_RESERVE == 1 << 30


@pytest.mark.parametrize(
    ("names", "line", "folder", "outer"),
    [
        (V2, "0::/job/step\n", "sys/fs/cgroup/job/step", "sys/fs/cgroup/job"),
        (V2, "0::/\n", "sys/fs/cgroup", "sys/fs/cgroup"),
        (V1, "5:cpu:/a\n4:memory:/job\n", "sys/fs/cgroup/memory/job", "sys/fs/cgroup/memory"),
        (V1, "4:hugetlb,memory:/outside/of/here\n", "sys/fs/cgroup/memory", "sys/fs/cgroup/memory"),
    ],
    ids=["version 2", "version 2 in a container", "version 1", "version 1 in a container"],
)
def test_a_container_has_what_its_groups_leave(
    names: tuple[str, ...], line: str, folder: str, outer: str, tmp_path: Path
) -> None:
    root = machine(tmp_path, 16000, 12000, line)
    group(root / folder, names, "max", 900, 0)
    group(root / outer, names, 1600, 1300, 400)
    assert host_memory.room(root) == (300 + 400 - 100) * MIB, "page cache goes where memory is wanted"
    group(root / outer, names, 1600, 1300, 300, 100)
    assert host_memory.room(root) == (300 + 400 - 100) * MIB, "also of files that were read twice"
    group(root / folder, names, 800, 700, 0)
    assert host_memory.room(root) == (100 - 50) * MIB
    (root / folder / "memory.stat").unlink()
    assert host_memory.room(root) == (100 - 50) * MIB, "a limit counts where nothing is said of the cache"


def test_beyond_the_high_mark_of_a_group_nothing_is_taken(tmp_path: Path) -> None:
    root = machine(tmp_path, 16000, 12000, "0::/job\n")
    group(root / "sys/fs/cgroup/job", V2, "max", 900, 0, 100)
    (root / "sys/fs/cgroup/job/memory.high").write_text(f"{1600 * MIB}\n")
    assert host_memory.room(root) == (1600 - 800 - 100) * MIB
    group(root / "sys/fs/cgroup/job", V2, 1000, 900, 1200)
    assert host_memory.room(root) == (1000 - 62.5) * MIB, "and no more than the limit is left"


def test_the_simulated_device_reads_the_same_files_of_a_group() -> None:
    source = Path(__file__).resolve().parents[2] / "simulator" / "torch" / "csrc" / "host_memory.cpp"
    text = source.read_text()
    assert re.findall(r'"(memory\.\w+)"', text) == ["memory.max", "memory.high", "memory.current", *V1[:2]]
    assert re.findall(r'prefix \+ "(\w+)"', text) == list(V2[2:])
    assert [f"total_{name}" for name in V2[2:]] == list(V1[2:]) and '"total_"' in text


class Card:
    """A device with so many free bytes."""

    def __init__(self, free: int) -> None:
        self.free = free

    def free_memory(self) -> int:
        return self.free

    def torch_device(self) -> Any:
        return SimpleNamespace(type="hpu")


@pytest.mark.parametrize(("simulated", "sharing", "left"), [(True, 1, 600), (True, 2, 300), (False, 2, 800)])
def test_processes_share_the_host_where_cards_are_made_of_it(
    simulated: bool, sharing: int, left: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(devices, "identity", lambda device: {"simulated": simulated})
    monkeypatch.setattr(host_memory, "room", lambda: 600)
    card: Any = Card(800)
    assert room.of(card, sharing) == room.Room(left, by_host=simulated)
    assert room.least([(left, simulated), (100, False)]) == room.Room(100)
    monkeypatch.setattr(host_memory, "room", lambda: None)
    assert room.of(card, sharing) == room.Room(800)


def test_what_is_found_says_that_the_host_ended_first() -> None:
    def fails() -> FoundBatch:
        raise ConfigError("A step with one sample does not fit.")

    left = "3 MiB that the host has left for each simulated card"
    assert room.Room(3 * MIB).explain(lambda: FoundBatch(4, "tried")).how == "tried"
    assert room.Room(3 * MIB, True).explain(lambda: FoundBatch(4, "tried")).how == f"tried, within the {left}"
    with pytest.raises(ConfigError, match=rf"does not fit\. The limit is a share of the {left}: free some"):
        room.Room(3 * MIB, True).explain(fails)
