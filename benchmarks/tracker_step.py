"""What an MLflow server costs a step of `gaudi3-train`, against the same job without a tracker.

    python benchmarks/tracker_step.py                   # the tiny model, every tenth step logged
    python benchmarks/tracker_step.py --log-every 1     # each step is logged

The server is a real one, with SQLite, on this machine: `make prepare` installs it into `.cache/mlflow`. Jobs with and
without it take turns. `cpu` is that of the job's process, the tracker's thread included; the server's is not in it.
"""

from __future__ import annotations

import argparse
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.trainer_step import MODELS, Bench, Times, summarise

ROOT = Path(__file__).resolve().parents[1]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7, help="rounds of each job")
    parser.add_argument("--steps", type=int, default=300, help="timed steps per round")
    parser.add_argument("--log-every", type=int, default=10, help="steps between two that are logged")
    arguments = parser.parse_args()
    overrides = [f"model.{setting}" for setting in MODELS["tiny"]]
    overrides += ["train.micro_batch_size=8", f"train.log_every={arguments.log_every}"]
    runs: dict[str, list[Times]] = {"plain": [], "ours": []}
    with tempfile.TemporaryDirectory() as name, server(Path(name)) as uri:
        tracked = [*overrides, "tracking.trackers=[mlflow]", f"tracking.mlflow_uri={uri}"]
        without = Bench(Path(name) / "without", arguments.steps, overrides)
        with_mlflow = Bench(Path(name) / "with", arguments.steps, tracked)
        without.ours()  # whoever runs first pays for what both need
        for number in range(arguments.rounds):
            pair = [("plain", without), ("ours", with_mlflow)]
            for kind, bench in pair if number % 2 else reversed(pair):
                runs[kind].append(bench.ours())
    for kind, each in summarise(runs).items():
        print(
            f"{kind:4}  without {each['plain_ms']:7.3f} ms (+{each['plain_spread_ms']:.3f})  "
            f"with MLflow {each['ours_ms']:7.3f} ms (+{each['ours_spread_ms']:.3f})  "
            f"ratio {each['ratio']:.3f}  {each['extra_ms']:+.3f} ms/step"
        )


@contextmanager
def server(folder: Path) -> Iterator[str]:
    """An MLflow server, while this is entered; its address."""
    python = str(ROOT / ".cache" / "mlflow" / "bin" / "python")
    if not Path(python).exists():
        sys.exit("There is no MLflow server: run `make prepare` first.")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [python, "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", str(port), "--workers", "1"]
    command += ["--backend-store-uri", f"sqlite:///{folder}/mlflow.db", "--artifacts-destination", str(folder)]
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    uri = f"http://127.0.0.1:{port}"
    try:
        for _ in range(600):
            time.sleep(0.2)
            try:
                urllib.request.urlopen(f"{uri}/health", timeout=5)
                break
            except OSError:
                if process.poll() is not None:
                    sys.exit(f"The MLflow server ended with {process.returncode}.")
        yield uri
    finally:
        process.terminate()
        process.wait()


if __name__ == "__main__":
    main()
