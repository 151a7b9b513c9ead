#!/usr/bin/env python3
"""The page of gaudi3-watch with a week of 512 processes: time until its charts are drawn, and memory.

A made folder: 64 nodes of one job with eight processes each, a line of metrics every ten seconds in each node's file, a
ledger of a line each half minute with a checkpoint every ten minutes and a restart a day. The page is opened in
headless Chromium while the server has read nothing yet, and once more when it has read all. Memory is what the page's
own process has for itself, without what Chromium shares between its processes, beside JavaScript's heap; of the server,
its peak.

    benchmarks/watch_page.py
    benchmarks/watch_page.py --every 1        a line of metrics each second
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "watch/tests"))

import browser

FIRST_S, FIRST_MB = 2.0, 150.0
WEEK = 7 * 86400
NODES = 64
PARTS = ("startup", "compute", "data_wait", "checkpoint_stall", "evaluation", "other")


def make(folder: Path, every: int) -> None:
    """The folder; nodes after the first have links to equal files of their own."""
    began = time.time() - WEEK
    metrics = folder / "metrics"
    with metrics.open("w") as file:
        for at in range(every, WEEK + 1, every):
            line = {
                "step": at,
                "loss": 2 + 8 * math.exp(-at / 90000) + 0.05 * math.sin(at * 7.3),
                "gradient_norm": 1.0,
                "learning_rate": 3e-4,
                "tokens": at * 4_000_000,
                "tokens_per_second": 4e6 + 1e5 * math.sin(at),
                "time": began + at,
            }
            file.write(json.dumps(line) + "\n")
    ledger = folder / "ledger"
    with ledger.open("w") as file:
        for day in range(7):
            spent = dict.fromkeys(PARTS, 0) | {"startup": 60 * 10**9}
            start = began + day * 86400
            for at in range(60, 86400, 30):
                spent["compute"] += 28 * 10**9
                spent["checkpoint_stall" if at % 600 == 0 else "data_wait"] += 2 * 10**9
                entry: dict[str, object] = {
                    "event": "start" if at == 60 else "account",
                    "step": day * 86400 + at,
                    "run": f"{day}",
                    "began": start,
                    "time": start + at,
                    "nanoseconds": spent,
                }
                file.write(json.dumps(entry) + "\n")
    status = {
        "schema": 1,
        "state": "running",
        "step": WEEK,
        "max_steps": 2 * WEEK,
        "world_size": 512,
        "device": "cpu",
        "loss": 2.0,
        "tokens_per_second": 4e6,
        "updated_at": time.time(),
    }
    for node in range(1, NODES + 1):
        here = folder / "job" / f"gaudi-{node}"
        here.mkdir(parents=True)
        (here / "status.json").write_text(json.dumps(status))
        (here / "metrics.jsonl").hardlink_to(metrics)
        (here / "goodput.jsonl").hardlink_to(ledger)


def own_memory(found: browser.Browser, tab: browser.Tab) -> tuple[float, float]:
    """Megabytes of the page's process for itself, and of its heap of JavaScript."""
    heap = tab.ask("performance.memory.usedJSHeapSize") / 1e6
    processes = found.call("SystemInfo.getProcessInfo")["processInfo"]
    own = []
    for each in processes:
        if each["type"] == "renderer":
            text = Path(f"/proc/{each['id']}/smaps_rollup").read_text()
            lines = [line.split() for line in text.splitlines() if line.startswith(("Private_Clean", "Private_Dirty"))]
            own.append(sum(int(line[1]) for line in lines) / 1000)
    return max(own), heap


def measure(found: browser.Browser, address: str) -> tuple[float, float, float]:
    """Seconds until all charts are drawn, and the memory then."""
    began = time.monotonic()
    tab = found.tab(address)
    tab.wait(f"{browser.DRAWN}.length >= 5 && document.querySelectorAll('section').length === 6")
    taken = time.monotonic() - began
    memory = own_memory(found, tab)
    tab.close()
    return taken, *memory


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--every", type=int, default=10, help="seconds between two lines of metrics")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as given, browser.started() as found:
        make(Path(given), options.every)
        size = sum(each.stat().st_size for each in (Path(given) / "metrics", Path(given) / "ledger")) / 1e6
        command = [sys.executable, "-m", "gaudi3_watch", "run", f"{given}/job", "--listen", "127.0.0.1:0"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
            assert server.stdout is not None
            address = server.stdout.readline().strip() + "#job=gaudi-1"
            try:
                first = measure(found, address)
                tab = found.tab(address)
                tab.wait("document.querySelectorAll('section').length === 6")
                tab.wait("!document.querySelectorAll('#problems li').length")
                tab.close()
                again = measure(found, address)
                peak = next(
                    line for line in Path(f"/proc/{server.pid}/status").read_text().splitlines() if "VmHWM" in line
                )
            finally:
                server.terminate()
    print(f"{WEEK // options.every:,} lines of metrics, {size:.0f} MB of files for each of {NODES} nodes")
    for name, (seconds, own, heap) in {"nothing read yet": first, "all read": again}.items():
        print(f"{name}: drawn after {seconds:.2f} s, {own:.0f} MB of the page's process, {heap:.1f} MB of heap")
    print(f"server: peak of {int(peak.split()[1]) / 1000:.0f} MB")
    return int(max(first[0], again[0]) > FIRST_S or max(first[1], again[1]) > FIRST_MB)


if __name__ == "__main__":
    sys.exit(main())
