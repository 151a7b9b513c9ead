# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Examine this node once: what changed goes into its history, and metrics to the node exporter. Run by a timer.

Reads at depth quick, beside jobs. It takes no node out of service; that is for the healing loop on the controller. What
jobs say of a hang comes first, as it has to be known within seconds: the unit of a job that failed runs this as well.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path
from typing import Any

from engine._files import make_folder, write_file
from engine._health import fence, history
from engine._health.collect import Sources
from engine._health.examine import Patience, examine
from engine._hl_smi.command import HlSmi, Runner
from engine._jobs import hangs
from engine._jobs.spec import unit_name

LAST, METRICS, HANGS = "last.json", "gaudi-node-health.prom", "gaudi-training-hangs.prom"
HELP = {
    "gaudi_health_examination_timestamp_seconds": "When the node was examined last, in seconds since 1970.",
    "gaudi_health_examination_cpu_seconds": "Processor time of that examination, without the tools that it called.",
    "gaudi_health_verdicts": "Verdicts on the node, by kind and severity.",
    "gaudi_health_check_errors": "Readings of that examination that failed; none of them says anything about the node.",
    "gaudi_health_drains": "1 where a verdict asks for the node to be taken away from jobs.",
    "gaudi_health_out_of_service": "1 where no job may start on the node.",
    "gaudi_training_hang_timestamp_seconds": "When the last hang of a job was found, and who held it up.",
}
#: Bytes of a label's value: the role prometheus refuses a page with longer ones than 512.
LONGEST = 480
STATES = ("starting", "running", "finished", "failed", "interrupted", "spare")


def main() -> None:
    """Examine, compare with the last time, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hl-smi", default="hl-smi")
    parser.add_argument("--timeout", type=int, default=30, help="seconds for one call of a tool")
    parser.add_argument("--cards", type=int, help="how many cards the node has")
    parser.add_argument("--metrics", help="folder of node_exporter's textfile collector")
    parser.add_argument("--folder", default=fence.FOLDER)
    parser.add_argument("--jobs", default="/var/lib/gaudi3-scale/jobs", help="folder of the jobs' folders")
    asked = parser.parse_args()
    if asked.metrics and Path(asked.metrics).is_dir():
        found = hangs.found_in(asked.jobs, time.time())
        write_file(str(Path(asked.metrics) / HANGS), page_of_hangs(found))
    run = Patience(Runner(asked.timeout))
    tool = HlSmi(asked.hl_smi, run) if Path(asked.hl_smi).exists() else None
    sources = Sources(run, tool, os.uname().release, table=(asked.hl_smi,))
    done = examine(sources, time.monotonic, time.sleep, expected_cards=asked.cards)
    report, now = done.report.as_dict(), round(time.time(), 3)
    verdicts = {f"{each['check']} {each['component']}": each["message"] for each in report["verdicts"]}
    make_folder(asked.folder)
    before = last(asked.folder)
    new = [{"at": now, "what": "verdict", "reason": verdicts[key]} for key in verdicts if key not in before]
    # A reading that failed does not say that a fault is over.
    gone = [] if report["errors"] else [key for key in before if key not in verdicts]
    new += [{"at": now, "what": "verdict is over", "reason": before[key]} for key in gone]
    history.append(new, asked.folder)
    kept = {key: text for key, text in before.items() if key not in gone}
    write_file(str(Path(asked.folder) / LAST), json.dumps({**kept, **verdicts}, indent=1, sort_keys=True) + "\n")
    if asked.metrics and Path(asked.metrics).is_dir():
        write_file(str(Path(asked.metrics) / METRICS), page(report, now, asked.folder))


def last(folder: str) -> dict[str, str]:
    """The verdicts of the examination before."""
    try:
        found = json.loads((Path(folder) / LAST).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return {str(key): str(text) for key, text in found.items()} if isinstance(found, dict) else {}


def page(report: dict[str, Any], now: float, folder: str) -> str:
    """The metrics, in Prometheus' text format."""
    counts: dict[tuple[str, str], int] = {}
    for each in report["verdicts"]:
        counts[each["kind"], each["severity"]] = counts.get((each["kind"], each["severity"]), 0) + 1
    series: dict[str, list[tuple[str, Any]]] = {
        "gaudi_health_examination_timestamp_seconds": [("", now)],
        "gaudi_health_examination_cpu_seconds": [("", round(time.process_time(), 3))],
        "gaudi_health_verdicts": [
            (f'{{kind="{kind}",severity="{severity}"}}', count) for (kind, severity), count in sorted(counts.items())
        ],
        "gaudi_health_check_errors": [("", len(report["errors"]))],
        "gaudi_health_drains": [("", int(report["drains"]))],
        "gaudi_health_out_of_service": [("", int(fence.read(folder) is not None))],
    }
    return text_of(series)


def page_of_hangs(found: list[hangs.JobHang]) -> str:
    """The metric about jobs that hung; without one, its name alone."""
    series = []
    for each in found:
        labels = {
            "name": unit_name(each.job),
            "state": each.state if each.state in STATES else "unknown",
            "kind": each.kind,
            "certain": "yes" if each.certain else "no",
            "sentence": each.sentence,
        }
        series.append(("{" + ",".join(f'{name}="{label(value)}"' for name, value in labels.items()) + "}", each.at))
    return text_of({"gaudi_training_hang_timestamp_seconds": series})


def label(text: str) -> str:
    """A text in the place of a label's value."""
    whole = text.encode()
    short = text if len(whole) <= LONGEST else whole[: LONGEST - 3].decode(errors="ignore") + "..."
    return short.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def text_of(series: dict[str, list[tuple[str, Any]]]) -> str:
    """Series by metric, each with its labels and its value."""
    lines = []
    for name, values in series.items():
        lines += [f"# HELP {name} {HELP[name]}", f"# TYPE {name} gauge"]
        lines += [f"{name}{labels} {value}" for labels, value in values]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
