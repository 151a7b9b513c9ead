"""Files of an upgrade: reports of nodes, a plan, and the signature beside it."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

from gaudi3_deploy.collection._files import write_file
from gaudi3_deploy.collection._printable import printable
from gaudi3_deploy.collection._refusal import Refusal
from gaudi3_deploy.collection._upgrade import planned, signature
from gaudi3_deploy.collection._upgrade.state import NodeState, of_report
from gaudi3_deploy.errors import DeployError, UsageError
from gaudi3_deploy.messages import reason

#: Above the 900 kB that a doctor's report may have.
_MOST_BYTES = 4 << 20


def states(folder: Path) -> dict[str, NodeState]:
    """Each node by its report NODE.json. Raises UsageError where one cannot be read, or there is none."""
    if not folder.is_dir():
        raise UsageError(f"There is no folder {folder}: give the one that gaudi3.scale.doctor wrote its reports to.")
    found = {path.stem: _state(path) for path in sorted(folder.glob("[!.]*.json"))}
    if not found:
        raise UsageError(f"{folder} has no report NODE.json: have gaudi3.scale.doctor write one of each node.")
    return found


def _state(path: Path) -> NodeState:
    try:
        content = path.read_bytes()
        report = json.loads(content) if len(content) <= _MOST_BYTES else None
        return of_report(report if isinstance(report, dict) else {})
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(f"The report {path} cannot be read ({reason(error)}): make it again.") from None
    except Refusal as refusal:
        raise UsageError(f"The report {path} cannot be read. {refusal}") from None


def read_plan(path: Path) -> tuple[dict[str, Any], str]:
    """A plan and its text. Raises UsageError where there is none."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise UsageError(
            f"The plan {path} cannot be read ({reason(error)}): `gaudi3-deploy upgrade plan` writes one."
        ) from None
    try:
        return planned.read(text), text
    except Refusal as refusal:
        raise UsageError(f"{path}: {refusal}") from None


def sign(path: Path, text: str, key: Path) -> Path:
    """Sign a plan, beside which its signature lies then. Raises DeployError where ssh-keygen does not."""
    done = _ssh_keygen(signature.sign_command(str(key)), text)
    if done.returncode != 0 or not done.stdout.startswith("-----BEGIN SSH SIGNATURE-----"):
        said = printable((done.stderr or done.stdout).strip() or f"exit code {done.returncode}", 200).rstrip(".")
        raise DeployError(f"The plan is not signed, as ssh-keygen does not sign with {key} ({said}).")
    place = path.with_name(path.name + signature.ENDING)
    write_file(str(place), done.stdout)
    return place


def verify(path: Path, text: str, allowed_signers: Path, signer: str) -> None:
    """Raises DeployError where the plan is not signed by the signer."""
    place = path.with_name(path.name + signature.ENDING)
    if not allowed_signers.is_file():
        raise UsageError(f"There is no file {allowed_signers}: give one of allowed signers, as ssh-keygen(1) has it.")
    if not place.is_file():
        raise DeployError(f"The plan has no signature {place}: sign it with `gaudi3-deploy upgrade plan --sign KEY`.")
    done = _ssh_keygen(signature.verify_command(str(allowed_signers), signer, str(place)), text)
    try:
        signature.check(done.returncode, done.stderr or done.stdout, signer)
    except Refusal as refusal:
        raise DeployError(str(refusal)) from None


def _ssh_keygen(command: list[str], text: str) -> subprocess.CompletedProcess[str]:
    program = shutil.which(command[0])
    if program is None:
        raise UsageError("The command 'ssh-keygen' is not on this machine: install OpenSSH's client, 8.2 or newer.")
    return subprocess.run([program, *command[1:]], input=text, capture_output=True, text=True, check=False)
