"""A job on nodes that break: the real trainer and launcher, simulated cards, the health engine and the healing loop.

A node is a folder with simulated cards and their tools, and one launcher of the job. What the playbook does to a node
is done here to its launcher and its tools: stop the job, reset, reload the driver, boot. There is no systemd, no ssh
and no Ansible in it.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from conftest import free_port, kill, workers
from killing import SETTINGS
from zygote import Client, Started

sys.path.append(str(Path(__file__).resolve().parents[2] / "collections"))
sys.path.append(str(Path(__file__).resolve().parents[2] / "tests/unit/plugins"))

from health_machine import Node, Nodes

from ansible_collections.gaudi3.scale.plugins.module_utils._files import write_file
from ansible_collections.gaudi3.scale.plugins.module_utils._health import controller
from ansible_collections.gaudi3.scale.plugins.module_utils._health.collect import Sources, collect
from ansible_collections.gaudi3.scale.plugins.module_utils._health.engine import CONFIRM, Tracker
from ansible_collections.gaudi3.scale.plugins.module_utils._health.examine import Examination, Patience
from ansible_collections.gaudi3.scale.plugins.module_utils._health.healing import (
    OUT,
    Decision,
    Done,
    Policy,
)
from ansible_collections.gaudi3.scale.plugins.module_utils._health.passport import versions_of
from ansible_collections.gaudi3.scale.plugins.module_utils._hl_smi.command import HlSmi

GRACE = 6.0
"""Seconds that a launcher gets to leave, as a unit's TimeoutStopSec is; after them it is killed."""
RETURN = 40.0
"""Seconds after which a node returns although no spare node trains."""
INTERVAL = 1.0
"""Seconds between readings that confirm each other, and between looks at the nodes."""
HELD_AT = 62
"""Step after which a job waits for the verdicts that are due, however slow the readings are beside it. No checkpoint
is made there, so that a node that goes on makes a step."""
RDZV = "--rdzv-conf=last_call_timeout=1,is_host="


@dataclass
class Seen:
    """What was seen of one healing, in seconds of the monotonic clock."""

    readings: int = 0
    """That the verdict took."""
    first_reading: float = 0.0
    verdict: float = 0.0
    left: float = 0.0
    step: str = ""
    repair_s: float = 0.0
    new_step: float = 0.0


@dataclass
class Site:
    """Nodes, their job, and the loop over them."""

    client: Client
    folder: Path
    text: Path
    nodes: list[Node]
    working: int = 2
    steps: int = 80
    pace: float = 0.04
    policy: Policy = field(default_factory=lambda: Policy(mode="enforce", retry_s=2.0))
    holds: bool = False
    """Whether the job waits at `HELD_AT` for the file `go`."""

    def __post_init__(self) -> None:
        self.folder.mkdir()
        self.go = self.folder / "go"
        self.port = free_port()
        self.names = [f"gaudi-{number}" for number in range(len(self.nodes))]
        self.launchers: dict[int, Started] = {}
        self.state = self.folder / "fleet.json"
        self.ever_out: set[str] = set()
        self.decided: list[Decision] = []
        self.seen: dict[str, Seen] = {}
        self._struck = time.time()
        self._watches: list[threading.Thread] = []
        self._began = time.monotonic()

    # The job

    def start(self, number: int) -> None:
        """Start a node's launcher; node 0 has the rendezvous."""
        here = self.folder / f"node{number}"
        here.mkdir(exist_ok=True)
        arguments = ["--replace", f"--status={here / 'status.json'}", f"--nnodes={self.working}", "--nproc-per-node=1"]
        arguments += ["--rdzv-backend=c10d", f"--rdzv-endpoint=127.0.0.1:{self.port}", "--rdzv-id=test"]
        arguments += [RDZV + str(number == 0).lower(), "--max-restarts=5", "--monitor-interval=0.1", "--no-python"]
        settings = [*SETTINGS, f"data.source={self.text}", f"train.max_steps={self.steps}"]
        arguments += ["gaudi3-train", "fit", *settings, f"output_dir={here}"]
        environment = {"PAUSE_EACH": str(self.pace), "TORCH_ELASTIC_SHUTDOWN_TIMEOUT": "4"}
        if self.holds:
            environment |= {"PAUSE_AT": str(HELD_AT), "PAUSE_UNTIL": str(self.go)}
        self.launchers[number] = self.client.start("launch", arguments, environment, self.folder / f"log{number}")

    def status(self, number: int) -> dict[str, Any]:
        """The content of status.json; empty before there is one."""
        try:
            found: dict[str, Any] = json.loads((self.folder / f"node{number}/status.json").read_text())
        except (OSError, ValueError):
            return {}
        return found

    def losses(self, number: int) -> list[tuple[int, float]]:
        """Step and loss."""
        try:
            lines = (self.folder / f"node{number}/metrics.jsonl").read_text().splitlines()
        except OSError:
            return []
        return [(line["step"], line["loss"]) for line in map(json.loads, lines)]

    def logs(self) -> str:
        """What the launchers of all nodes said, those that left among them."""
        return "\n".join(f"{path.name}:\n{path.read_text()}" for path in sorted(self.folder.glob("log*")))

    def trains(self, number: int) -> bool:
        """Whether a node's launcher has a worker, which a spare node has not."""
        launcher = self.launchers.get(number)
        return launcher is not None and launcher.poll() is None and bool(workers(launcher.pid))

    def strike(self, number: int, effect: str) -> None:
        """What the fault does to the job on its node: nothing, kills all of it or its process, or has that hang."""
        self._struck = time.time()
        if effect == "none":
            return
        launcher = self.launchers[number]
        for pid in [*workers(launcher.pid), *([launcher.pid] if effect == "killed" else [])]:
            kill(pid, signal.SIGSTOP if effect == "hung" else signal.SIGKILL)

    def leave(self, number: int) -> None:
        """Stop the job on a node, as systemd stops its unit."""
        launcher = self.launchers.pop(number)
        if launcher.poll() is not None:
            return
        kill(launcher.pid, signal.SIGTERM)
        end = time.monotonic() + GRACE
        while launcher.poll() is None and time.monotonic() < end:
            time.sleep(0.02)
        if launcher.poll() is None:
            for pid in [*workers(launcher.pid), launcher.pid]:
                kill(pid, signal.SIGKILL)
            launcher.wait(10)

    def close(self) -> None:
        """End what still runs."""
        for launcher in self.launchers.values():
            if launcher.poll() is None:
                for pid in [*workers(launcher.pid), launcher.pid]:
                    kill(pid, signal.SIGCONT)
                    kill(pid, signal.SIGKILL)
                launcher.wait(10)
        for watch in self._watches:
            watch.join(10)

    # The nodes

    def on(self, number: int) -> Node:
        """The node, with the tools of this process set to it and to the present time."""
        node = self.nodes[number]
        os.environ["GAUDI3_SIMULATOR_ROOT"] = str(node.machine.root)
        node.machine.at(1_700_000_000.0 + time.monotonic() - self._began + 3600)
        return node

    def examine(self, number: int, first: list[float] | None = None) -> Examination:
        """One examination as ``gaudi_health_info`` makes it; ``first`` gets the time of a first suspicious reading."""
        tracker, run = Tracker(8), Patience(self.nodes[number]._run)
        best, report, count = None, None, 0
        while report is None or (report.suspects and count < CONFIRM):
            if count:
                time.sleep(INTERVAL)
            node = self.on(number)
            began = time.monotonic()
            sources = Sources(run, HlSmi("hl-smi", run), os.uname().release, str(node.machine.root))
            reading = collect(sources, node.machine.now)
            report, count = tracker.step(reading), count + 1
            if report.suspects and first is not None and not first:
                first.append(began)
            best = reading if best is None or reading.cards else best
        assert best is not None
        return Examination(report, best, count)

    def carry_out(self, number: int, step: str, components: list[str]) -> bool:
        """Do a step to a node, as the playbook does it."""
        machine = self.on(number).machine
        if step == "retry":
            good = machine.run("manage_network_ifs.sh", "--down").code == 0
        elif step == "reset":
            cards = sorted({int(name.split()[0][5:]) for name in components if name.startswith("accel")})
            bus_ids = [machine.csv("bus_id")[card][0] for card in cards]
            good = all(machine.run("hl-smi", "-r", "-i", bus_id).code == 0 for bus_id in bus_ids)
        elif step == "reload":
            for name in ("habanalabs_ib", "habanalabs_en", "habanalabs_cn", "habanalabs"):
                machine.run("modprobe", "-r", name)
            good = all(
                machine.run("modprobe", name).code == 0
                for name in ("ib_uverbs", "habanalabs", "habanalabs_cn", "habanalabs_en", "habanalabs_ib")
            )
        else:
            machine.reboot()
            good = True
        machine.run("manage_network_ifs.sh", "--up")
        return good

    # The loop

    def look(self, dies: bool = False) -> None:
        """Examine every node once, decide, and carry the decisions out; with ``dies`` none but the fences."""
        self.decide()
        self.act(dies)

    def decide(self) -> None:
        """Examine every node once, and decide."""
        fleet = self._fleet()
        for number, name in enumerate(self.names):
            if fleet.nodes[name].state == OUT or name in controller.work(fleet, self.policy):
                continue
            taken_at, first = time.time(), list[float]()
            examination = self.examine(number, first)
            report = {**examination.report.as_dict(), "versions": versions_of(examination.reading)}
            events = controller.observe(fleet.nodes[name].state, name, report, taken_at)
            before = set(controller.out_of_service(fleet))
            fleet = self._decide(events)
            if name in set(controller.out_of_service(fleet)) - before:
                step = fleet.nodes[name].step
                self.seen[name] = Seen(examination.readings, first[0], time.monotonic(), step=step)
                self.ever_out.add(name)

    def act(self, dies: bool) -> None:
        """Bring the nodes to what the state's file says. With ``dies`` the controller ends before the first repair."""
        fleet = self._fleet()
        for name in controller.out_of_service(fleet):
            self.ever_out.add(name)
            if self.names.index(name) in self.launchers:
                self.leave(self.names.index(name))
                self.seen[name].left = time.monotonic()
                self._watch_for_the_next(name)
        while todo := controller.work(fleet, self.policy):
            if dies:
                return
            name, what = next(iter(todo.items()))
            number, began = self.names.index(name), time.monotonic()
            good = self.carry_out(number, what["step"], what["components"])
            fleet = self._decide([Done(name, good)])
            if good:
                taken_at = time.time()
                examination = self.examine(number)
                report = {**examination.report.as_dict(), "versions": versions_of(examination.reading)}
                fleet = self._decide(controller.observe(fleet.nodes[name].state, name, report, taken_at))
            self.seen[name].repair_s += time.monotonic() - began
        out = controller.out_of_service(fleet)
        for name in self.ever_out - set(out):
            number = self.names.index(name)
            if number not in self.launchers and self._is_replaced(name):
                self.start(number)  # as the spare that it is now

    def _is_replaced(self, name: str) -> bool:
        """Wait until a spare node trains: a reset takes no time here, and a node must not come back before that."""
        end = time.monotonic() + RETURN
        while self.launchers[0].poll() is None and not self.seen[name].new_step and time.monotonic() < end:
            time.sleep(0.05)
        return self.launchers[0].poll() is None

    def _fleet(self) -> Any:
        text = self.state.read_text() if self.state.exists() else None
        return controller.restore(text, self.names, self.names[self.working :])

    def _decide(self, events: list[Any]) -> Any:
        """Decide from the file, and write it before anything is done."""
        fleet, decisions = controller.advance(self._fleet(), events, time.time(), self.policy)
        write_file(str(self.state), controller.dump(fleet), 0o600)
        self.decided += decisions
        return fleet

    def _watch_for_the_next(self, name: str) -> None:
        """Note when another node has made its first new step, which may have started before this one has left."""
        struck = self._struck
        others = [number for number in range(1, len(self.nodes)) if self.names[number] != name]

        def steps(number: int) -> bool:
            status, done = self.status(number), self.losses(number)
            resumed = status.get("resumed_from_step") if status.get("started_at", 0) > struck else None
            return bool(done) and resumed is not None and done[-1][0] > resumed

        def watch() -> None:
            over = False
            while not over and not self.seen[name].new_step:
                over = self.launchers[0].poll() is not None  # then this look is the last
                if any(map(steps, others)):
                    self.seen[name].new_step = time.monotonic()
                time.sleep(0.1)

        self._watches.append(threading.Thread(target=watch, daemon=True))
        self._watches[-1].start()


def make(nodes: Nodes, count: int) -> list[Node]:
    """Nodes of eight cards, of which each has its name."""
    return [nodes.loaded("HL-325L") for _ in range(count)]


#: Faults that take a node out, and the step that follows, as the matrix has them.
DRAINING = {
    "needs-reset": ("reset", "--card", "3"),
    "temperature-zero": ("reset", "--card", "2"),
    "ecc-uncorrected": ("reset", "--card", "1"),
    "row-pending": ("reset", "--card", "5"),
    "memory-kept": ("reset", "--card", "4"),
    "kernel-event": ("reset", "--card", "3"),
    "in-device-creation": ("reload", "--card", "6"),
    "reset-failed": ("reload", "--card", "7"),
    "firmware-skew": ("reload", "--card", "0"),
    "port-down": ("reload", "--card", "3", "--port", "7"),
    "version-skew": ("reload",),
    "driver-not-loaded": ("reload",),
    "card-missing": ("reboot", "--card", "3"),
    "pcie-width": ("reboot", "--card", "3"),
    "pcie-generation": ("reboot", "--card", "1"),
    "cpu-timeout": ("isolate", "--card", "2"),
    "card-in-reset": ("reset", "--card", "3"),
}
#: Faults that take no node out: a user's, a check's own, and what is only watched.
SPARED = {
    "device-acquired": ("--card", "3"),
    "hl-smi-garbage": (),
    "hl-smi-hang": (),
    "temperature-absurd": ("--card", "3"),
    "throttled-power": ("--card", "3"),
    "ecc-corrected": ("--card", "3"),
}
EFFECTS = ("none", "killed", "hung")


@dataclass(frozen=True)
class Case:
    """Faults by node, what they do to the job's process, and at which step; ``dies`` has the controller restarted."""

    name: str
    kind: str
    faults: tuple[tuple[int, str], ...]
    effect: str
    at_step: int
    dies: bool = False


def cases(seed: int) -> list[Case]:
    """Fifty cases: 34 of one fault, 6 of two at once, 4 with a controller that dies, 6 that must take nothing out."""
    draw = random.Random(seed)
    names = list(DRAINING)
    made = []
    for number in range(34):
        fault, effect = names[number % len(names)], EFFECTS[number % 3]
        made.append(Case(f"{number + 1:02}-{fault}-{effect}", "one", ((1, fault),), effect, draw.randrange(6, 30)))
    resets = names[:12]
    for number in range(34, 40):
        first, second = draw.sample(resets, 2)
        faults = ((1, first), (2, second))
        effect = EFFECTS[number % 3]
        made.append(Case(f"{number + 1:02}-{first}-and-{second}", "two", faults, effect, draw.randrange(6, 30)))
    for number in range(40, 44):
        fault = draw.choice(resets)
        made.append(
            Case(f"{number + 1:02}-{fault}-restarted", "restarted", ((1, fault),), "none", draw.randrange(6, 30), True)
        )
    for number, fault in enumerate(SPARED, 44):
        made.append(Case(f"{number + 1:02}-{fault}-spared", "spared", ((1, fault),), "none", draw.randrange(6, 20)))
    for number, fault in enumerate(resets[:6], 50):
        name = f"{number + 1:02}-{fault}-process-killed"
        made.append(Case(name, "process", ((1, fault),), "process", draw.randrange(6, 30)))
    return made
