# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Signatures of plans by SSH keys: ssh-keygen makes and verifies them, under a namespace of their own.

A signature of another namespace, such as one of a commit, is none of a plan.
"""

from __future__ import annotations

from .._printable import printable
from .._refusal import Refusal

NAMESPACE = "gaudi3-upgrade"
#: Ending of the file beside the plan.
ENDING = ".sig"


def sign_command(key: str) -> list[str]:
    """Signs its input with a private key, or with a public one whose other half an agent has; prints the signature."""
    return ["ssh-keygen", "-Y", "sign", "-q", "-f", key, "-n", NAMESPACE]


def verify_command(allowed_signers: str, signer: str, signature: str) -> list[str]:
    """Verifies its input; ``allowed_signers`` is a file as ssh-keygen(1) describes it, ``signer`` a name in it."""
    return ["ssh-keygen", "-Y", "verify", "-f", allowed_signers, "-I", signer, "-n", NAMESPACE, "-s", signature]


def check(code: int, errors: str, signer: str) -> None:
    """Refuse a plan that ssh-keygen did not verify."""
    if code != 0:
        lines = [line for line in errors.splitlines() if line.strip()]
        why = printable(lines[-1].strip(), 200).rstrip(".") if lines else f"exit code {code}"
        raise Refusal(f"The plan is not signed by {printable(signer, 100)} ({why}): have it signed, or plan again")
