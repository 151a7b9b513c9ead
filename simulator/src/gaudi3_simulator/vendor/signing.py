"""The key that signs the simulated repository, and signing with it.

gpg runs in a throw-away home with a short path: its agent's socket must fit in 108 characters, and no agent
is left.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from .. import SimulatorError

_USER = "gaudi3.scale simulator (signs simulated packages only)"


@dataclass(frozen=True)
class Signer:
    """A gpg home that holds one secret key."""

    home: Path
    fingerprint: str

    def public_key(self) -> bytes:
        """The armored public key."""
        return _gpg(self.home, "--armor", "--export", self.fingerprint)

    def clear_sign(self, text: bytes) -> bytes:
        """``text`` with its signature around it, as ``InRelease`` has it."""
        return _gpg(self.home, "--local-user", self.fingerprint, "--clear-sign", given=text)

    def detached(self, text: bytes) -> bytes:
        """An armored signature apart, as ``Release.gpg`` has it."""
        return _gpg(self.home, "--local-user", self.fingerprint, "--armor", "--detach-sign", given=text)


@contextmanager
def signer(key: Path, algorithm: str = "ed25519") -> Iterator[Signer]:
    """A signer with the secret key kept in file ``key``, which is made where it does not exist."""
    if shutil.which("gpg") is None:
        raise SimulatorError("The simulated vendor repository has to be signed with gpg: apt-get install gnupg.")
    with tempfile.TemporaryDirectory(prefix="g3s-") as folder:
        home = Path(folder)
        try:
            if key.exists():
                _gpg(home, "--import", str(key))
            else:
                _gpg(home, "--passphrase", "", "--quick-generate-key", _USER, algorithm, "sign", "never")
                key.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                key.touch(mode=0o600)
                key.write_bytes(_gpg(home, "--armor", "--export-secret-keys"))
            yield Signer(home, _fingerprint(home))
        finally:
            subprocess.run(["gpgconf", "--homedir", folder, "--kill", "all"], check=False, capture_output=True)


def _fingerprint(home: Path) -> str:
    listing = _gpg(home, "--with-colons", "--list-keys").decode()
    return next(line.split(":")[9] for line in listing.splitlines() if line.startswith("fpr:"))


def _gpg(home: Path, *arguments: str, given: bytes | None = None) -> bytes:
    command = [
        "gpg",
        "--homedir",
        str(home),
        "--batch",
        "--quiet",
        "--no-tty",
        "--pinentry-mode",
        "loopback",
        *arguments,
    ]
    done = subprocess.run(command, input=given, capture_output=True, check=False)
    if done.returncode:
        raise SimulatorError(f"gpg failed on the simulated vendor repository: {done.stderr.decode().strip()}")
    return done.stdout
