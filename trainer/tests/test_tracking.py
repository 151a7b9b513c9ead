"""Experiment trackers: the real libraries, and MLflow with a real server."""

from __future__ import annotations

import importlib.util
import json
import math
import os
import socket
import struct
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from conftest import wait_for
from forked import ForkedJob
from tracking_servers import ask, mlflow_server
from zygote import Client

from gaudi3_scale.config import TrackingConfig, load
from gaudi3_scale.errors import ConfigError
from gaudi3_scale.tracking import queue
from gaudi3_scale.tracking.queue import TrackerQueue
from gaudi3_scale.tracking.trackers import check

SMALL = ("model.hidden_size=32", "model.intermediate_size=64", "train.micro_batch_size=2", "train.log_every=2")
SMALL += ("model.sequence_length=32", "data.validation_samples=4")
BLOCK = 32768
"""Bytes of a block in LevelDB's log format."""
NAMES = ("loss", "gradient_norm", "learning_rate", "tokens", "tokens_per_second", "goodput")


def need(*packages: str) -> None:
    """Skip where a package is missing, and fail where CI runs the tests."""
    missing = [name for name in packages if importlib.util.find_spec(name) is None]
    if missing and os.environ.get("CI"):
        pytest.fail(f"{', '.join(missing)} are missing: pip install -r requirements/extras.txt")
    if missing:
        pytest.skip(f"{', '.join(missing)} are not installed: the trackers were NOT tested")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of an MLflow server."""
    with mlflow_server(tmp_path_factory.mktemp("mlflow")) as address:
        yield address


def tensorboard_points(folder: Path) -> dict[str, list[tuple[int, float]]]:
    """What TensorBoard shows of a folder."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(folder)).Reload()
    return {name: [(p.step, p.value) for p in events.Scalars(name)] for name in events.Tags()["scalars"]}


def wandb_records(path: Path) -> list[Any]:
    """What stands in a file of Weights & Biases: LevelDB's log format after a header of 7 bytes."""
    from wandb.proto import wandb_internal_pb2

    data, records, part, at = path.read_bytes(), [], b"", 7
    while at + 7 <= len(data):
        if BLOCK - at % BLOCK < 7:  # no room for a header: the block's rest is padding
            at += BLOCK - at % BLOCK
            continue
        _, length, kind = struct.unpack_from("<IHB", data, at)
        part += data[at + 7 : at + 7 + length]
        at += 7 + length
        if kind in (1, 4):  # whole, or the last part
            records.append(wandb_internal_pb2.Record.FromString(part))
            part = b""
    return records


def test_a_job_that_is_continued_is_one_run_of_every_tracker(
    server: str, warm: Client, text: Path, tmp_path: Path
) -> None:
    need("tensorboard", "mlflow", "wandb")
    job = ForkedJob(warm, tmp_path / "job", text)
    settings = (*SMALL, "tracking.trackers=[tensorboard,mlflow,wandb]", f"tracking.mlflow_uri={server}")
    settings += ("tracking.seconds=60", "train.warmup_steps=0", "train.evaluate_every=2")
    job.fit(*settings, "train.max_steps=4")
    said = job.fit(*settings, "train.max_steps=8", "train.learning_rate=0.001")
    folder = job.node()
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    steps = [line["step"] for line in lines]
    assert steps == [1, 2, 4, 6, 8] and "resuming from step 4" in said

    runs = ask(server, "runs/search", experiment_ids=["1"])["runs"]
    assert len(runs) == 1
    run = runs[0]
    assert (run["info"]["status"], run["info"]["run_name"]) == ("FINISHED", "node0")
    for name in NAMES:
        found = ask(server, f"metrics/get-history?run_id={run['info']['run_id']}&metric_key={name}")["metrics"]
        known = [line for line in lines if line.get(name, 0) is not None]  # the first speeds are not measured
        assert sorted(point["step"] for point in found) == [line["step"] for line in known], name
        if name in lines[0]:
            expected = [pytest.approx(line[name]) for line in known]
            assert [point["value"] for point in sorted(found, key=lambda p: p["step"])] == expected, name
    evaluated = {
        line["step"]: line["validation_loss"]
        for line in map(json.loads, (folder / "evaluation.jsonl").read_text().splitlines())
    }
    assert list(evaluated) == [2, 4, 6, 8]  # the last one comes after the training
    for name, expected in (("validation_loss", evaluated), ("validation_perplexity", {2: math.exp(evaluated[2])})):
        found = ask(server, f"metrics/get-history?run_id={run['info']['run_id']}&metric_key={name}")["metrics"]
        values = {point["step"]: point["value"] for point in found}
        assert {step: values[step] for step in expected} == pytest.approx(expected), name
        assert set(values) == set(evaluated)
    written = {each["key"]: each["value"] for each in run["data"]["params"]}
    assert written["train.max_steps"] == "4" and written["model.hidden_size"] == "32" and written["world_size"] == "1"
    changed = {each["key"]: each["value"] for each in run["data"]["tags"] if each["key"].startswith("changed.")}
    assert changed == {"changed.train.max_steps": "8", "changed.train.learning_rate": "0.001"}

    points = tensorboard_points(folder / "tensorboard")
    assert {name: [step for step, _ in points[name]] for name in ("loss", "gradient_norm", "goodput")} == dict.fromkeys(
        ("loss", "gradient_norm", "goodput"), steps
    )
    assert dict(points["validation_loss"]) == pytest.approx(evaluated, rel=1e-6)
    assert [value for _, value in points["loss"]] == [pytest.approx(line["loss"], rel=1e-6) for line in lines]

    files = sorted((folder / "wandb").glob("offline-run-*/run-*.wandb"), key=lambda path: path.stat().st_mtime_ns)
    identity = json.loads((folder / "tracking.json").read_text())["wandb"]
    assert [path.name for path in files] == [f"run-{identity}.wandb"] * 2
    logged, held_out = [], {}
    for path in files:
        records = wandb_records(path)
        assert [record.exit.exit_code for record in records if record.HasField("exit")] == [0]
        for record in records:
            items = {(item.key or item.nested_key[0]): item.value_json for item in record.history.item}
            if "validation_loss" in items:
                held_out[int(items["trainer/global_step"])] = float(items["validation_loss"])
            elif items:
                logged.append((int(items["trainer/global_step"]), float(items["loss"])))
    assert logged == [(line["step"], pytest.approx(line["loss"])) for line in lines]
    assert held_out == pytest.approx(evaluated)


def test_a_server_that_does_not_answer_delays_nothing(warm: Client, text: Path, tmp_path: Path) -> None:
    need("mlflow")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"http://127.0.0.1:{silent.getsockname()[1]}"
        job = ForkedJob(warm, tmp_path / "job", text)
        settings = (*SMALL, "tracking.trackers=[mlflow]", f"tracking.mlflow_uri={address}", "train.max_steps=100000")
        started = job.begin(*settings, "checkpoint.every=100000")
        wait_for(lambda: len(job.losses()) >= 20, "20 logged steps", lambda: started.poll() is not None)
        os.kill(started.pid, 15)
        began = time.monotonic()
        assert started.wait(60) == 75, started.output()
        assert time.monotonic() - began < 20  # two seconds for the tracker; the rest is a busy machine's
    steps = len(job.losses())
    assert f"MLflow lacks {steps} logged step(s); metrics.jsonl has them all" in started.output()


class Fake:
    """A tracker that fails as often as it is told to, or never answers."""

    def __init__(self, failures: int = 0, hangs: bool = False) -> None:
        self.failures, self.hangs, self.got = failures, hangs, list[Any]()

    def open(self, parameters: Mapping[str, Any]) -> None:
        self._call(dict(parameters))

    def log(self, values: Mapping[str, float], step: int) -> None:
        self._call(step)

    def close(self, ending: str) -> None:
        self._call(ending)

    def _call(self, value: Any) -> None:
        if self.hangs:
            threading.Event().wait(60)
        self.failures -= 1
        if self.failures >= 0:
            raise ConnectionError("nobody there\nand more")
        self.got.append(value)


def test_a_failure_is_said_once_and_what_failed_is_sent_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue, "FIRST_PAUSE", 0.01)
    fake, said = Fake(failures=3), list[str]()
    handed = TrackerQueue("MLflow", fake, {"a": 1}, said.append)
    for step in (1, 2):
        handed.offer(step, {"loss": 1.0})
    wait_for(lambda: len(fake.got) == 3, "steps")
    handed.end("finished")
    handed.wait(time.monotonic() + 10)
    assert fake.got == [{"a": 1}, 1, 2, "finished"]
    assert said == ["MLflow cannot be reached (ConnectionError: nobody there): training goes on, and it is tried again"]


def test_a_tracker_that_hangs_or_stays_away_is_given_up_and_its_queue_is_bounded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(queue, "WAITING", 3)
    for fake, lacks in ((Fake(hangs=True), 5), (Fake(failures=99), 5)):
        said: list[str] = []
        handed = TrackerQueue("MLflow", fake, {}, said.append)
        for step in range(5):
            handed.offer(step, {})
        began = time.monotonic()
        handed.end("interrupted")
        handed.wait(began + 0.5)
        assert time.monotonic() - began < 5
        assert said[-1] == f"MLflow lacks {lacks} logged step(s); metrics.jsonl has them all"


def test_what_cannot_be_is_refused_before_anything_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(
        ConfigError, match=r"tracking\.trackers\.0 is 'comet', but it should be 'tensorboard', 'mlflow'"
    ):
        load(None, ["tracking.trackers=[comet]"])
    with pytest.raises(ConfigError, match="in which one tracker stands twice"):
        load(None, ["tracking.trackers=[wandb,wandb]"])
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"names wandb, which is not installed: pip install 'wandb>=0.20'"):
        check(TrackingConfig(trackers=["wandb"]))
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    with pytest.raises(ConfigError, match=r"neither tracking\.mlflow_uri nor MLFLOW_TRACKING_URI"):
        check(TrackingConfig(trackers=["mlflow"]))
