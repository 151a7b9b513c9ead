"""The lock of a mirror signed by an SSH key, as ssh-keygen signs files: `lock.json.sig` beside it."""

from __future__ import annotations

import subprocess
from pathlib import Path

from gaudi3_deploy.collection._mirror import LOCK
from gaudi3_deploy.collection._printable import printable
from gaudi3_deploy.errors import DeployError, UsageError
from gaudi3_deploy.mirror.sealed import SIGNATURE, read, write

#: What a signature is for, so that none that the same key has made for something else counts here.
NAMESPACE = "gaudi3-mirror"


def sign(folder: Path, key: Path) -> Path:
    """Sign the lock of a mirror; the signature's file.

    Raises:
        UsageError: There is no lock, or no key.
        DeployError: ssh-keygen is missing, or does not sign with this key.
    """
    if read(folder / LOCK) is None:
        raise UsageError(f"{folder} has no {LOCK}: `gaudi3-deploy mirror fill` writes one when a mirror is whole.")
    if not key.is_file():
        raise UsageError(
            f"{key} is no file: give --key the SSH key that signs, or its public half where an agent has it."
        )
    done = _ssh_keygen(["-Y", "sign", "-n", NAMESPACE, "-f", str(key)], (folder / LOCK).read_bytes())
    if done.returncode or not done.stdout.startswith(b"-----BEGIN SSH SIGNATURE-----"):
        raise DeployError(f"ssh-keygen does not sign with {key} ({_last_line(done.stderr)}): give another --key.")
    write(folder / SIGNATURE, done.stdout.decode())
    return folder / SIGNATURE


def signer_of(folder: Path, signers: Path) -> str:
    """Who of an allowed_signers file has signed the lock of a mirror as it is now.

    Raises:
        UsageError: There is no such file.
        DeployError: The lock is not signed, was changed since, or was signed by somebody else.
    """
    if not signers.is_file():
        raise UsageError(f"{signers} is no file: give --signers a file of ssh-keygen's form ALLOWED SIGNERS.")
    signature = folder / SIGNATURE
    if not signature.is_file():
        raise DeployError(f"{folder} has no {SIGNATURE}: let its owner sign it with `gaudi3-deploy mirror sign`.")
    about = ["-f", str(signers), "-s", str(signature)]
    found = _ssh_keygen(["-Y", "find-principals", *about], b"")
    names = found.stdout.decode(errors="replace").splitlines()
    if found.returncode or not names:
        raise DeployError(
            f"{signature} is by nobody in {signers} ({_last_line(found.stderr)}): do not install from it."
        )
    content = (folder / LOCK).read_bytes()
    done = _ssh_keygen(["-Y", "verify", "-n", NAMESPACE, "-I", names[0], *about], content)
    if done.returncode:
        why = _last_line(done.stderr or done.stdout)
        raise DeployError(
            f"{folder / LOCK} is not what {printable(names[0])} has signed ({why}): it was changed since, or the "
            "signature is for something else. Do not install from it."
        )
    return printable(names[0])


def _ssh_keygen(arguments: list[str], content: bytes) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(["ssh-keygen", *arguments], input=content, capture_output=True, check=False)
    except FileNotFoundError as error:
        raise DeployError(
            "ssh-keygen is missing, which signs and verifies: install the package openssh-client."
        ) from error


def _last_line(said: bytes) -> str:
    lines = said.decode(errors="replace").split("\n")
    return printable(next((line.strip() for line in reversed(lines) if line.strip()), "no reason"), 200)
