# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Read the logs that nodes have sent to this host, across nodes and in the order of time.

    gaudi-logs --job my-job --rank 37 --since 10m
    gaudi-logs --kernel --since 1h --node gaudi-5
    gaudi-logs --nodes

Times are UTC, by the clocks of the nodes. A node's name is that of its certificate.
"""

from __future__ import annotations

import argparse
import io
import os
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NoReturn

from engine._logs.entries import Entry, Ranks, entry_of, merged, once, ranks_of, shown_time
from engine._logs.questions import DIRECTORY, Question, by_sender, pids_of, seconds
from engine._printable import printable
from engine._refusal import Refusal

AT_ONCE = 4
TIMEOUT = 120


def main() -> NoReturn:
    """Print the entries, and on standard error which nodes could not be read."""
    parser = argparse.ArgumentParser(
        prog="gaudi-logs", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--job", default="", help="a job: what it, its libraries and systemd say of it")
    parser.add_argument("--rank", type=int, help="only the process of this rank")
    parser.add_argument("--kernel", action="store_true", help="the kernel's messages, beside those of a job or alone")
    parser.add_argument("--since", help="how far back, as 90s, 10m, 2h or 1d")
    parser.add_argument("--node", action="append", default=[], help="only this node; repeatable")
    parser.add_argument("--lines", type=int, default=1000, help="how many of the last lines at most [1000]")
    parser.add_argument(
        "--nodes", action="store_true", help="the nodes that have sent something, and when they did last"
    )
    asked = parser.parse_args()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal may lack the characters of a line
            stream.reconfigure(errors="backslashreplace")
    try:
        code = tell_nodes() if asked.nodes else tell(asked)
    except Refusal as refusal:
        print(f"gaudi-logs: {refusal}", file=sys.stderr)
        code = 2
    except BrokenPipeError:
        code = 0
    sys.stdout.flush()
    os._exit(code)


def journals() -> list[str]:
    """The names of the collector's files; ``Refusal`` where they cannot be read."""
    try:
        return [path.name for path in Path(DIRECTORY).iterdir()]
    except OSError as error:
        raise Refusal(f"{DIRECTORY} cannot be read ({error.strerror}): run this as root on the collector.") from error


def tell_nodes() -> int:
    """One line for each node."""
    for node, files in by_sender(journals()).items():
        about = [Path(DIRECTORY, name).stat() for name in files]
        last, size = max(each.st_mtime for each in about), sum(each.st_blocks * 512 for each in about)
        print(f"{shown_time(int(last * 1_000_000))} {node} {size / 1_000_000:.0f} MB")
    return 0


def tell(asked: argparse.Namespace) -> int:
    """The entries of one question; 1 where a node's could not be read."""
    since = time.time() - seconds(asked.since) if asked.since else None
    question = Question(asked.job, asked.rank, asked.kernel, since, tuple(asked.node), asked.lines)
    found = by_sender(journals(), question.nodes)
    entries: list[Entry] = []
    starts: list[Ranks] = []
    failed = False
    with ThreadPoolExecutor(AT_ONCE) as pool:
        answers = pool.map(lambda node: asked_of(question, node, found[node]), found)
        for node, (lines, ranks, problem) in zip(found, answers):
            entries = merged([*entries, *lines], question.lines)
            starts += ranks
            if problem:
                failed = True
                print(f"gaudi-logs: the logs of {node} cannot be read: {problem}", file=sys.stderr)
    if question.rank is not None and not pids_of(question.rank, starts):
        raise Refusal(f"No node has said which process is rank {question.rank} of job {question.job}.")
    for entry in entries:
        print(entry.line(starts))
    return int(failed)


def asked_of(question: Question, node: str, files: Sequence[str]) -> tuple[list[Entry], list[Ranks], str]:
    """Entries of one node, the starts of the job there, and what is wrong."""
    ranks: list[Ranks] = []
    if question.job:
        lines, _problem = call(question.starts(files), node)
        ranks = [each for line in lines if (each := ranks_of(line))]
    pids = pids_of(question.rank, ranks) if question.rank is not None else []
    if question.rank is not None and not pids and not question.kernel:
        return [], ranks, ""
    lines, problem = call(question.command(files, pids), node)
    return once(each for each in lines if question.wants(each, ranks)), ranks, problem


def call(command: Sequence[str], node: str) -> tuple[list[Entry], str]:
    """What journalctl prints, and what is wrong with it."""
    environment: Mapping[str, str] = {**os.environ, "LC_ALL": "C.UTF-8", "TZ": "UTC"}
    try:
        done = subprocess.run(command, capture_output=True, check=False, timeout=TIMEOUT, env=environment)
    except (OSError, subprocess.TimeoutExpired) as error:
        return [], printable(error, 300)
    problem = ""
    if done.returncode not in (0, 1) or (done.returncode and done.stderr):
        problem = printable(done.stderr.decode("utf-8", "replace").strip() or f"exit code {done.returncode}", 300)
    return list(read(done.stdout.decode("utf-8", "replace").split("\n"), node)), problem


def read(lines: Iterable[str], node: str) -> Iterable[Entry]:
    """The entries among lines."""
    return (entry for line in lines if line and (entry := entry_of(line, node)))


if __name__ == "__main__":
    main()
