"""Writes docs/operate/health-matrix.md from the cases of the tests: `python tests/unit/plugins/health_page.py`."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.path += [str(Path(__file__).parent), str(ROOT / "collections"), str(ROOT / "simulator/src")]

from health_cases import CASES, FAMILIES  # noqa: E402 (found on the path above)

from ansible_collections.gaudi3.scale.plugins.module_utils._health import checks  # noqa: E402

PAGE = ROOT / "docs/operate/health-matrix.md"
#: Checks that no fault of the simulator proves, and the test that does.
ELSEWHERE = {
    "iommu": "tests/plays/test_iommu.py sets the IOMMU of a host; test_health.py has the check",
    "huge-pages": "a setting of the host: test_health.py",
    "governor": "a setting of the host: test_health.py",
    "firewall": "a setting of the host: test_health.py, test_firewall.py",
    "clock": "a setting of the host: test_health.py",
    "port-count": "made-up readings: test_health.py",
    "port-uncorrected": "made-up readings: test_health.py",
    "collective": "made-up results: test_health.py",
}
# Row of the list, check, proof.
CLUSTERMAX = (
    ("device off the bus", "card-count", "card-missing"),
    (
        "the vendor's error codes",
        "kernel-log",
        "kernel-event, cpu-timeout, reset-failed, mac-timeout, and unknown events",
    ),
    (
        "memory errors of the accelerator, volatile",
        "memory-uncorrected, memory-corrected",
        "ecc-uncorrected, ecc-corrected",
    ),
    ("memory errors, aggregate", "memory-rows", "row-pending"),
    ("memory errors of the host", "", "not covered yet"),
    ("PCIe errors", "kernel-log", "a line of the kernel, in test_health_events.py"),
    ("PCIe generation and width", "pcie", "pcie-generation, pcie-width"),
    ("link flaps of Ethernet", "port-flapping", "port-flapping"),
    ("link flaps of InfiniBand", "", "not applicable: Gaudi's links are Ethernet"),
    (
        "fabric health",
        "port-internal, port-external, port-symbol-errors, port-mtu, port-flow-control",
        "port-down, port-symbol-errors, port-mtu, port-pfc",
    ),
    ("stalled collectives", "", "the trainer's launcher (alerts TrainingStalled, TrainingHung)"),
    ("vendor diagnostics", "hl-qual", "qual-failed, slow-card, slow-link"),
    ("host-device bandwidth", "hl-qual", "its mode -p -b"),
    ("burn", "hl-qual", "its modes -f2 and -s"),
    ("local all-reduce", "collective", "figures below the floor, in test_health.py"),
    ("the same without peer-to-peer", "", "not applicable: cards of one box have no other path"),
    ("pairwise bandwidth and latency", "pair search", "test_health_pairs.py"),
    ("silent data corruption", "", "not covered yet"),
    ("a small training with its loss", "", "not covered yet"),
    ("weekly on idle nodes", "", "not covered yet"),
    ("drain and return without a person", "healing decisions", "test_health_healing.py"),
)


def text() -> str:
    """The whole page."""
    lines = [
        "# Health checks and the faults that prove them",
        "",
        "For whoever asks what [the health engine](health.md) finds, by which check, and what shows it.",
        "",
        "Written by `python tests/unit/plugins/health_page.py` by the cases of `module_utils/_health/test_checks.py`.",
        "Each fault is put on a simulated node with HL-325L (Gaudi 3) and on one with HL-225 (Gaudi 2). Three",
        "readings follow, ten seconds apart. A row stands for both boards: the check names this component, kind and",
        "action, and no other card is blamed. Leaving the check out loses the verdict.",
        "",
        "## Faults",
        "",
        "| fault | check | component | kind | action |",
        "|---|---|---|---|---|",
    ]
    for case in CASES:
        component = case.component.replace("BUS", "each card's address").replace("EXTERNAL", "4 (HL-325L), 8 (HL-225)")
        lines.append(f"| {case.fault} | {case.check} | {component} | {case.kind} | {case.action} |")
    lines += [
        "",
        "## Checks",
        "",
        "| check | component | reads | in order | depth | proved by |",
        "|---|---|---|---|---|---|",
    ]
    for check in checks.CHECKS:
        mine = [case.fault for case in CASES if FAMILIES.get(case.name, case.name) == check.name]
        proof = ", ".join(dict.fromkeys(mine)) or ELSEWHERE[check.name]
        lines.append(f"| {check.name} | {check.component} | {check.reads} | {check.floor} | {check.depth} | {proof} |")
    lines += [
        "",
        "## The ClusterMAX list",
        "",
        "The rows of clustermax.ai/expectations/health-checks.",
        "",
        "| row | check | proof |",
        "|---|---|---|",
    ]
    lines += [f"| {row} | {check} | {proof} |" for row, check, proof in CLUSTERMAX]
    lines += ["", "## Next", "", "- [health.md](health.md): verdicts, healing, passports."]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(text())
