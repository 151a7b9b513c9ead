"""Files of an upgrade: reports of nodes, a plan, and the signature beside it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gaudi3_deploy import given_file
from gaudi3_deploy.collection._printable import printable
from gaudi3_deploy.collection._refusal import Refusal
from gaudi3_deploy.collection._upgrade import planned
from gaudi3_deploy.collection._upgrade.state import NodeState, held_of, of_report
from gaudi3_deploy.errors import UsageError
from gaudi3_deploy.messages import reason
from gaudi3_deploy.signatures import sign_file, signer_of_file

#: Above the 900 kB that a doctor's report may have.
_MOST_BYTES = 4 << 20


@dataclass(frozen=True)
class Reported:
    """What a report says of its node."""

    state: NodeState
    held: tuple[str, ...]
    """Packages that it holds back."""
    is_simulated: bool


def states(folder: Path) -> dict[str, NodeState]:
    """Each node by its report NODE.json. Raises UsageError where one cannot be read, or there is none."""
    return {name: each.state for name, each in reports(folder).items()}


def reports(folder: Path) -> dict[str, Reported]:
    """What each report NODE.json says. Raises UsageError where one cannot be read, or there is none."""
    if not folder.is_dir():
        raise UsageError(f"There is no folder {folder}: give the one that gaudi3.scale.doctor wrote its reports to.")
    paths = sorted(folder.glob("[!.]*.json"))
    odd = next((path for path in paths if not planned.is_name(path.stem)), None)
    if odd is not None:
        raise UsageError(
            f"{printable(odd, 300)} is named after no node: name it NODE.json, as gaudi3.scale.doctor does, or move it "
            "away."
        )
    found = {path.stem: _report(path) for path in paths}
    if not found:
        raise UsageError(f"{folder} has no report NODE.json: have gaudi3.scale.doctor write one of each node.")
    return found


def _report(path: Path) -> Reported:
    try:
        content = given_file.read_bytes(path, _MOST_BYTES + 1)
        report = json.loads(content) if len(content) <= _MOST_BYTES else None
        report = report if isinstance(report, dict) else {}
        return Reported(of_report(report), held_of(report), report.get("simulated") is not False)
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(f"The report {path} cannot be read ({reason(error)}): make it again.") from None
    except Refusal as refusal:
        raise UsageError(f"The report {path} cannot be read. {refusal}") from None


def records(folder: Path) -> list[dict[str, Any]]:
    """Records of earlier upgrades below a folder; what is none is left out. Raises UsageError without the folder."""
    if not folder.is_dir():
        raise UsageError(f"There is no folder {folder}: give the upgrade_directory of earlier upgrades.")
    found = []
    for path in sorted(folder.glob("*/[!.]*.json")):
        try:
            content = given_file.read_bytes(path, _MOST_BYTES + 1)
            record = json.loads(content) if len(content) <= _MOST_BYTES else None
        except (OSError, ValueError, RecursionError):
            continue
        if isinstance(record, dict):
            found.append(record)
    return found


def read_plan(path: Path) -> tuple[dict[str, Any], str]:
    """A plan and its text. Raises UsageError where there is none."""
    try:
        text = given_file.read_text(path)
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
    return sign_file(path, text, key, planned.NAMESPACE)


def verify(path: Path, text: str, allowed_signers: Path, signer: str) -> None:
    """Raises DeployError where the plan is not signed by the signer."""
    signer_of_file(path, text, planned.NAMESPACE, allowed_signers, "gaudi3-deploy upgrade plan --sign KEY", signer)
