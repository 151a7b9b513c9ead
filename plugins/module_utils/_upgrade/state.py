# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""What a node is before its upgrade, from its answers or its doctor's report, and what of it a plan holds it to.

Both sources are data of another machine: what is not known is empty, and what is of another form is refused.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Optional

from .._cards.pci import PRODUCTS
from .._printable import printable
from .._refusal import Refusal
from .._release.node import Node, firmware_release, numbers

#: What a plan is made for. A node that differs in one of these by the time of the upgrade is not the planned one.
#: Jobs and fences come and go, and are judged anew each time.
FACTS = ("system", "kernel", "generation", "cards", "driver", "packages", "preboot")
#: Format of a doctor's report.
_FORMAT = 1
#: Facts whose name is no singular.
_NAMES = {"cards": "number of cards", "preboot": "preboot firmware"}


@dataclass(frozen=True)
class NodeState:
    """One node. ``fence`` says who took it out of service, and is empty where it is in service."""

    versions: Node
    cards: int = 0
    fence: str = ""
    fence_reason: str = ""
    fence_jobs: tuple[str, ...] = ()
    """Jobs that the fence names, which left the node for it."""
    jobs: tuple[str, ...] = ()
    """Jobs that run there, as far as is known."""
    firmware: Optional[Mapping[str, str]] = None
    """Preboot firmware by the card's address, where each card's is known."""

    def facts(self) -> dict[str, Any]:
        """What a plan holds the node to."""
        node = self.versions
        return {
            "system": node.system,
            "kernel": node.kernel,
            "generation": node.generation,
            "cards": self.cards,
            "driver": node.driver,
            "packages": dict(sorted(node.packages.items())),
            "preboot": node.preboot,
        }

    def as_answer(self) -> dict[str, Any]:
        """Plain data of which ``of_answer`` makes the same state."""
        return {
            "versions": self.versions.as_facts(),
            "cards": self.cards,
            "fence": self._fence(),
            "jobs": list(self.jobs),
            **({"firmware": dict(self.firmware)} if self.firmware is not None else {}),
        }

    def _fence(self) -> Optional[dict[str, Any]]:
        if not self.fence:
            return None
        return {"by": self.fence, "reason": self.fence_reason, "jobs": list(self.fence_jobs)}


def of_answer(answer: Mapping[str, Any]) -> NodeState:
    """A state from the ``versions`` of gaudi_release_info with ``cards``, ``fence`` and ``jobs``; Refusal otherwise."""
    versions, cards, fence = answer.get("versions"), answer.get("cards", 0), answer.get("fence")
    if not isinstance(versions, Mapping):
        raise Refusal("There are no versions in its answer: ask it again")
    if isinstance(cards, bool) or not isinstance(cards, int) or not 0 <= cards <= 64:
        raise Refusal(f"It has {printable(repr(cards), 60)} cards: ask it again")
    known = fence if isinstance(fence, Mapping) else {"by": "person"} if fence else {}
    by = "healing" if known.get("by") == "healing" else "person" if known else ""
    reason, left = known.get("reason"), known.get("jobs")
    return NodeState(
        Node.of(versions),
        cards,
        by,
        printable(reason, 200) if isinstance(reason, str) else "",
        tuple(printable(each, 100) for each in left if isinstance(each, str)) if isinstance(left, list) else (),
        _names("jobs", answer.get("jobs", [])),
        _firmware(answer.get("firmware")),
    )


def of_report(report: Mapping[str, Any]) -> NodeState:
    """A state from what `gaudi3-train doctor` wrote; Refusal where it is none. Fences are in no such report."""
    sections = report.get("sections")
    if report.get("format") != _FORMAT or not isinstance(sections, Mapping):
        raise Refusal(f"It is no doctor's report of format {_FORMAT}: give what `gaudi3-train doctor --json` wrote")
    machine, modules, packages, cards, firmware, python = (
        _section(sections, name) for name in ("machine", "modules", "packages", "cards", "firmware", "python")
    )
    system = _mapping(machine.get("system"))
    found = _dicts(cards.get("cards"))
    loaded = _mapping(_mapping(modules.get("loaded")).get("habanalabs"))
    flashed = {
        printable(address, 20): _text(_mapping(each).get("preboot_btl_ver"))
        for address, each in sorted(_mapping(firmware.get("sysfs")).items())
    }
    environment = _mapping(python.get("versions"))
    return NodeState(
        Node.of(
            {
                "system": _system(system),
                "kernel": _text(machine.get("kernel")),
                "generation": _generation(found),
                "driver": _text(loaded.get("version")),
                "packages": {
                    _text(each.get("name")): _text(each.get("version"))
                    for each in _dicts(packages.get("packages"))
                    if _text(each.get("name")).startswith("habanalabs") and each.get("state") == "installed"
                },
                "plugin": _text(environment.get("habana-torch-plugin")),
                "torch": _text(environment.get("torch")),
                "python": _text(python.get("version")).partition(" ")[0],
                "preboot": max(flashed.values(), key=lambda each: numbers(firmware_release(each)), default=""),
            }
        ),
        len(found),
        firmware=flashed or None,
    )


def held_of(report: Mapping[str, Any]) -> tuple[str, ...]:
    """The vendor's packages that a doctor's report says are held back."""
    packages = _dicts(_section(_mapping(report.get("sections")), "packages").get("packages"))
    names = [_text(each.get("name")) for each in packages if each.get("wanted") == "hold"]
    return tuple(sorted(name for name in names if name.startswith("habanalabs")))


def fingerprint(facts: Mapping[str, Mapping[str, Any]]) -> str:
    """SHA-256 of the facts of all nodes, as canonical JSON: sorted names, no blanks, ASCII."""
    text = json.dumps(facts, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def difference(planned: Mapping[str, Any], present: Mapping[str, Any]) -> str:
    """In which fact a node is not the planned one, as a part of a sentence; empty where it is."""
    for name in FACTS:
        was, now = planned.get(name), present.get(name)
        if was == now:
            continue
        if isinstance(was, Mapping) and isinstance(now, Mapping):
            both = {*was} & {*now}
            package = min([*({*was} ^ {*now}), *(each for each in both if was[each] != now[each])])
            return (
                f"its package {package} was {was.get(package) or 'not there'} and is {now.get(package) or 'not there'}"
            )
        return f"its {_NAMES.get(name, name)} was {was or 'unknown'} and is {now or 'unknown'}"
    return ""


def _section(sections: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    return _mapping(_mapping(sections.get(name)).get("data"))


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _dicts(value: Any) -> list[Mapping[str, Any]]:
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list) else []


def _text(value: Any) -> str:
    return printable(value.strip(), 200) if isinstance(value, str) else ""


def _system(given: Mapping[str, Any]) -> str:
    names = {"ubuntu": "Ubuntu", "rhel": "RedHat"}
    which = _text(given.get("ID"))
    return f"{names.get(which, which.capitalize())} {_text(given.get('VERSION_ID'))}".strip()


def _generation(found: list[Mapping[str, Any]]) -> str:
    """That all cards share; empty where they do not, or where one is of a device that is not known."""
    products = [PRODUCTS.get(_text(each.get("device")).lower().replace("0x", "", 1)) for each in found]
    every = {product.generation if product else None for product in products}
    return (every.pop() or "") if len(every) == 1 else ""


def _names(what: str, value: Any) -> tuple[str, ...]:
    if not isinstance(value, (list, tuple)) or not all(isinstance(each, str) for each in value):
        raise Refusal(f"Its {what} are {printable(repr(value), 60)}: give a list of names")
    return tuple(printable(each, 100) for each in value)


def _firmware(value: Any) -> Optional[dict[str, str]]:
    if value is None:
        return None
    if not isinstance(value, Mapping) or not all(isinstance(each, str) for each in value.values()):
        raise Refusal(f"Its firmware is {printable(repr(value), 60)}: give versions by the cards' addresses")
    return {printable(address, 20): printable(each, 200) for address, each in value.items()}
