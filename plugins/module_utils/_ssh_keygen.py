# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Signatures by SSH keys: `ssh-keygen -Y` is called here, and what is said where it does not sign or verify.

It asks nobody: a key with a passphrase signs through the agent that has it. A signature is for one purpose, its
namespace, so that none that the same key has made for something else counts.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from typing import Optional

from ._files import write_file
from ._printable import printable
from ._refusal import Refusal

#: Ending of the signature's file, beside the file that was signed.
SIGNATURE = ".sig"
PROGRAM = "ssh-keygen"
#: Seconds that a call may take; an agent may ask its user.
PATIENCE = 120
_KEY = re.compile(r"SHA256:[A-Za-z0-9+/]{43}")


def no_key(path: str) -> str:
    """What is said of a key that is no file; empty where it is one."""
    if os.path.isfile(path):
        return ""
    return f"{printable(path, 300)} is no file: give an SSH key, or its public half where an agent has it."


def no_signers(path: str) -> str:
    """What is said of allowed signers that are no file; empty where they are one."""
    if os.path.isfile(path):
        return ""
    return f"{printable(path, 300)} is no file: give one of allowed signers, as ssh-keygen(1) has it."


def sign(content: str, key: str, namespace: str) -> str:
    """The signature of a text.

    Args:
        content: The text.
        key: File of a private key, or of a public one whose other half an agent has.
        namespace: What the signature is for.

    Raises:
        Refusal: ssh-keygen is missing, gives no answer, or does not sign with this key.
    """
    missing = no_key(key)
    if missing:
        raise Refusal(missing)
    shown = printable(key, 300)
    try:
        with open(key, "rb"):
            pass
    except OSError as error:
        raise Refusal(f"The key {shown} cannot be read ({error.strerror}): give one of your own.") from None
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "content")
        write_file(path, content, 0o600)
        done = _run(["sign", "-q", "-f", key, "-n", namespace, path])
        if done.returncode == 0:
            with open(path + SIGNATURE, encoding="ascii", errors="replace") as file:
                return file.read()
    if "passphrase" in done.stderr:
        raise Refusal(f"The key {shown} has a passphrase, which nobody is asked for: add it to an agent (ssh-add).")
    if "UNPROTECTED PRIVATE KEY" in done.stderr:
        raise Refusal(f"The key {shown} can be read by others, so {PROGRAM} ignores it: set its mode to 0600.")
    raise Refusal(f"{PROGRAM} does not sign with {shown} ({_reason(done)}): give another key.")


def key_of(content: str, signature: str, namespace: str) -> tuple[str, str]:
    """The fingerprint of the key that signed a text, or else "" and why the signature is none of it.

    Raises:
        Refusal: ssh-keygen is missing, or gives no answer.
    """
    with tempfile.TemporaryDirectory() as folder:
        given = os.path.join(folder, "signature")
        write_file(given, signature)
        done = _run(["check-novalidate", "-n", namespace, "-s", given], content)
    found = _KEY.search(done.stdout)
    return (found.group(), "") if done.returncode == 0 and found else ("", _reason(done))


def changed(what: str, why: str) -> str:
    """What is said of a file whose signature is none of it; ``why`` is of ``key_of``."""
    return (
        f"{printable(what, 300)} is not what {printable(os.path.basename(what), 300)}{SIGNATURE} signs ({why}): it was"
        " changed since, or the signature is for something else."
    )


def signer_of(what: str, content: str, signature: str, namespace: str, signers: str, name: str = "") -> str:
    """Who of the allowed signers has signed a text.

    Args:
        what: The file that the text is of, for sentences.
        content: The text.
        signature: What ``sign`` returned.
        namespace: What the signature has to be for.
        signers: File of allowed signers, as ssh-keygen(1) describes it.
        name: The one of them who has to have signed; empty: anyone.

    Raises:
        Refusal: The text was changed, or was signed by nobody of them, or ssh-keygen is missing or gives no answer.
    """
    missing = no_signers(signers)
    if missing:
        raise Refusal(missing)
    key, why = key_of(content, signature, namespace)
    if not key:
        raise Refusal(changed(what, why))
    with tempfile.TemporaryDirectory() as folder:
        given = os.path.join(folder, "signature")
        write_file(given, signature)
        about = ["-f", signers, "-s", given]
        found: Optional[subprocess.CompletedProcess[str]] = None
        if not name:
            found = _run(["find-principals", *about])
            name = next(iter(found.stdout.splitlines()), "") if found.returncode == 0 else ""
        if name:
            found = _run(["verify", "-n", namespace, "-I", name, *about], content)
            if found.returncode == 0:
                return printable(name)
    whose = f"{printable(name, 100)} in {printable(signers, 300)}" if name else f"anyone in {printable(signers, 300)}"
    reason = _reason(found) if found else ""
    raise Refusal(
        f"{printable(what, 300)} is signed by the key {key}, which is not of {whose} ({reason}): have it signed by one"
        " who may, or add the key there if you trust it."
    )


def _run(arguments: list[str], content: str = "") -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "LC_ALL": "C", "SSH_ASKPASS_REQUIRE": "never"}
    try:
        return subprocess.run(
            [PROGRAM, "-Y", *arguments], input=content, capture_output=True, encoding="utf-8",
            errors="surrogateescape", timeout=PATIENCE, env=environment, start_new_session=True, check=False,
        )  # fmt: skip
    except FileNotFoundError:
        raise Refusal(f"{PROGRAM} is not on this machine: install OpenSSH's client, 8.2 or newer.") from None
    except subprocess.TimeoutExpired:
        raise Refusal(f"{PROGRAM} gave no answer in {PATIENCE} seconds: give a key that needs nobody.") from None


def _reason(done: subprocess.CompletedProcess[str]) -> str:
    """The first line that it said, which names the cause; those after it say that it failed."""
    lines = [line.strip() for line in (done.stderr + done.stdout).splitlines() if line.strip()]
    return printable(lines[0], 200).rstrip(".") if lines else "no reason"
