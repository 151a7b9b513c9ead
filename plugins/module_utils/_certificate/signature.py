# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Signatures of certificates by ssh-keygen: the calls, and what they end with.

The owner names a key of SSH. Whoever verifies needs its public half from the owner, by a way that is trusted.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from typing import Optional

from .._files import write_file
from .._printable import printable
from .._refusal import Refusal

NAMESPACE = "gaudi3-certificate"
SIGNATURE = ".sig"
PROGRAM = "ssh-keygen"
#: Seconds that a signature may take; an agent may ask its user.
PATIENCE = 120
_IDENTITY = "owner"
_PUBLIC = re.compile(r"(?:ssh-|ecdsa-|sk-)[A-Za-z0-9@.-]{1,60} [A-Za-z0-9+/=]{16,16384}(?: [^\n]*)?\n?")


def sign(text: str, key: str) -> str:
    """The signature of a text by the key in a file (or by its public half, where an agent has the other)."""
    if not os.path.isfile(key):
        raise Refusal(
            f"The key {printable(key, 300)} is not there: give a file of ssh-keygen, such as ~/.ssh/id_ed25519."
        )
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "certificate")
        write_file(path, text, 0o600)
        done = _run(["-Y", "sign", "-q", "-f", key, "-n", NAMESPACE, path])
        if done.returncode != 0:
            raise Refusal(
                f"{PROGRAM} does not sign with {printable(key, 300)} ({_said(done)}): give a key that is readable, and"
                " that has no passphrase or is in the agent."
            )
        with open(path + SIGNATURE, encoding="ascii", errors="replace") as file:
            return file.read()


def problem(text: str, signature: Optional[str], public: str) -> str:
    """Why the signature is not one of this public key over this text, for a sentence; empty where it is."""
    if signature is None:
        return "there is no signature"
    if _PUBLIC.fullmatch(public) is None:
        return "the key that was given is no public key of SSH"
    with tempfile.TemporaryDirectory() as folder:
        signers, given = (os.path.join(folder, name) for name in ("signers", "signature"))
        write_file(signers, f'{_IDENTITY} namespaces="{NAMESPACE}" {public.strip()}\n')
        write_file(given, signature)
        done = _run(["-Y", "verify", "-f", signers, "-I", _IDENTITY, "-n", NAMESPACE, "-s", given], text)
        return "" if done.returncode == 0 else f"the signature is not of this key over this file ({_said(done)})"


def signer(text: str, signature: str) -> str:
    """The fingerprint of the key that signed a text; empty where the signature is of another text or none."""
    with tempfile.TemporaryDirectory() as folder:
        given = os.path.join(folder, "signature")
        write_file(given, signature)
        done = _run(["-Y", "check-novalidate", "-n", NAMESPACE, "-s", given], text)
    found = re.search(r"SHA256:[A-Za-z0-9+/]{43}", done.stdout)
    return found.group() if done.returncode == 0 and found else ""


def _run(arguments: list[str], text: str = "") -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "LC_ALL": "C", "SSH_ASKPASS_REQUIRE": "never"}
    try:
        return subprocess.run(
            [PROGRAM, *arguments], input=text, capture_output=True, encoding="utf-8", errors="surrogateescape",
            timeout=PATIENCE, env=environment, start_new_session=True, check=False,
        )  # fmt: skip
    except FileNotFoundError:
        raise Refusal(f"{PROGRAM} is not on this machine: install openssh-client.") from None
    except subprocess.TimeoutExpired:
        raise Refusal(f"{PROGRAM} gave no answer in {PATIENCE} seconds: give a key that needs nobody.") from None


def _said(done: subprocess.CompletedProcess[str]) -> str:
    lines = [line.strip() for line in (done.stderr + done.stdout).splitlines() if line.strip()]
    return printable(lines[0], 200) if lines else f"exit code {done.returncode}"
