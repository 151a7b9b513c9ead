"""Limits of the kernel that many nodes reach, and what is put back."""

from __future__ import annotations

from pathlib import Path

import pytest

from gaudi3_simulator import limits

pytestmark = pytest.mark.usefixtures("own_home")


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    """Files in place of the kernel's, with its usual limits."""
    made = {}
    for name, usual in (("inotify", "128\n"), ("neighbours", "1024\n")):
        made[name] = tmp_path / name
        made[name].write_text(usual)
        monkeypatch.setitem(limits.LIMITS, name, (made[name], limits.LIMITS[name][1]))
    limits.home().mkdir(parents=True, exist_ok=True)
    return made


def test_each_of_many_nodes_reaches_every_other(files: dict[str, Path]) -> None:
    limits.raise_limits(3)
    assert [file.read_text() for file in files.values()] == ["152", "1024\n"]
    limits.raise_limits(33)
    # With its own entry for each of the others, 33 nodes fill more than the usual 1024.
    assert int(files["neighbours"].read_text()) == 2690 > 33 * 32 > 1024
    limits.raise_limits(2)
    assert files["inotify"].read_text() == "392"


def test_what_was_before_the_first_cluster_is_put_back(files: dict[str, Path]) -> None:
    limits.raise_limits(20)
    limits.raise_limits(40)
    limits.restore_limits()
    assert [file.read_text() for file in files.values()] == ["128\n", "1024\n"]
