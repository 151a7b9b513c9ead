"""What a login shell on a node knows of the vendor's runtime."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from gaudi3_simulator.vendor.catalogue import packages

# The vendor's page "Driver Installation" and the Gaudi 2E manual for 1.23.0.
VARIABLES = {
    "DATA_LOADER_AEON_LIB_PATH": "/usr/lib/habanalabs/libaeon.so",
    "GC_KERNEL_PATH": "/usr/lib/habanalabs/libtpc_kernels.so",
    "HABANALABS_HLTHUNK_TESTS_BIN_PATH": "/opt/habanalabs/src/hl-thunk/tests/",
    "HABANA_LOGS": "/var/log/habana_logs/",
    "HABANA_PLUGINS_LIB_PATH": "/usr/lib/habanatools/habana_plugins",
    "HABANA_SCAL_BIN_PATH": "/opt/habanalabs/engines_fw",
    "RDMA_CORE_LIB": "/opt/habanalabs/rdma-core/src/build/lib",
    "RDMA_CORE_ROOT": "/opt/habanalabs/rdma-core/src",
    "__python_cmd": "python3",
}


@pytest.mark.parametrize("release", ["1.22.0-740", "1.23.0-695", "1.24.0-1007"])
def test_the_profile_files_set_the_nine_variables(tmp_path: Path, release: str) -> None:
    profile = {
        path: file.text
        for package in packages(release)
        for path, file in package.files.items()
        if path.startswith("/etc/profile.d/")
    }
    assert sorted(profile) == ["/etc/profile.d/habanalabs-rdma-core.sh", "/etc/profile.d/habanalabs.sh"]
    for path, content in profile.items():
        (tmp_path / Path(path).name).write_text(content)
    shell = "for file in habanalabs*.sh; do . ./$file; done; env"
    result = subprocess.run(
        ["sh", "-c", shell], cwd=tmp_path, env={"PATH": "/usr/bin:/bin"}, capture_output=True, text=True, check=True
    )
    found = dict(line.split("=", 1) for line in result.stdout.splitlines())
    for name in ("PATH", "PWD", "OLDPWD", "SHLVL", "_"):
        found.pop(name, None)
    assert found == VARIABLES
