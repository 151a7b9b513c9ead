"""Intel's health screen, level 1, over a whole node: `health_screen.py [KIND:CARD]`, the card that it has to flag."""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path

FOLDER = "utils/intel_gaudi_health_screen"


def main(fault: str) -> None:
    """Scan and check; only the card with the fault may be flagged."""
    sys.path.insert(0, str(Path(os.environ["CONTRACT_REPOSITORY"]) / FOLDER))
    import csv

    from HealthReport import HealthReport
    from IGNodes import IGNode

    report = HealthReport(f_dir="ighs")
    node = IGNode(name="gaudi-1", health_report=report, num_checks_link_state=1, log_level=logging.INFO,
                  write_dir="ighs")  # fmt: skip
    node.scan_cards()
    node.health_check(write_report=True)
    with Path(report.f_path).open() as file:
        rows = list(csv.DictReader(file))
    kind, _, card = fault.partition(":")
    flagged = {
        row["index"]: [
            what
            for what, bad in (
                ("device-acquired", row["device_acquire_fail"] == "True"),
                ("port-down", row["down_links"] not in ("", "[]")),
                ("temperature", row["temperature_state_C"] != "NORMAL"),
            )
            if bad
        ]
        for row in rows
    }
    print(f"{len(rows)} cards: {flagged}")
    if kind == "card-missing":
        assert len(rows) == 7, f"{len(rows)} cards reported of 7"
        flagged = {index: bad for index, bad in flagged.items() if bad}
        assert not flagged, flagged
        return
    assert len(rows) == 8, f"{len(rows)} cards reported of 8"
    bad = {index for index, found in flagged.items() if found}
    assert bad == ({card} if kind else set()), f"flagged: {flagged}"


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "")
