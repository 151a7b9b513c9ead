"""Files of the vendor's libraries: each line once, and nobody's file by a link of somebody else."""

from __future__ import annotations

import os
import struct
from pathlib import Path

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._logs import following


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    (tmp_path / "tools").mkdir()
    return tmp_path / "tools"


@pytest.fixture
def jobs(tmp_path: Path) -> Path:
    (tmp_path / "jobs/llm/habana_logs/0").mkdir(parents=True)
    return tmp_path / "jobs"


def names(tools: Path, jobs: Path) -> list[tuple[str, str]]:
    return [(Path(each.path).name, each.job) for each in following.files(str(tools), str(jobs))]


def test_files_of_tools_and_of_jobs(tools: Path, jobs: Path) -> None:
    (tools / "hl-smi.log").write_text("a\n")
    (tools / "core.bin").write_text("a\n")
    (jobs / "llm/habana_logs/0/hcl.log").write_text("a\n")
    (jobs / "llm/metrics.log").write_text("no log of a library\n")
    assert names(tools, jobs) == [("hl-smi.log", ""), ("hcl.log", "llm")]
    assert names(tools / "none", jobs / "none") == []


def test_no_link_is_followed(tools: Path, jobs: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret.log"
    secret.write_text("key\n")
    logs = jobs / "llm/habana_logs"
    alone = tmp_path / "alone.log"
    alone.write_text("key\n")
    (logs / "link.log").symlink_to(alone)
    os.link(secret, logs / "hard.log")
    (logs / "folder").symlink_to(tmp_path)
    os.mkfifo(logs / "pipe.log")
    (jobs / "other").mkdir()
    (jobs / "other/habana_logs").symlink_to(tmp_path)
    (jobs / "third").symlink_to(jobs / "llm")
    assert names(tools, jobs) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_a_file_of_another_owner_is_not_a_jobs(tools: Path, jobs: Path) -> None:
    path = jobs / "llm/habana_logs/hcl.log"
    path.write_text("a\n")
    os.chown(path, 12345, -1)
    assert names(tools, jobs) == []


def read(path: Path, offset: int, most: int = 10**6) -> tuple[list[bytes], int]:
    handle = os.open(path, os.O_RDONLY)
    try:
        found = following.LogFile(handle, str(path), "", path.stat().st_size, "k")
        return following.new_lines(found, offset, most)
    finally:
        os.close(handle)


def test_each_line_is_read_once_and_when_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_text("one\ntwo\nthr")
    assert read(path, 0) == ([b"one", b"two"], 8)
    assert read(path, 8) == ([], 8)
    path.write_text("one\ntwo\nthree\n")
    assert read(path, 8) == ([b"three"], 14)
    assert read(path, 0, most=5) == ([b"one"], 4)
    path.write_text("new\n")
    assert read(path, 14) == ([b"new"], 4), "it was cut"


def test_a_line_without_an_end_is_cut(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(b"x" * (following.OF_A_LINE + 7))
    (line,), offset = read(path, 0)
    assert (len(line), offset) == (following.OF_A_LINE, following.OF_A_LINE + 7)


@pytest.mark.parametrize(
    ("line", "priority"),
    [
        (b"[12:00:01][HCL ][error][tid:1] port down", 3),
        (b"[12:00:01][SYN_API   ][info ][tid:1] x", 6),
        (b"[WARNING] x", 4),
        (b"[critical ] x", 2),
        (b"plain [error", 5),
        (b"x" * 300 + b"[error]", 5),
    ],
)
def test_priorities(line: bytes, priority: int) -> None:
    assert following.priority(line) == priority


def test_no_line_end_in_a_path_begins_another_field() -> None:
    sent = following.datagram(b"m", "/jobs/x\n_UID=0/a.log", "llm")
    path = b"/jobs/x\n_UID=0/a.log"
    assert b"GAUDI_LOG_FILE\n" + struct.pack("<Q", len(path)) + path + b"\n" in sent
    assert b"GAUDI_JOB" not in following.datagram(b"m", "/a.log", "")


def test_what_was_there_before_the_first_run_is_not_sent() -> None:
    assert following.start_of("k", 50, {}, is_first_run=True) == 50
    assert following.start_of("k", 50, {}, is_first_run=False) == 0
    assert following.start_of("k", 50, {"k": 20}, is_first_run=False) == 20
