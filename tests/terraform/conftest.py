"""The Terraform tree with the real terraform, and AWS played by moto on loopback."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MIRRORS = ("~/.terraform.d/plugins", "/usr/local/share/terraform/plugins", "/usr/share/terraform/plugins")


def plugins() -> Path | None:
    """A folder of providers: where Terraform itself looks, or one that holds a `registry.terraform.io`."""
    for place in MIRRORS:
        if (Path(place).expanduser() / "registry.terraform.io").is_dir():
            return Path(place).expanduser()
    for root in ("/opt", "/usr/local", "/usr/share", "/var/lib"):
        for depth in ("*", "*/*", "*/*/*"):
            for found in Path(root).glob(f"{depth}/registry.terraform.io"):
                return found.parent
    return None


class Cluster:
    """gaudi3-deploy on a copy of the tree."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self.folder = folder
        self.environment = environment
        shutil.copytree(ROOT / "terraform", folder / "terraform")

    def run(self, *arguments: str, code: int = 0) -> str:
        """Run the command to its end; what it said."""
        result = subprocess.run(
            ["gaudi3-deploy", *arguments],
            cwd=self.folder,
            env=self.environment,
            text=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=420,
            check=False,
        )
        assert result.returncode == code, result.stdout
        return result.stdout


@pytest.fixture(scope="session")
def base() -> dict[str, str]:
    """Environment without a reader's own settings of Terraform and AWS."""
    if shutil.which("terraform") is None:
        pytest.skip("terraform is not on this machine: the Terraform tree is not tested")
    kept = {k: v for k, v in os.environ.items() if k != "TF_CLI_CONFIG_FILE" and not k.startswith("AWS_")}
    kept |= {"NO_COLOR": "1", "TERM": "dumb", "COLUMNS": "300", "CHECKPOINT_DISABLE": "1"}
    mirror = plugins()
    if mirror is not None:  # otherwise terraform fetches the provider
        kept["TF_CLI_ARGS_init"] = f"-plugin-dir={mirror}"
    return kept


@pytest.fixture
def onprem(tmp_path: Path, base: dict[str, str]) -> Cluster:
    """Machines that are there already."""
    return Cluster(tmp_path, base)


@pytest.fixture
def aws(tmp_path: Path, base: dict[str, str]) -> Iterator[Cluster]:
    """An empty account."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    log = (tmp_path / "moto.log").open("w")
    server = subprocess.Popen(
        [sys.executable, str(ROOT / "tests/terraform/support/moto_server.py"), "-H", "127.0.0.1", "-p", str(port)],
        env=base,
        stdout=log,
        stderr=subprocess.STDOUT,
    )
    url = f"http://127.0.0.1:{port}"
    try:
        deadline = time.monotonic() + 60
        while True:
            try:
                urllib.request.urlopen(f"{url}/moto-api/", timeout=5)
                break
            except OSError:
                assert server.poll() is None and time.monotonic() < deadline, (tmp_path / "moto.log").read_text()
                time.sleep(0.2)
        environment = {
            "AWS_ENDPOINT_URL": url,
            "AWS_ACCESS_KEY_ID": "testing",
            "AWS_SECRET_ACCESS_KEY": "testing",
            "AWS_REGION": "us-east-1",
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true",
        }
        yield Cluster(tmp_path, {**base, **environment})
    finally:
        server.terminate()
        server.wait(timeout=30)
        log.close()
