"""Each fault of a simulated node that has an alert sends its notification, and only that one; sound nodes send none.

Needs prometheus and prometheus-alertmanager (Debian: apt-get download, and dpkg -x).
"""

from __future__ import annotations

import contextlib
import re
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import promql_parser
import pytest

from tests.monitoring.test_alerts import RULES, metrics, render
from tests.monitoring.watched_nodes import Watched, watched
from tests.suite.proof import Proof

from health_machine import nodes  # isort: skip  (watched_nodes finds it)

LIMIT_S = 35.0
"""From the moment at which an exporter shows a fault, besides what the rule waits for: a scrape, an evaluation, the
group of a notification."""


@dataclass(frozen=True)
class Case:
    """A fault of the simulator with its options, the one alert that it sends, and how it is shown otherwise."""

    fault: str
    alert: str = ""
    options: tuple[str, ...] = ()
    shown_by: str = ""
    """A metric, where the rule's own expression names none that the exporter serves."""
    counts: bool = False
    """The rule waits until it has seen some more of it, so that its time says nothing."""

    @property
    def name(self) -> str:
        """Of the case and of its node."""
        return "-".join([self.fault, *(word for word in self.options if not word.startswith("--"))])


CASES = [
    Case("dead", "NodeDown"),
    Case("driver-not-loaded", "HpuReadingFailed"),
    Case("hl-smi-garbage", "HpuReadingFailed"),
    Case("hl-smi-hang", "HpuReadingFailed"),
    *(
        Case(fault, "HpuInternalPortDown", ("--card", "3"))
        for fault in ("card-in-reset", "needs-reset", "in-device-creation", "reset-failed", "cpu-timeout")
    ),
    Case("port-down", "HpuInternalPortDown", ("--card", "3", "--port", "0")),
    Case("port-down", "HpuExternalPortDown", ("--card", "3", "--port", "4")),
    Case("mac-timeout", "HpuExternalPortDown", ("--card", "2")),
    Case("port-flapping", "HpuPortFlapping", ("--card", "1"), shown_by="habanalabs_nic_port_status", counts=True),
    Case("card-missing", "HpuCardMissing", ("--card", "5")),
    Case("temperature-zero", "HpuReadingImpossible", ("--card", "2")),
    Case("pcie-width", "HpuPcieLinkDegraded", ("--card", "4")),
    Case("ecc-uncorrected", "HpuMemoryErrorUncorrected", ("--card", "1")),
    Case("throttled-power", "HpuThrottled", ("--card", "6")),
    Case("throttled-thermal", "HpuThrottled", ("--card", "7")),
    Case("memory-kept", "HpuHeldIdle", ("--card", "4"), shown_by="habanalabs_memory_used_bytes"),
    Case("version-skew", "HpuDriverMismatch"),
    Case("firmware-skew", "HpuFirmwareMismatch", ("--card", "0")),
    *(
        Case(fault, options=("--card", "3"))
        for fault in ("temperature-absurd", "pcie-generation", "ecc-corrected", "row-pending", "kernel-event")
    ),
    Case("port-symbol-errors", options=("--card", "3")),
    Case("sound"),
    Case("sound", options=("2",)),
]
OF_THE_FLEET = {"HpuDriverMismatch", "HpuFirmwareMismatch"}
"""They name no node."""
PROOF = Proof("notifications", {"fault": [case.name for case in CASES]})
COLUMNS = ("notification", "the rule waits, s", "after the exporter showed it, s", "after the fault, s")
TEXT = """
One simulated node for each fault, all watched at once: the collection's exporter reads each node's own `hl-smi` every
10 seconds (its ports every 30), a Prometheus with the role's rules and intervals (15 s) scrapes them, an Alertmanager
with the role's routes and inhibitions sends to a webhook receiver, which notes what comes. node_exporter's pages are a
stand-in's. All listen on one machine, without TLS.

Each fault sends one notification, with the alert of the table and of no other name, at most 35 s later than the rule
says, counted from the exporter's first page that shows it. A dash is a fault that has no alert, by choice: the health
engine watches it, or exporters of `hl-smi` have no metric of it (rows that wait are in Intel's alone). Two sound nodes
send nothing in the whole time.
"""


def seconds(duration: str) -> float:
    """A duration as Prometheus writes it."""
    number, unit = re.fullmatch(r"(\d+)([smh])", duration).groups()  # type: ignore[union-attr]
    return float(number) * {"s": 1, "m": 60, "h": 3600}[unit]


def served(page: str, names: set[str]) -> set[str]:
    """The lines of these metrics on an exporter's page."""
    return {line for line in page.splitlines() if re.split(r"[{ ]", line, maxsplit=1)[0] in names}


class Faults:
    """Puts all faults on their nodes, and notes when each exporter shows its own."""

    def __init__(self, site: Watched) -> None:
        self.put: dict[str, float] = {}
        self.shown: dict[str, float] = {}
        self._site = site
        self._before = {case.name: self._lines(case) for case in CASES if case.alert and case.fault != "dead"}

    def begin(self) -> None:
        """Put them."""
        for case in CASES:
            self.put[case.name] = time.time()
            if case.fault == "dead":
                self._site.die(case.name)
                self.shown[case.name] = time.time()
            elif case.fault != "sound":
                self._site.put(case.name, case.fault, *case.options)
        threading.Thread(target=self._watch, daemon=True).start()

    def _lines(self, case: Case) -> set[str]:
        names = {case.shown_by} if case.shown_by else metrics(promql_parser.parse(RULES[case.alert]["expr"]))
        return served(self._site.page(case.name), names)

    def _watch(self) -> None:
        while not self._before.keys() <= self.shown.keys():
            for case in CASES:
                if case.name not in self._before or case.name in self.shown:
                    continue
                began = time.time()
                with contextlib.suppress(OSError):  # it is asked again
                    if self._lines(case) != self._before[case.name]:
                        self.shown[case.name] = began
            time.sleep(0.5)


def notified(site: Watched) -> Mapping[str, dict[str, float]]:
    """By node, when its alerts first came."""
    found: dict[str, dict[str, float]] = {}
    for each in site.told:
        if each.status == "firing":
            found.setdefault(each.instance, {}).setdefault(each.alert, each.at)
    return found


@pytest.mark.proof
def test_each_fault_sends_its_notification_and_no_other(tmp_path: Path) -> None:
    longest = max(seconds(RULES[case.alert].get("for", "0s")) for case in CASES if case.alert)
    with nodes() as made, watched(tmp_path, made, [case.name for case in CASES], render()) as site:
        time.sleep(75)  # the exporters have read all twice, Prometheus has it
        assert site.told == []
        faults = Faults(site)
        faults.begin()
        time.sleep(longest + 2 * LIMIT_S + 30)
        told = notified(site)
    wrong = []
    for case in CASES:
        came = told.get(case.name, {})
        if case.alert in OF_THE_FLEET and not came:
            came = {name: at for name, at in told.get("", {}).items() if name == case.alert}
        if sorted(came) != ([case.alert] if case.alert else []):
            wrong.append(f"{case.name}: {sorted(came)} instead of {case.alert or 'none'}")
            continue
        row = dict.fromkeys(COLUMNS, "") | {COLUMNS[0]: case.alert or "-"}
        if case.alert:
            waits = seconds(RULES[case.alert].get("for", "0s"))
            after = came[case.alert] - waits
            late = after - faults.shown.get(case.name, 0.0)
            if late > LIMIT_S and not case.counts:
                wrong.append(f"{case.name}: {late:.0f} s after the exporter showed it")
                continue
            cells = (f"{waits:.0f}", "" if case.counts else f"{late:.0f}", f"{after - faults.put[case.name]:.0f}")
            row |= dict(zip(COLUMNS[1:], cells, strict=True))
        PROOF.note(case.name, row)
    assert wrong == []
    assert set(told.get("", {})) == OF_THE_FLEET
    PROOF.write_table("What a fault sends", TEXT, COLUMNS)
