"""The real apt, confined to a folder, against a simulated repository served on the loopback."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gaudi3_simulator import vault
from gaudi3_simulator.vendor import Repository


@contextmanager
def served(folder: Path, storage: str = "", stored_whole: bool = False) -> Iterator[int]:
    """The vault's own server over a folder; gives its port."""
    server = vault.server("127.0.0.1", 0, str(folder), storage, stored_whole)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield int(server.server_address[1])
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class Apt:
    """A node's apt without a node: its lists, caches and an empty record of installed packages."""

    def __init__(self, root: Path, repository: Repository, port: int, suite: str = "jammy") -> None:
        for each in ("etc", "lists/partial", "cache/archives/partial"):
            (root / each).mkdir(parents=True)
        self.root = root
        keyring = root / "keyring.gpg"
        key = (repository.root / "artifactory/api/gpg/key/public").read_bytes()
        keyring.write_bytes(subprocess.run(["gpg", "--dearmor"], input=key, capture_output=True, check=True).stdout)
        (root / "status").touch()
        (root / "source.list").write_text(
            f"deb [signed-by={keyring}] http://127.0.0.1:{port}/artifactory/debian {suite} main\n"
        )

    def __call__(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        options = {
            "Dir::Etc": self.root / "etc",
            "Dir::Etc::SourceList": self.root / "source.list",
            "Dir::Etc::SourceParts": "-",
            "Dir::State": self.root,
            "Dir::State::Lists": self.root / "lists",
            "Dir::State::status": self.root / "status",
            "Dir::Cache": self.root / "cache",
            "APT::Sandbox::User": "root",
            "APT::Architecture": "amd64",
            "APT::Architectures": "amd64",
            "APT::Update::Error-Mode": "any",
            "APT::Install-Recommends": "false",
            "Acquire::http::Proxy": "DIRECT",
            "Acquire::Languages": "none",
            "Debug::NoLocking": "true",
        }
        words = [word for name, value in options.items() for word in ("-o", f"{name}={value}")]
        outside = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
        return subprocess.run(
            ["apt-get", "-y", *words, *arguments],
            env={**outside, "LC_ALL": "C", "APT_CONFIG": os.devnull},
            capture_output=True, text=True, check=False,
        )  # fmt: skip
