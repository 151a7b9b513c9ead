"""Evidence made by hand: two sound cards of a Gaudi 3, for what needs no node."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._certificate import document
from ansible_collections.gaudi3.scale.plugins.module_utils._certificate.document import Certificate
from ansible_collections.gaudi3.scale.plugins.module_utils._certificate.evidence import COUNTERS, read
from ansible_collections.gaudi3.scale.plugins.module_utils._certificate.sources import MODES

TAKEN = 1_790_000_000.0


class Sheet:
    """Facts of a machine, and the certificate that they come to."""

    def __init__(self) -> None:
        self.facts: dict[str, Any] = {
            "format": 1, "node": "gaudi-1", "taken_at": TAKEN, "board": "HL-225", "generation": "gaudi2",
            "machine_serial": "M1", "driver": "1.23.0-2eae87a", "uptime_s": 7200.0, "pci_cards": 8,
            "cards": [self._card(index) for index in range(8)],
            "qual": [{"name": mode, "passed": True, "at": TAKEN} for mode in MODES],
            "steps": [{"name": "step", "passed": True, "card": index, "at": TAKEN} for index in range(8)],
        }  # fmt: skip

    @staticmethod
    def _card(index: int) -> dict[str, Any]:
        return {
            "index": index, "serial": f"AM0{index}", "uuid": f"U{index}", "module_id": index, "status": "Operational",
            "rows_pending": False, "counters": dict.fromkeys(COUNTERS, 0), "rows": [],
            "pcie": {"gen": 4, "gen_max": 4, "width": 16, "width_max": 16}, "firmware": {"spi": "one"},
            "ports": [{"port": 7, "type": "internal", "link": "up", "restores": 0, "uncorrected": 0}],
            "controller": {"oam": index, "keys": {"key1_revocation": 0}, "memory": {"rows_replaced_for_good": 0}},
        }  # fmt: skip

    @property
    def text(self) -> str:
        """The file."""
        return document.write(read(json.loads(json.dumps(self.facts))))

    @property
    def certificate(self) -> Certificate:
        """The certificate in it."""
        return document.load(self.text, "gaudi-1.certificate.json")


@pytest.fixture
def sheet() -> Sheet:
    """A sound machine."""
    return Sheet()


@pytest.fixture
def later() -> Sheet:
    """The same machine, a month later."""
    found = Sheet()
    found.facts["taken_at"] = TAKEN + 30 * 86400
    return found
