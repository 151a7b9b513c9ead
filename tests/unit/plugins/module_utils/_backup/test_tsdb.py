"""Prometheus' data is copied while the real Prometheus writes it, and another one has every sample of it.

Needs prometheus and promtool (Debian: apt-get download prometheus, and dpkg -x).
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._backup import manifest, tree, tsdb
from ansible_collections.gaudi3.scale.plugins.module_utils._refusal import Refusal

BLOCK = "01HF" + "0" * 22


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


@contextmanager
def prometheus(folder: Path, data: Path) -> Iterator[str]:
    """The real one with its own page as its target; killed at the end, as by a power cut."""
    program, address = shutil.which("prometheus"), f"127.0.0.1:{free_port()}"
    assert program, "prometheus is missing: apt-get download prometheus, and dpkg -x"
    often = "scrape_interval: 100ms, scrape_timeout: 100ms"
    text = f"scrape_configs: [{{job_name: own, {often}, static_configs: [{{targets: ['{address}']}}]}}]"
    (folder / "prometheus.yml").write_text(text + "\n")
    own = [f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={data}", f"--web.listen-address={address}"]
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(
            [program, *own, "--storage.tsdb.retention.time=100y"], stdout=log, stderr=subprocess.STDOUT
        )
        try:
            yield f"http://{address}"
        finally:
            process.kill()
            process.wait()


def samples(page: str, query: str) -> list[Any]:
    """All values of one series; none while it does not answer."""
    try:
        with urllib.request.urlopen(f"{page}/api/v1/query?query={quote(query)}", timeout=10) as answer:
            found = json.load(answer)["data"]["result"]
    except OSError:
        return []
    return found[0]["values"] if found else []


def awaited(page: str, query: str, least: int) -> list[Any]:
    end = time.monotonic() + 120
    while time.monotonic() < end:
        found = samples(page, query)
        if len(found) >= least:
            return found
        time.sleep(0.1)
    raise AssertionError(f"{page} has not {least} of {query}")


def test_another_prometheus_has_every_sample_of_a_copy_that_was_made_while_one_ran(tmp_path: Path) -> None:
    data, copy = tmp_path / "metrics2", tmp_path / "copy"
    data.mkdir()
    old = tmp_path / "old.txt"
    old.write_text("".join(f"cards {value} {1700000000 + 60 * value}\n" for value in range(5)) + "# EOF\n")
    made = subprocess.run(
        [str(shutil.which("promtool")), "tsdb", "create-blocks-from", "openmetrics", old, data],
        check=False, capture_output=True, text=True,
    )  # fmt: skip
    assert made.returncode == 0, made.stderr
    recent, ancient = 'up{job="own"}[1h]', "cards[100y]"
    with prometheus(tmp_path, data) as page:
        before = awaited(page, recent, 5)
        entries = tsdb.copy(str(data), str(copy), "prometheus-data")
        assert len(awaited(page, ancient, 5)) == 5
    found = {entry.path: entry.content for entry in tree.scan(str(copy), "prometheus-data") if entry.size}
    assert found == {entry.path: entry.content for entry in entries if entry.size}
    assert not (copy / "lock").exists() and not (copy / "chunks_head").exists()
    (block,) = (entry.path for entry in entries if entry.path.endswith("/index"))
    assert (copy / block).stat().st_ino == (data / block).stat().st_ino, "blocks are linked, which costs no room"
    with prometheus(tmp_path, copy) as page:
        # Its own samples come later.
        after = awaited(page, recent, len(before))
        assert after[: len(before)] == before
        assert [value for _moment, value in samples(page, ancient)] == ["0", "1", "2", "3", "4"]


def made_by_hand(folder: Path) -> Path:
    for name in (
        "wal/00000001",
        "wal/00000002",
        f"{BLOCK}/meta.json",
        f"{BLOCK}/chunks/000001",
        "lock",
        "queries.active",
    ):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    (folder / f"{BLOCK[:-1]}1.tmp-for-creation").mkdir()
    (folder / f"{BLOCK[:-1]}2").mkdir()  # without meta.json: a block that is only being made
    return folder


def test_a_log_that_became_a_block_meanwhile_is_copied_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the second look, samples that were in the log when it was listed would be in neither."""
    data = made_by_hand(tmp_path / "metrics2")
    original, seen = tsdb.take, []

    def taken(source: str, *arguments: Any, **more: Any) -> Any:
        found = original(source, *arguments, **more)
        if source.endswith("/wal") and not seen:
            seen.append(source)
            os.unlink(data / "wal/00000001")
            (data / "wal/checkpoint.00000001").mkdir()
            (data / "wal/checkpoint.00000001/00000000").write_text("checkpoint")
        return found

    monkeypatch.setattr(tsdb, "take", taken)
    entries = tsdb.copy(str(data), str(tmp_path / "copy"), "d")
    assert [entry.path for entry in entries if entry.kind == manifest.PLAIN] == [
        "wal/00000002", "wal/checkpoint.00000001/00000000", f"{BLOCK}/chunks/000001", f"{BLOCK}/meta.json",
    ]  # fmt: skip
    assert sorted(os.listdir(tmp_path / "copy")) == [BLOCK, "wal"]


def test_a_folder_that_never_stands_still_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = made_by_hand(tmp_path / "metrics2")
    original = tsdb.take

    def taken(source: str, *arguments: Any, **more: Any) -> Any:
        if source.endswith(BLOCK):
            raise FileNotFoundError(source)
        return original(source, *arguments, **more)

    monkeypatch.setattr(tsdb, "take", taken)
    with pytest.raises(Refusal, match=r"changed its blocks each time it was read: run again in a few minutes\.$"):
        tsdb.copy(str(data), str(tmp_path / "copy"), "d")
    with pytest.raises(FileNotFoundError):
        tsdb.copy(str(tmp_path / "nowhere"), str(tmp_path / "copy"), "d")
