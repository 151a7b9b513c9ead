"""Verdicts as documents that other programs read: OpenVEX 0.2.0 and CycloneDX 1.6."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Sequence
from typing import Any

from gaudi3_deploy.errors import DeployError
from gaudi3_deploy.holes.ledger import AFFECTED, NOT_AFFECTED, UNDECIDED, Verdict

_AUTHOR = "gaudi3-deploy mirror holes"
_STATES = {AFFECTED: "exploitable", NOT_AFFECTED: "not_affected", UNDECIDED: "in_triage"}
#: CycloneDX has other words for the same reasons.
_REASONS = {
    "component_not_present": "code_not_present",
    "vulnerable_code_not_present": "code_not_present",
    "vulnerable_code_not_in_execute_path": "code_not_reachable",
    "vulnerable_code_cannot_be_controlled_by_adversary": "protected_at_runtime",
    "inline_mitigations_already_exist": "protected_by_mitigating_control",
}


def openvex(verdicts: Sequence[Verdict], release: str, time: str) -> str:
    """As OpenVEX, about the mirror as the product and its packages as subcomponents.

    Raises:
        DeployError: There is nothing to state, which OpenVEX does not allow.
    """
    if not verdicts:
        raise DeployError(
            "No advisory is about a package of the mirror, and OpenVEX has no document without statements."
        )
    statements = []
    for each in verdicts:
        product = {"@id": f"pkg:generic/gaudi3-mirror@{release}", "subcomponents": [{"@id": each.package.purl}]}
        statement: dict[str, Any] = {
            "vulnerability": {"name": each.advisory.id, "aliases": sorted(each.advisory.names - {each.advisory.id})},
            "products": [product],
            "status": each.status,
            "status_notes": _notes(each),
        }
        if each.status == NOT_AFFECTED:
            statement["justification"] = each.justification
        if each.status == AFFECTED:
            statement["action_statement"] = each.action
        statements.append(statement)
    document = {"author": _AUTHOR, "timestamp": time, "version": 1, "statements": statements}
    name = f"https://openvex.dev/docs/gaudi3-mirror-{_digest(document)}"
    return _text({"@context": "https://openvex.dev/ns/v0.2.0", "@id": name, **document})


def cyclonedx(verdicts: Sequence[Verdict], release: str, time: str) -> str:
    """As CycloneDX: the packages that advisories are about, and the analysis of each."""
    packages = sorted({each.package for each in verdicts})
    found = []
    for each in verdicts:
        analysis: dict[str, Any] = {"state": _STATES[each.status], "detail": _notes(each)}
        if each.status == NOT_AFFECTED:
            analysis["justification"] = _REASONS[each.justification]
        if each.justification == "inline_mitigations_already_exist":
            analysis["response"] = ["workaround_available"]
        if each.status == AFFECTED:
            analysis["response"] = ["update"]
        source = {"name": "OSV", "url": f"https://osv.dev/vulnerability/{each.advisory.id}"}
        others = sorted(each.advisory.names - {each.advisory.id})
        found.append(
            {
                "id": each.advisory.id,
                "source": source,
                "references": [{"id": name, "source": {"name": "OSV"}} for name in others],
                "description": each.advisory.summary,
                "recommendation": each.action,
                "analysis": analysis,
                "affects": [{"ref": each.package.purl}],
            }
        )
    about = {"type": "application", "bom-ref": "mirror", "name": "gaudi3-mirror", "version": release}
    document = {
        "version": 1,
        "metadata": {"timestamp": time, "component": about},
        "components": [
            {"type": "library", "bom-ref": each.purl, "name": each.name, "version": each.version, "purl": each.purl}
            for each in packages
        ],
        "vulnerabilities": found,
    }
    serial = uuid.UUID(_digest(document)[:32], version=4).urn
    return _text({"bomFormat": "CycloneDX", "specVersion": "1.6", "serialNumber": serial, **document})


def _notes(verdict: Verdict) -> str:
    return f"{verdict.statement} ({verdict.source})" if verdict.source else verdict.statement


def _digest(document: Any) -> str:
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()


def _text(document: Any) -> str:
    return json.dumps(document, indent=2) + "\n"
