"""The lock of a mirror signed by an SSH key, as ssh-keygen signs files: `lock.json.sig` beside it."""

from __future__ import annotations

from pathlib import Path

from gaudi3_deploy import given_file
from gaudi3_deploy.collection._mirror import LOCK
from gaudi3_deploy.errors import UsageError
from gaudi3_deploy.mirror.sealed import read
from gaudi3_deploy.signatures import sign_file, signer_of_file

#: What a signature is for, so that none that the same key has made for something else counts here.
NAMESPACE = "gaudi3-mirror"


def sign(folder: Path, key: Path) -> Path:
    """Sign the lock of a mirror; the signature's file.

    Raises:
        UsageError: There is no lock, or no key.
        DeployError: ssh-keygen is missing, or does not sign with this key.
    """
    if read(folder / LOCK) is None:
        raise _no_lock(folder)
    return sign_file(folder / LOCK, _text(folder), key, NAMESPACE)


def signer_of(folder: Path, signers: Path) -> str:
    """Who of an allowed_signers file has signed the lock of a mirror as it is now.

    Raises:
        UsageError: There is no such file, or no lock.
        DeployError: The lock is not signed, was changed since, or was signed by somebody else.
    """
    return signer_of_file(folder / LOCK, _text(folder), NAMESPACE, signers, "gaudi3-deploy mirror sign")


def _text(folder: Path) -> str:
    try:
        return given_file.read_bytes(folder / LOCK).decode("utf-8", "surrogateescape")
    except OSError:
        raise _no_lock(folder) from None


def _no_lock(folder: Path) -> UsageError:
    return UsageError(f"{folder} has no {LOCK}: `gaudi3-deploy mirror fill` writes one when a mirror is whole.")
