"""Every query of every dashboard gives numbers on a live Prometheus with the role's rules.

The pages have what the metric contract names, so that a dashboard asks for nothing that no exporter serves. On the
exporters themselves the tests of whole clusters run the same queries.
"""

from __future__ import annotations

import json
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from http.server import ThreadingHTTPServer
from pathlib import Path

import pytest
import yaml

from tests.monitoring import check_dashboards
from tests.monitoring.pages import SOURCES, Handler
from tests.monitoring.test_alerts import render

FILES = sorted(check_dashboards.DASHBOARDS.glob("*.json"))


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a Prometheus that has asked the pages for some seconds."""
    folder = tmp_path_factory.mktemp("prometheus")
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    target = [{"targets": [f"127.0.0.1:{server.server_port}"], "labels": {"instance": "gaudi-1"}}]
    (folder / "rules.yml").write_text(render(), encoding="utf-8")
    (folder / "prometheus.yml").write_text(
        yaml.safe_dump(
            {
                "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
                "rule_files": ["rules.yml"],
                "scrape_configs": [
                    {"job_name": job, "metrics_path": f"/{job}", "static_configs": target} for job in SOURCES
                ],
            }
        ),
        encoding="utf-8",
    )
    address = f"127.0.0.1:{free_port()}"
    command = ["prometheus", f"--web.listen-address={address}", "--config.file=prometheus.yml"]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen([*command, "--storage.tsdb.path=data"], cwd=folder, stdout=log, stderr=log)
    try:
        end = time.monotonic() + 60
        while not known(f"http://{address}", "instance:gaudi_cost_money_left:seconds"):
            assert process.poll() is None and time.monotonic() < end, (folder / "log").read_text()
            time.sleep(0.5)
        # Rates need two scrapes, records of rates a moment more.
        time.sleep(4)
        yield f"http://{address}"
    finally:
        process.terminate()
        process.wait()
        server.shutdown()


def known(url: str, name: str) -> bool:
    """Whether Prometheus answers and has a series."""
    try:
        return bool(check_dashboards.Prometheus(url, None, "", None, 1).series(name))
    except check_dashboards.AskError:
        return False


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_every_query_gives_numbers(url: str, file: Path) -> None:
    prometheus = check_dashboards.Prometheus(url, None, "", None, 30)
    dashboard = json.loads(file.read_text(encoding="utf-8"))
    assert check_dashboards.blind_spots(dashboard, prometheus) == []
    assert check_dashboards.check(dashboard, prometheus, everything=True) == []


def test_every_mark_is_drawn_where_it_happens(url: str) -> None:
    prometheus = check_dashboards.Prometheus(url, None, "", None, 30)
    for query in check_dashboards.marks(json.loads(FILES[0].read_text(encoding="utf-8"))):
        if "checkpoint" in query.expression:
            continue  # The page's last checkpoint is always the same.
        expression = check_dashboards.expand(query.expression, {"job": ".+", "cluster": ".*", "instance": ".+"})
        assert prometheus.series(expression), query
