"""The programs of role logs: they bring what they import, and read what nodes sent as data."""

from __future__ import annotations

import contextlib
import datetime
import http.client
import json
import os
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._credentials import Authority, issue
from ansible_collections.gaudi3.scale.plugins.module_utils._plan.logs import PROGRAMS

from .programs import sources_of

ROOT = Path(__file__).resolve().parents[3]
UTILS = ROOT / "plugins/module_utils"
FILES = ROOT / "roles/logs/files"
NOW = int(time.time())
UNIT = "gaudi-train-llm.service"
#: A journalctl for what is in a file beside the journals; fields hold together as with the real one.
JOURNALCTL = """#!{python}
import json, pathlib, sys
words = sys.argv[1:]
files = [pathlib.Path(word[7:]) for word in words if word.startswith("--file=")]
grep = [word[7:].strip("^").partition("[")[0] for word in words if word.startswith("--grep=")]
groups, wanted = [], [word for word in words if not word.startswith("--")]
for word in wanted:
    if word == "+" or not groups: groups.append([])
    if word != "+": groups[-1].append(word.partition("="))
for file in files:
    text = (pathlib.Path({folder!r}) / file.name).read_text()
    if text == "broken": sys.exit("Failed to open it: \\x1b[31mBad message")
    for line in text.splitlines():
        entry = json.loads(line)
        def holds(group):
            names = {{name for name, _, _ in group}}
            return all(any(entry.get(n) == v for n, _, v in group if n == name) for name in names)
        if groups and not any(map(holds, groups)): continue
        if grep and not str(entry["MESSAGE"]).startswith(grep[0]): continue
        print(line)
"""


@pytest.mark.parametrize("program", PROGRAMS)
def test_every_import_of_a_program_is_brought_along(program: str) -> None:
    assert list(PROGRAMS[program]) == sources_of(FILES / f"{program}.py")


class Collector:
    """The program as the role installs it, over journals of the test's own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.journals = folder / "journals"
        self.journals.mkdir()
        for name, sources in PROGRAMS.items():
            for each in sources:
                target = folder / "engine" / each
                target.parent.mkdir(parents=True, exist_ok=True)
                text = (UTILS / each).read_text().replace('"/var/log/gaudi-logs"', repr(str(self.journals)))
                target.write_text(text)
            (folder / f"{name}.py").write_text((FILES / f"{name}.py").read_text())
        (folder / "engine/__init__.py").touch()
        (folder / "bin").mkdir()
        (folder / "bin/journalctl").write_text(JOURNALCTL.format(python=sys.executable, folder=str(self.journals)))
        (folder / "bin/journalctl").chmod(0o755)

    def sent(self, node: str, *entries: dict[str, Any], file: str = "") -> Path:
        """What has come from a node."""
        path = self.journals / (file or f"{node}.journal")
        path.write_text("".join(json.dumps(each) + "\n" for each in entries))
        return path

    def run(self, program: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-s", str(self.folder / f"{program}.py"), *arguments]
        path = f"{self.folder}/bin:{os.environ['PATH']}"
        return subprocess.run(command, capture_output=True, text=True, check=False, env={"PATH": path, **environment})


@pytest.fixture
def collector(tmp_path: Path) -> Collector:
    return Collector(tmp_path)


def entry(second: int, message: object, pid: int = 1, unit: str = UNIT, **more: Any) -> dict[str, Any]:
    times = {"__REALTIME_TIMESTAMP": str((NOW + second) * 1_000_000), "__MONOTONIC_TIMESTAMP": str(second)}
    fields = {"_SYSTEMD_UNIT": unit, "SYSLOG_IDENTIFIER": "gaudi-train-llm", "_PID": str(pid), "_BOOT_ID": "b"}
    return {**times, **fields, "MESSAGE": message, **more}


def texts(done: subprocess.CompletedProcess[str]) -> list[str]:
    """The lines without their times."""
    return [line[24:] for line in done.stdout.splitlines()]


def test_a_job_is_read_across_nodes_and_one_rank_of_it_on_its_node(collector: Collector) -> None:
    start = "gaudi3-launch: ranks {} to {} are processes 70 71"
    collector.sent(
        "gaudi-1", entry(1, start.format(36, 37), 60), entry(4, "late", 71), entry(4, "late", 71), entry(2, "other", 70)
    )
    collector.sent("gaudi-2", entry(1, start.format(0, 1), 60), entry(3, "first\x1b[2J\nsecond", 71))
    collector.sent("gaudi-3", entry(3, "of another unit", unit="sshd.service"))
    done = collector.run("gaudi_logs", "--job", "llm", "--since", "10m")
    assert (done.returncode, done.stderr) == (0, "")
    assert texts(done)[2:] == [
        "gaudi-1 rank 36: other",
        "gaudi-2 rank 1: first\\x1b[2J\\nsecond",
        "gaudi-1 rank 37: late",
    ]
    assert texts(collector.run("gaudi_logs", "--job", "llm", "--rank", "37")) == ["gaudi-1 rank 37: late"]
    none = collector.run("gaudi_logs", "--job", "llm", "--rank", "99")
    assert (none.returncode, none.stderr) == (
        2, "gaudi-logs: No node has said which process is rank 99 of job llm.\n"
    )  # fmt: skip
    assert len(texts(collector.run("gaudi_logs", "--job", "llm", "--lines", "1"))) == 1


def test_a_terminal_without_the_characters_of_a_line_still_gets_it(collector: Collector) -> None:
    collector.sent("gaudi-1", entry(1, "naïve"))
    done = collector.run("gaudi_logs", "--job", "llm", PYTHONIOENCODING="ascii")
    assert (done.returncode, texts(done), done.stderr) == (0, ["gaudi-1 gaudi-train-llm: na\\xefve"], "")


def test_a_node_cannot_speak_for_another(collector: Collector) -> None:
    forged = entry(1, "m", _HOSTNAME="gaudi-2", SYSLOG_IDENTIFIER="x\n2026-01-01 00:00:00.000 gaudi-2 kernel")
    collector.sent("gaudi-1", forged)
    (line,) = collector.run("gaudi_logs", "--job", "llm").stdout.splitlines()
    assert line[24:].startswith("gaudi-1 x\\n2026")


def test_one_nodes_broken_file_leaves_the_others(collector: Collector) -> None:
    collector.sent("gaudi-1", entry(1, "here"))
    collector.sent("gaudi-2").write_text("broken")
    done = collector.run("gaudi_logs", "--job", "llm")
    assert done.returncode == 1 and texts(done) == ["gaudi-1 gaudi-train-llm: here"]
    assert done.stderr == "gaudi-logs: the logs of gaudi-2 cannot be read: Failed to open it: \\x1b[31mBad message\n"


def test_nodes_are_listed_with_their_last_word(collector: Collector) -> None:
    path = collector.sent("gaudi-1", entry(1, "m"))
    os.utime(path, (NOW, NOW))
    collector.sent("", file="notes.txt")
    (line,) = texts(collector.run("gaudi_logs", "--nodes"))
    assert line == "gaudi-1 0 MB"
    refused = collector.run("gaudi_logs", "--node", "gaudi-9")
    assert (refused.returncode, refused.stderr[:40]) == (2, "gaudi-logs: Nothing has come from 'gaudi")


def test_what_is_too_old_is_deleted(collector: Collector) -> None:
    old = collector.sent("gaudi-1", entry(1, "m"), file="gaudi-1@1-1.journal")
    os.utime(old, (NOW - 7200, NOW - 7200))
    new = collector.sent("gaudi-1", entry(1, "m"))
    done = collector.run("gaudi_logs_retention", "--seconds", "3600", "--bytes", "1000000")
    assert done.stdout == "deleted gaudi-1@1-1.journal\n"
    assert new.exists() and not old.exists()


@pytest.fixture
def listening(collector: Collector, tmp_path: Path) -> Iterator[tuple[int, Path]]:
    """The collector at work with a writer that keeps what it gets, by its port and the folder of certificates."""
    now = datetime.datetime.now(datetime.UTC)
    pair = issue(None, [], 30, now)
    authority = Authority(*pair)
    for name, signed in (("mon", authority), ("gaudi-1", authority), ("x", Authority(*issue(None, [], 30, now)))):
        certificate, key = issue(signed, [name, "127.0.0.1"], 30, now)
        (tmp_path / f"{name}.pem").write_bytes(key + certificate)
        (tmp_path / ("certificate" if name == "mon" else f"{name}.crt")).write_bytes(certificate)
        (tmp_path / ("key" if name == "mon" else f"{name}.key")).write_bytes(key)
    (tmp_path / "authority").write_bytes(pair[0])
    writer = tmp_path / "writer"
    writer.write_text('#!/bin/sh\nset -e\n[ "$3" = - ]\ncat >> "${2#--output=}"\n')
    writer.chmod(0o755)
    program = collector.folder / "gaudi_logs_collector.py"
    program.write_text(program.read_text().replace('"/lib/systemd/systemd-journal-remote"', repr(str(writer))))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-s", str(program), "--address=127.0.0.1", f"--port={port}"]
    with subprocess.Popen([*command, f"--credentials={tmp_path}"]) as process:
        deadline = time.monotonic() + 20
        while True:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
                break
            assert time.monotonic() < deadline
            time.sleep(0.05)
        yield port, tmp_path
        process.terminate()


def send(port: int, folder: Path, who: str, path: str = "/upload", kind: str = "application/vnd.fdo.journal") -> int:
    """Send two batches over one connection, as systemd does; the last status, or that of the first refusal.

    What will be refused goes out in one piece: the answer comes before a body in pieces is all written, and ends the
    connection.
    """
    pieces = path == "/upload" and "journal" in kind
    context = ssl.create_default_context(cafile=str(folder / "authority"))
    if who:
        context.load_cert_chain(folder / f"{who}.pem")
    connection = http.client.HTTPSConnection("127.0.0.1", port, context=context, timeout=10)
    status = 0
    for message in (b"MESSAGE=a\n\n", b"MESSAGE=b\n\n"):
        body = iter([message]) if pieces else message
        connection.request("POST", path, body, {"Content-Type": kind}, encode_chunked=pieces)
        answer = connection.getresponse()
        status = answer.status
        answer.read()
        if status >= 400:
            break
    connection.close()
    return status


def test_a_node_sends_over_tls_and_is_known_by_its_certificate(
    listening: tuple[int, Path], collector: Collector
) -> None:
    port, folder = listening
    assert send(port, folder, "gaudi-1") == 202
    assert (collector.journals / "gaudi-1.journal").read_bytes() == b"MESSAGE=a\n\nMESSAGE=b\n\n"
    for who in ("", "x"):
        with pytest.raises(OSError):
            send(port, folder, who)
    assert send(port, folder, "gaudi-1", path="/entries") == 404
    assert send(port, folder, "gaudi-1", kind="text/plain") == 415
    with socket.create_connection(("127.0.0.1", port), timeout=5) as plain:
        plain.sendall(b"POST /upload HTTP/1.1\r\nContent-Length: 0\r\n\r\n")
        assert b"HTTP" not in plain.recv(100)
    assert [path.name for path in collector.journals.iterdir()] == ["gaudi-1.journal"]


def test_what_cannot_be_written_is_not_acknowledged(listening: tuple[int, Path], collector: Collector) -> None:
    port, folder = listening
    (folder / "writer").write_text("#!/bin/sh\ncat > /dev/null\nexit 1\n")
    assert send(port, folder, "gaudi-1") == 500


def test_what_libraries_log_reaches_the_journal_once(collector: Collector, tmp_path: Path) -> None:
    path = tmp_path / "socket"
    program = collector.folder / "gaudi_logs_vendor.py"
    program.write_text(program.read_text().replace('"/run/systemd/journal/socket"', repr(str(path))))
    logs = tmp_path / "jobs/llm/habana_logs"
    logs.mkdir(parents=True)
    (logs / "hcl.log").write_text("before\n")

    def sent() -> list[bytes]:
        command = [
            "--tools",
            str(tmp_path / "tools"),
            "--jobs",
            str(tmp_path / "jobs"),
            "--state",
            str(tmp_path / "state"),
        ]
        done = collector.run("gaudi_logs_vendor", "--once", *command)
        assert done.returncode == 0, done.stderr
        found = []
        while True:
            try:
                found.append(journal.recv(65536))
            except BlockingIOError:
                return found

    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as journal:
        journal.bind(str(path))
        journal.setblocking(False)
        assert sent() == []
        with (logs / "hcl.log").open("a") as file:
            file.write("[12:00:00][HCL][error] port 3 is down\n")
        (message,) = sent()
        assert b"port 3 is down\n" in message and b"GAUDI_JOB" in message and b"PRIORITY" in message
        assert sent() == []
