#!/usr/bin/env python3
"""A Prometheus with the role's rules and intervals, and 512 nodes: samples a second, memory, time of the rules.

Needs prometheus (Debian: apt-get download, and dpkg -x). The pages are those of tests/monitoring/pages.py with eight
cards of 24 ports: every metric of docs/reference/metrics.yml that an exporter of a node serves, of a sound node. They
are served by one process on this machine, so that the share of a processor below is Prometheus' alone. Nobody is sent
anything.

    benchmarks/monitoring_scale.py                  512 nodes, six minutes
    benchmarks/monitoring_scale.py --nodes 16 --minutes 3

The aim is that no group of rules takes more than 5 s, of the 15 s until it is evaluated again.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
import urllib.request
from http.server import ThreadingHTTPServer
from pathlib import Path

import yaml

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "collections"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.monitoring import pages
from tests.monitoring.test_alerts import render
from tests.monitoring.test_dashboards_live import free_port

RULES_S = 5.0
CARDS, PORTS = 8, 24


class Handler(pages.Handler):
    """Makes each page once a second, whoever asks."""

    made: dict[str, tuple[int, bytes]] = {}  # noqa: RUF012 (of the process)

    def body(self, path: str) -> bytes:
        """What stands at a path now."""
        now = int(time.time())
        if self.made.get(path, (0, b""))[0] != now:
            self.made[path] = now, pages.page(path, self.since, sound=True).encode()
        return self.made[path][1]

    def do_GET(self) -> None:
        with contextlib.suppress(OSError):  # Prometheus does not wait longer than it scrapes
            super().do_GET()


def ask(url: str, query: str) -> list[tuple[dict[str, str], float]]:
    """The series of a query with their values."""
    with urllib.request.urlopen(f"{url}/api/v1/query?query={urllib.parse.quote(query)}", timeout=60) as answer:
        found = json.load(answer)["data"]["result"]
    return [(each["metric"], float(each["value"][1])) for each in found]


def one(url: str, query: str) -> float:
    """The number that a query gives."""
    return next((value for _, value in ask(url, query)), float("nan"))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=512)
    parser.add_argument("--minutes", type=float, default=6)
    asked = parser.parse_args()
    pages.VALUES |= {"id": [str(card) for card in range(CARDS)], "port": [str(port) for port in range(PORTS // 2)]}
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    page = f"127.0.0.1:{server.server_port}"
    address = f"127.0.0.1:{free_port()}"
    names = [f"gaudi-{number + 1}" for number in range(asked.nodes)]
    jobs = [
        {
            "job_name": job,
            "metrics_path": f"/{job}",
            "static_configs": [{"targets": [page], "labels": {"instance": name}} for name in names],
        }
        for job in pages.OF_NODES
    ]
    own = {"job_name": "prometheus", "static_configs": [{"targets": [address]}]}
    with tempfile.TemporaryDirectory(prefix="monitoring-scale-") as temporary:
        folder = Path(temporary)
        (folder / "rules.yml").write_text(render(), encoding="utf-8")
        document = {
            "global": {"scrape_interval": "15s", "evaluation_interval": "15s"},
            "rule_files": ["rules.yml"],
            "scrape_configs": [*jobs, own],
        }
        (folder / "prometheus.yml").write_text(yaml.safe_dump(document), encoding="utf-8")
        command = ["prometheus", f"--web.listen-address={address}", "--config.file=prometheus.yml"]
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen([*command, "--storage.tsdb.path=data"], cwd=folder, stdout=log, stderr=log)
        url, slowest = f"http://{address}", dict[str, float]()
        try:
            end = time.monotonic() + 60 * asked.minutes
            while time.monotonic() < end:
                time.sleep(15)
                for labels, seconds in ask(url, "prometheus_rule_group_last_duration_seconds"):
                    group = labels["rule_group"].rpartition(";")[2]
                    slowest[group] = max(seconds, slowest.get(group, 0.0))
            up = one(url, "sum(up)")
            print(f"targets that answer: {up:.0f} of {len(jobs) * asked.nodes + 1}")
            print(f"series: {one(url, 'prometheus_tsdb_head_series'):.0f}")
            rate = one(url, "rate(prometheus_tsdb_head_samples_appended_total[2m])")
            print(f"samples a second: {rate:.0f}")
            print(f"resident memory: {one(url, 'process_resident_memory_bytes') / 1e9:.2f} GB")
            print(f"processor: {one(url, 'rate(process_cpu_seconds_total[2m])'):.2f} of one core")
            print(f"alerts that wait or fire: {one(url, 'count(ALERTS)'):.0f}")
            print(f"missed evaluations: {one(url, 'sum(prometheus_rule_group_iterations_missed_total)'):.0f}")
            for group, seconds in sorted(slowest.items()):
                print(f"slowest evaluation of {group}: {seconds:.2f} s (aim: at most {RULES_S:.0f} s)")
        finally:
            process.terminate()
            process.wait()
            server.shutdown()
    sys.exit(max(slowest.values(), default=RULES_S + 1) > RULES_S)


if __name__ == "__main__":
    main()
