"""The kernel that nodes show instead of this machine's."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gaudi3_simulator import SimulatorError
from gaudi3_simulator.systems import shown_kernel

pytestmark = pytest.mark.usefixtures("own_home")

LONGEST = "6.8.0-" + "x" * 58


@pytest.mark.parametrize("release", ["6.8.0-51-generic", "5.14.0-427.13.1.el9_4.x86_64", LONGEST])
def test_programs_are_told_of_the_nodes_kernel_and_of_the_machine_else(release: str, tmp_path: Path) -> None:
    shown_kernel.check(release)
    files = shown_kernel.files(release)
    assert files["/etc/ld.so.preload"] == f"{shown_kernel.LIBRARY}\n".encode()
    library = tmp_path / "libuname.so"
    library.write_bytes(files[shown_kernel.LIBRARY])
    environment = {**os.environ, "LD_PRELOAD": str(library)}
    said = subprocess.run(["uname", "-r"], env=environment, capture_output=True, text=True, check=True).stdout
    assert said == f"{release}\n"
    script = "import os; print(*os.uname(), sep='|')"
    told = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    here = os.uname()
    assert told.stdout.strip().split("|") == [here.sysname, here.nodename, release, here.version, here.machine]


@pytest.mark.parametrize("release", ["", "noble", "6.8", '6.8.0"', "6.8.0 51", "6.8.0~rc1", f"{LONGEST}x"])
def test_what_is_no_release_is_refused(release: str) -> None:
    with pytest.raises(SimulatorError, match="give a release as 'uname -r' prints it"):
        shown_kernel.check(release)
