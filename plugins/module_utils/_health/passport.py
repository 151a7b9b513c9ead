# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""A node's passport: what was tested, with which numbers, versions and thresholds. Signed, expiring, void on change.

The signature is HMAC-SHA256 over the canonical JSON text. Who checks a passport needs the key that signed it, so the
key stays on the controller, and so does the check: a node cannot write itself a passport.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from .._refusal import Refusal
from .actions import INFO, WATCH
from .boards import find
from .checks import DEPTHS
from .readings import NodeReading
from .report import Report, read

#: In the folder of the passports.
KEY = "passports.key"
DAY_S = 86400
LIFETIME_DAYS = 7
#: A clock may be this far behind the one that signed.
_SLACK_S = 300
_KEY_BYTES = 32


def file_of(node: str) -> str:
    """Name of a node's passport in the folder."""
    return f"{node}.passport.json"


@dataclass(frozen=True)
class Passport:
    """What a node passed. Times are seconds since 1970, figures are in GB/s."""

    node: str
    issued_at: int
    expires_at: int
    depth: str
    versions: Mapping[str, str]
    checks: tuple[str, ...] = ()
    figures: Mapping[str, float] = field(default_factory=dict)
    thresholds: Mapping[str, float] = field(default_factory=dict)


def versions_of(reading: NodeReading) -> dict[str, str]:
    """What a passport holds for: driver, board, firmware and the cards' serial numbers. Empty without cards."""
    if not reading.cards:
        return {}
    found = {"board": reading.cards[0].name or "unknown", "driver": reading.host.driver_version or "unknown"}
    for image in sorted({name for card in reading.cards for name in card.firmware}):
        found[image] = ", ".join(sorted({card.firmware.get(image, "unknown") for card in reading.cards}))
    found["serials"] = ", ".join(sorted(card.serial or "unknown" for card in reading.cards))
    return found


def issue(
    node: str, health: Report | Mapping[str, Any], checks: tuple[str, ...], depth: str, now: int, lifetime_s: int
) -> Passport:
    """A passport for the result of ``gaudi_health_info``; refused for a node that is not in order or not read whole."""
    try:
        report = health if isinstance(health, Report) else read(health)
    except Refusal as error:
        raise Refusal(
            f"{node} gets no passport, as it could not be read: {str(error).rstrip('.')}; examine it again"
        ) from None
    if bad := fault(report):
        raise Refusal(f"{node} gets no passport: {bad}; repair it and examine it again")
    if why := unread(report):
        raise Refusal(f"{node} gets no passport, as it could not be read whole: {why}; examine it again")
    board = find(report.versions.get("board"))
    thresholds = dict(board.floors_gb_s) if board and report.figures else {}
    return Passport(node, now, now + lifetime_s, depth, dict(report.versions), checks, dict(report.figures), thresholds)


def lacks(answer: Any, mended: Collection[str] = ()) -> str:
    """Why a node would get none once its driver is loaded again, by what ``gaudi_health_info`` returned; else empty.

    ``mended`` are checks whose faults end until then. What is only to be watched, as a card that was slowed down, ends
    with each load of the driver.
    """
    try:
        report = read(answer)
    except Refusal as refusal:
        return str(refusal).rstrip(".")
    stay = tuple(each for each in report.verdicts if each.action != WATCH and each.check not in mended)
    return fault(replace(report, verdicts=stay)) or unread(report)


def fault(report: Report) -> str:
    """What is not in order with a node, of which there may be more; empty where nothing is."""
    return next((each.message for each in report.verdicts if each.severity != INFO), "")


def unread(report: Report) -> str:
    """Why a node was not read whole; empty where it was."""
    if said := [each.message for each in (*report.errors, *report.suspects)]:
        return said[0]
    if not report.whole:
        return "its report is not complete"
    return "" if report.versions else "no card was read"


def sign(passport: Passport, key: bytes) -> str:
    """The passport's file: its content and the signature."""
    content = json.loads(json.dumps(asdict(passport)))
    return json.dumps({"passport": content, "signature": _signature(content, key)}, indent=1, sort_keys=True) + "\n"


def problem(
    text: str | None, key: bytes, node: str, now: int, versions: Mapping[str, str], depth: str = "quick"
) -> str:
    """Why a passport is not valid, for a sentence; empty where it is. ``versions`` are the node's present ones."""
    if text is None:
        return "there is none"
    try:
        whole = json.loads(text)
        content, signature = whole["passport"], str(whole["signature"])
    except (ValueError, KeyError, TypeError):
        return "its file is not a passport"
    if not isinstance(content, dict) or not hmac.compare_digest(signature.encode(), _signature(content, key).encode()):
        return "its signature is not of this key"
    if content["node"] != node:
        return f"it is {content['node']}'s"
    if now < content["issued_at"] - _SLACK_S:
        return "it was issued in the future"
    if now >= content["expires_at"]:
        return f"it expired {(now - content['expires_at']) // 3600} hours ago"
    if DEPTHS.index(content["depth"]) < DEPTHS.index(depth):
        return f"its depth is {content['depth']} where {depth} is asked for"
    changed = sorted(
        name for name in {*content["versions"], *versions} if content["versions"].get(name) != versions.get(name)
    )
    if changed:
        was, present = (each.get(changed[0], "none") for each in (content["versions"], versions))
        return f"{changed[0]} was {was} and is {present}"
    return ""


def read_key(text: str) -> bytes:
    """The key in a file: 64 hex digits."""
    try:
        key = bytes.fromhex(text.strip())
    except ValueError:
        key = b""
    if len(key) != _KEY_BYTES:
        raise Refusal("the key of the passports is not 64 hex digits: remove the file and all passports, and run again")
    return key


def _signature(content: Any, key: bytes) -> str:
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hmac.new(key, canonical.encode(), hashlib.sha256).hexdigest()
