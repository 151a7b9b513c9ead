"""Stands in for the vendor's hccl_demo on hosts that are folders: its options and lines, and figures that are made up.

Beside it lies `stand-in.json` with the host's name and a folder in which the hosts meet; there are the faults. The
processes of one job meet as the real ones do, so that a job whose nodes do not run at the same time fails.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import os
import socket
import sys
import time
from pathlib import Path

PATIENCE_S = 15


def arguments() -> argparse.Namespace:
    """What the real program is called with here."""
    parser = argparse.ArgumentParser(allow_abbrev=False)
    for name in ("nranks", "ranks_per_node", "node_id", "loop"):
        parser.add_argument(f"--{name}", type=int, required=True)
    parser.add_argument("--test", required=True)
    parser.add_argument("--size", required=True)
    parser.add_argument("--ranks_list", default="")
    return parser.parse_args()


def names_of_all(path: Path, place: int, number: int, name: str) -> list[str]:
    """The names of all nodes of the job by their places, known to the first alone."""
    deadline = time.monotonic() + PATIENCE_S
    if place:
        with socket.socket(socket.AF_UNIX) as there:
            while there.connect_ex(str(path)):
                if time.monotonic() > deadline:
                    sys.exit("synapse rank could not connect")
                time.sleep(0.02)
            there.sendall(f"{place} {name}".encode())
            there.recv(1)
        return []
    found = {0: name}
    with socket.socket(socket.AF_UNIX) as server, contextlib.ExitStack() as stack:
        server.bind(str(path))
        stack.callback(path.unlink)
        server.listen(number)
        server.settimeout(PATIENCE_S)
        while len(found) < number:
            other = stack.enter_context(server.accept()[0])
            its, _, called = other.recv(200).decode().partition(" ")
            found[int(its)] = called
    return [found[each] for each in range(number)]


def main() -> None:
    """Meet, and print what the real program does."""
    given, about = arguments(), json.loads(Path(__file__).with_name("stand-in.json").read_text())
    number = given.nranks // given.ranks_per_node
    meeting = Path(about["folder"], os.environ["HCCL_COMM_ID"].replace(":", "-"))
    names = names_of_all(meeting, given.node_id, number, about["name"]) if number > 1 else [about["name"]]
    if given.node_id:
        return
    pairs = list(itertools.combinations(names, 2))
    if given.ranks_list:
        ranks = [int(rank) // given.ranks_per_node for rank in given.ranks_list.split(",")]
        pairs = [(names[one], names[other]) for one, other in zip(ranks[::2], ranks[1::2], strict=True)]
    faults = json.loads(Path(about["folder"], "faults.json").read_text())
    slow = any(sorted(pair) in faults["links"] for pair in pairs) or (set(names) & set(faults["nodes"]) and number > 1)
    print(f"[BENCHMARK]     NW Bandwidth   : {2 if slow else 300:.6f} GB/s")


if __name__ == "__main__":
    main()
