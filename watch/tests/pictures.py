"""Takes the pictures of docs/use/watch.md: of a small job that is trained now on the CPU, and of the made cluster.

The job is killed in its middle and goes on, so that the page has a restart. Look at both before you commit them.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import browser
import fleet
from PIL import Image
from test_cluster import Past, serving

from gaudi3_scale.metrics_listener import BoundedServer
from gaudi3_watch.cluster import ClusterSource
from gaudi3_watch.folder import FolderSource
from gaudi3_watch.pages import Pages, Source

DOCS = Path(__file__).resolve().parents[2] / "docs" / "use"
COLOURS = 128
JOB = """
output_dir: {folder}
device: cpu
model: {{sequence_length: 96}}
train: {{max_steps: 400, learning_rate: 0.005, evaluate_every: 40, log_every: 2, threads: 1}}
checkpoint: {{every: 40}}
metrics: {{enabled: false}}
cost: {{node_price_per_hour: 12.5, price_source: an example, price_date: 2026-11-01, budget: 2}}
"""


def train(folder: Path) -> None:
    """A job that is killed once."""
    settings = folder.parent / "job.yml"
    settings.write_text(JOB.format(folder=folder))
    command = [sys.executable, "-m", "gaudi3_scale", "fit", "--config", str(settings)]
    lines = folder / "metrics.jsonl"
    with subprocess.Popen(command) as job:
        while job.poll() is None and not (lines.exists() and len(lines.read_text().splitlines()) > 70):
            time.sleep(0.2)
        job.kill()
    subprocess.run(command, check=True)


@contextmanager
def served(source: Source) -> Iterator[str]:
    """The address of a page."""
    with BoundedServer("127.0.0.1", 0, Pages(source), None) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def take(found: browser.Browser, address: str, name: str, height: int, dark: bool = False) -> None:
    """One picture, of few colours, as it is part of what users download."""
    tab = found.tab(address, 1180, height, dark)
    tab.wait("document.querySelectorAll('canvas').length > 4")
    tab.ask("new Promise(done => setTimeout(done, 500))")
    tab.picture(DOCS / name)
    print(DOCS / name, *tab.complaints())
    tab.close()
    with Image.open(DOCS / name) as picture:
        picture.convert("RGB").quantize(COLOURS, Image.Quantize.MAXCOVERAGE).save(DOCS / name, optimize=True)


def main() -> None:
    """Both pictures."""
    with tempfile.TemporaryDirectory() as given, browser.started() as found:
        folder = Path(given)
        train(folder / "small-llama")
        with served(FolderSource(folder / "small-llama")) as address:
            take(found, address, "watch-job.png", 1010)
        (folder / "prometheus").mkdir()
        with serving(folder / "prometheus") as prometheus:
            source = ClusterSource(Past(prometheus.url), clock=lambda: fleet.NOW)
            with served(source) as address:
                take(found, f"{address}#t=-2h..now&section=cards", "watch-cluster.png", 1100, dark=True)


if __name__ == "__main__":
    main()
