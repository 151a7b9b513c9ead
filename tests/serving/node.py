"""A node that serves, in a folder: real HAProxy with the role's configuration, and the role's program for each replica.

systemd is not there. `Replica` starts and ends the program as its unit would.
"""

from __future__ import annotations

import datetime
import grp
import hashlib
import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ansible_collections.gaudi3.scale.plugins.module_utils._credentials import Authority, issue
from ansible_collections.gaudi3.scale.plugins.module_utils._serving import balancer, command

from .clients import Client
from .processes import family

ROOT = Path(__file__).resolve().parents[2]
FILES = ROOT / "roles/serving/files"
STAND_IN = [sys.executable, str(Path(__file__).with_name("stand_in_vllm.py"))]
KEY = "a-key-of-the-tests"
TOOLS = ROOT / ".cache/tools"


def haproxy() -> tuple[str, dict[str, str]]:
    """Debian's HAProxy, installed or unpacked by the Makefile; its path, and what it needs to find its libraries."""
    unpacked = TOOLS / "usr/sbin/haproxy"
    found = shutil.which("haproxy", path=f"{os.environ['PATH']}:/usr/sbin") or str(unpacked)
    libraries = Path(found).parents[1] / "lib/x86_64-linux-gnu"
    return found, {**os.environ, **({} if found == "/usr/sbin/haproxy" else {"LD_LIBRARY_PATH": str(libraries)})}


def free_ports(count: int) -> list[int]:
    """Ports of the loopback address that nobody listens on."""
    holders = [socket.socket() for _each in range(count)]
    for holder in holders:
        holder.bind(("127.0.0.1", 0))
    ports = [holder.getsockname()[1] for holder in holders]
    for holder in holders:
        holder.close()
    return ports


def wait(what: Callable[[], Any], seconds: float = 20.0, said: str = "") -> Any:
    """Until it is true."""
    limit = time.monotonic() + seconds
    while not (found := what()):
        assert time.monotonic() < limit, f"waited {seconds} s: {said}"
        time.sleep(0.02)
    return found


class Replica:
    """One replica under the role's program."""

    def __init__(self, node: Node, name: str) -> None:
        self.node, self.name = node, name
        self.settings = node.folder / f"{name}.json"
        self.state = node.folder / f"{name}.state"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, ready: bool = True, seconds: float = 20.0) -> None:
        """Start the program, and wait until it says that the engine is ready."""
        log = (self.node.folder / f"{self.name}.log").open("ab")
        self.process = subprocess.Popen(
            [sys.executable, "-IS", str(FILES / "gaudi_serving_replica.py"), str(self.settings)],
            stdout=log,
            stderr=subprocess.STDOUT,
            env={"PATH": os.environ["PATH"]},
        )
        log.close()
        if ready:
            wait(self.said, seconds, f"{self.name} is not ready")

    def said(self) -> dict[str, Any]:
        """What the program has written down."""
        try:
            return dict(json.loads(self.state.read_text(encoding="utf-8")))
        except (FileNotFoundError, json.JSONDecodeError):
            return {}

    def end(self, seconds: float = 60.0) -> int:
        """SIGTERM, as systemd sends it, to the program alone."""
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(seconds)

    def restart(self, seconds: float = 60.0) -> None:
        """As `systemctl restart` does."""
        self.end(seconds)
        self.start(seconds=seconds)

    def children(self) -> list[int]:
        """Processes of the engine, the server first."""
        assert self.process is not None
        return family(self.process.pid)


class Node:
    """Replicas behind one address."""

    def __init__(self, folder: Path, replicas: int = 2, peers: Mapping[str, tuple[str, int]] | None = None) -> None:
        self.folder = folder
        (folder / "releases").mkdir(parents=True)
        port, metrics, *ports = free_ports(2 + replicas)
        names = [f"replica-{number}" for number in range(1, replicas + 1)]
        own = grp.getgrgid(os.getegid()).gr_name
        self.plan = balancer.Balancer(
            *("127.0.0.1", port, metrics, dict(zip(names, ports, strict=True))),
            group=own,
            runtime=str(folder),
            folder=str(folder),
        )
        self.replicas = [Replica(self, name) for name in names]
        self.balancer: subprocess.Popen[bytes] | None = None
        self._certificates()
        (folder / "keys").write_text(hashlib.sha256(KEY.encode()).hexdigest() + "\n")

    def _certificates(self) -> None:
        now = datetime.datetime.now(datetime.UTC)
        authority = Authority(*issue(None, [], 30, now))
        certificate, key = issue(authority, ["localhost", "127.0.0.1"], 2, now)
        for name, content in (("ca.crt", authority.certificate), ("server.crt", certificate), ("server.key", key)):
            (self.folder / name).write_bytes(content)

    def release(self, name: str, model: Path, program: Sequence[str], **more: Any) -> Path:
        """A release of a model for all replicas, not yet the current one."""
        place = self.folder / "releases" / name
        place.mkdir()
        (place / "model").symlink_to(model)
        settings = {}
        for each, port in self.plan.replicas.items():
            engine = command.Engine("vllm-cpu", port, "job", **more)
            argv = [*program, *command.serve_argv(engine, "vllm")[1:]]
            environment = {**command.environment_of(engine, str(self.folder)), "PYTHONPATH": str(FILES)}
            settings[each] = {"argv": argv, "environment": environment, "health": ["127.0.0.1", port], "probe": "job"}
        (place / "release.json").write_text(json.dumps({"replicas": settings}))
        return place

    def serve(self, release: Path, environment: Mapping[str, str] | None = None, **times: float) -> None:
        """Make a release the current one, for what is started from now on."""
        text = json.loads((release / "release.json").read_text())
        for each in text["replicas"].values():
            each["environment"].update(environment or {})
        (release / "release.json").write_text(json.dumps(text))
        link = self.folder / "current.new"
        link.symlink_to(release)
        link.rename(self.folder / "current")
        for replica in self.replicas:
            own = {
                "name": replica.name,
                "links": [str(self.folder / "current")],
                "state": str(replica.state),
                "balancer": {"socket": str(self.folder / "admin.sock"), "server": f"replicas/{replica.name}"},
                "start_seconds": 30,
                "drain_seconds": 60,
                **times,
            }
            replica.settings.write_text(json.dumps(own))

    def start_balancer(self, **changes: Any) -> None:
        """HAProxy, with the role's configuration."""
        self.plan = replace(self.plan, **changes)
        path = self.folder / "haproxy.cfg"
        path.write_text(balancer.configuration(self.plan))
        program, environment = haproxy()
        subprocess.run([program, "-c", "-q", "-f", str(path)], check=True, env=environment)
        log = (self.folder / "haproxy.log").open("ab")
        self.balancer = subprocess.Popen(
            [program, "-db", "-f", str(path)], stdout=log, stderr=subprocess.STDOUT, env=environment
        )
        log.close()

    @property
    def client(self) -> Client:
        """Who talks to the balancer."""
        context = ssl.create_default_context(cafile=str(self.folder / "ca.crt"))
        return Client("127.0.0.1", self.plan.port, key=KEY, context=context)

    def close(self) -> None:
        """End everything."""
        for replica in self.replicas:
            if replica.process and replica.process.poll() is None:
                left = replica.children()
                replica.process.kill()
                replica.process.wait()
                for pid in left:
                    try:
                        os.kill(pid, signal.SIGKILL)
                    except ProcessLookupError:
                        continue
        if self.balancer:
            self.balancer.kill()
            self.balancer.wait()
