"""Settings of the kernel that each node has for itself."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import gaudi3_simulator

_SHADOW = Path(gaudi3_simulator.__file__).parent / "image/node-shadow"
# Mounts and a name of its own.
_OWN = ("unshare", "--mount", "--uts", "sh", "-euc")


def _in_a_node(script: str) -> list[str]:
    done = subprocess.run(
        [*_OWN, f"mount -t tmpfs none /run\n{_SHADOW}\n{script}"], capture_output=True, text=True, check=False
    )
    if "not permitted" in done.stderr or "denied" in done.stderr:
        pytest.skip(done.stderr.strip())
    assert not done.returncode, done.stderr
    return done.stdout.split()


def test_what_a_container_has_of_its_own_stays_the_kernels() -> None:
    name, *drawn = _in_a_node(
        "echo other > /proc/sys/kernel/hostname\nuname -n\n"
        "cat /proc/sys/kernel/random/uuid /proc/sys/kernel/random/uuid"
    )
    assert name == "other"
    assert len(set(drawn)) == 2


@pytest.mark.parametrize("setting", ["vm/swappiness", "kernel/pid_max", "kernel/random/boot_id", "fs/file-max"])
def test_what_all_containers_share_is_written_for_the_node_alone(setting: str) -> None:
    file = Path("/proc/sys") / setting
    before = file.read_text()
    assert _in_a_node(f"echo 4242 > {file}\ncat {file}") == ["4242"]
    assert file.read_text() == before
