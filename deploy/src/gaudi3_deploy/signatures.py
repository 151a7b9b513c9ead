"""Files that are signed by an SSH key: the signature lies beside the file."""

from __future__ import annotations

from pathlib import Path

from gaudi3_deploy import given_file
from gaudi3_deploy.collection._files import write_file
from gaudi3_deploy.collection._refusal import Refusal
from gaudi3_deploy.collection._ssh_keygen import SIGNATURE, no_key, no_signers, sign, signer_of
from gaudi3_deploy.errors import DeployError, UsageError


def beside(path: Path) -> Path:
    """Where the signature of a file lies."""
    return path.with_name(path.name + SIGNATURE)


def sign_file(path: Path, text: str, key: Path, namespace: str) -> Path:
    """Write the signature of a file that has this text; where it lies.

    Raises:
        UsageError: There is no key.
        DeployError: ssh-keygen is missing, or does not sign with this key.
    """
    if missing := no_key(str(key)):
        raise UsageError(missing)
    try:
        write_file(str(beside(path)), sign(text, str(key), namespace))
    except Refusal as refusal:
        raise DeployError(str(refusal)) from None
    return beside(path)


def signer_of_file(path: Path, text: str, namespace: str, signers: Path, command: str, name: str = "") -> str:
    """Who of an allowed_signers file has signed a file that has this text.

    Args:
        path: The file.
        text: What it has.
        namespace: What the signature has to be for.
        signers: File of allowed signers.
        command: How such a file is signed.
        name: The one of them who has to have signed it; empty: anyone.

    Raises:
        UsageError: There is no file of allowed signers.
        DeployError: The file is not signed, was changed since, or was signed by somebody else.
    """
    if missing := no_signers(str(signers)):
        raise UsageError(missing)
    try:
        signature = given_file.read_bytes(beside(path)).decode("ascii", "replace")
    except OSError:
        raise DeployError(f"{path} has no signature {beside(path)}: let its owner sign it with `{command}`.") from None
    try:
        return signer_of(str(path), text, signature, namespace, str(signers), name)
    except Refusal as refusal:
        raise DeployError(str(refusal)) from None
