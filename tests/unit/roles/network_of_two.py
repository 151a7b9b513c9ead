"""Two hosts in network namespaces: which ports of the one does the other reach, from each of its addresses?

Run as ``unshare --map-root-user --net python network_of_two.py``; reads what to do and prints the answer, both as JSON.
The first host listens; nothing outside of the namespaces is touched, and they end with this program.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from typing import Any

REACH = """
import json, select, socket, sys, time
asked = json.load(sys.stdin)
tries, answered, end = {}, set(), time.monotonic() + asked["patience"]
for source in asked["sources"]:
    version = "6" if ":" in source else "4"
    for port in asked["ports"]:
        one = tries[source, port] = socket.socket(socket.AF_INET6 if version == "6" else socket.AF_INET)
        one.bind((source, 0))
        one.setblocking(False)
        one.connect_ex((asked["node"][version], port))
while time.monotonic() < end and len(answered) < len(tries):
    waiting = [one for key, one in tries.items() if key not in answered]
    ready = select.select([], waiting, [], 0.05)[1]
    answered |= {key for key, one in tries.items() if one in ready}
good = {key for key in answered if tries[key].getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0}
print(json.dumps({source: [port for port in asked["ports"] if (source, port) in good] for source in asked["sources"]}))
"""
EARLY = """
import socket, sys
connection = socket.create_connection((sys.argv[1], int(sys.argv[2])), source_address=(sys.argv[3], 0))
print("up", flush=True)
connection.sendall(connection.recv(9))
"""


def run(*words: str, **more: Any) -> str:
    """A command's output; its failure is the program's."""
    done = subprocess.run(words, capture_output=True, text=True, check=False, **more)
    if done.returncode:
        sys.exit(f"{' '.join(words)}: {done.stderr or done.stdout}")
    return done.stdout


def main() -> None:
    asked = json.load(sys.stdin)
    peer = subprocess.Popen(["unshare", "--net", "sh", "-c", "echo ready; exec cat"], stdin=-1, stdout=-1, text=True)
    assert peer.stdout and peer.stdout.readline() == "ready\n"
    inside = ("nsenter", "--target", str(peer.pid), "--net")
    run("ip", "link", "add", "node", "type", "veth", "peer", "name", "others", "netns", str(peer.pid))
    run("ip", "link", "set", "lo", "up")
    for address in asked["node"].values():
        run("ip", "address", "add", f"{address}/{64 if ':' in address else 24}", "dev", "node", *nodad(address))
    for address in asked["sources"]:
        prefix = f"{address}/{64 if ':' in address else 24}"
        run(*inside, "ip", "address", "add", prefix, "dev", "others", *nodad(address))
    run("ip", "link", "set", "node", "up")
    run(*inside, "ip", "link", "set", "others", "up")
    listeners = [
        socket.create_server(("::", port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=64)
        for port in asked["ports"]
    ]
    # A connection of before, which nothing may cut.
    early = subprocess.Popen(
        [*inside, sys.executable, "-c", EARLY, asked["node"]["4"], str(asked["early"]), asked["sources"][-1]],
        stdout=-1, text=True,
    )  # fmt: skip
    assert early.stdout and early.stdout.readline() == "up\n"
    connection, _ = listeners[asked["ports"].index(asked["early"])].accept()
    for text in asked["rulesets"]:
        run("nft", "-f", "-", input=text)
    connection.settimeout(1)
    connection.sendall(b"still up")
    try:
        said = connection.recv(9).decode()
    except TimeoutError:
        said = "cut"
    found = json.loads(run(*inside, sys.executable, "-c", REACH, input=json.dumps(asked)))
    own = [port for port in asked["ports"] if answers(asked["node"]["4"], port)]
    tables = run("nft", "list", "ruleset")
    print(json.dumps({"reached": found, "own": own, "early": said, "tables": tables}))
    sys.stdout.flush()
    peer.kill()
    os._exit(0)


def nodad(address: str) -> list[str]:
    """IPv6 addresses that can be used at once."""
    return ["nodad"] if ":" in address else []


def answers(host: str, port: int) -> bool:
    try:
        socket.create_connection((host, port), timeout=1).close()
    except OSError:
        return False
    return True


if __name__ == "__main__":
    main()
