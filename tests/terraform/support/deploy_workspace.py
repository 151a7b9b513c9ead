"""A folder with a copy of the tree, where `gaudi3-deploy` is called, and where a call of it is cut off."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from .account import Account
from .ibm_account import IbmAccount
from .standin import GAUDI
from .tool import KEY, answer, copied, user_environment

TREE = Path(__file__).resolve().parents[3] / "terraform"
REPLACE = ("replace", "cluster", "cluster-02", "--yes")
DOWN = ("down", "cluster", "--yes")


@dataclass(frozen=True)
class Commands:
    """What is called on a cloud, for two nodes and a monitor."""

    cloud: str
    kind: str
    settings: tuple[str, ...]
    way: tuple[str, ...]
    """A way in, which `run` asks for."""

    @property
    def up(self) -> tuple[str, ...]:
        """Make them."""
        return ("up", "cluster", "--cloud", self.cloud, "--size", "16", "--type", self.kind, "--yes")

    @property
    def run(self) -> tuple[str, ...]:
        """Run a job on them."""
        what = ("run", "job.yml", "--name", "cluster", "--on", self.cloud)
        return (*what, "--size", "16", "--type", self.kind, "--yes")

    def whole(self, command: str) -> tuple[str, ...]:
        """A command with all that it is given the first time."""
        made = {"up": (*self.up, *self.settings), "run": (*self.run, *self.settings, *self.way)}
        return {**made, "replace": REPLACE, "down": DOWN}[command]


COMMANDS = {
    "aws": Commands(
        "aws",
        "dl1.24xlarge",
        ("--var", "region=us-east-1", "--var", f"ssh_public_key={KEY}"),
        ("--var", "jump_host=me@gate"),
    ),
    "ibm": Commands(
        "ibm",
        GAUDI,
        ("--var", f"ssh_public_key={KEY}"),
        ("--var", "public_entry=existing", "--var", "jump_host=me@gate"),
    ),
}
UP, RUN, SETTINGS, WAY = COMMANDS["aws"].up, COMMANDS["aws"].run, COMMANDS["aws"].settings, COMMANDS["aws"].way


@dataclass(frozen=True)
class Instant:
    """When a call is cut off, counted at the service and not by a clock, and how."""

    #: An operation of the service, or * for all that change something.
    action: str
    #: How many of them are done.
    count: int
    #: power: all ends at once; ctrl-c: as a terminal does it; alone: Terraform goes on by itself.
    how: str

    def __str__(self) -> str:
        return f"{self.how} after {self.action.replace('*', 'change')} {self.count}"


AnAccount = TypeVar("AnAccount", Account, IbmAccount)


class DeployWorkspace(Generic[AnAccount]):
    """The command, in a folder of its own, on an account."""

    def __init__(self, folder: Path, account: AnAccount, provider: Mapping[str, str] | None = None) -> None:
        """``provider`` is one that calls share, but for those that are cut off, with which theirs ends."""
        self.folder = folder
        self._provider = provider or {}
        self.account: AnAccount = account
        self.commands = COMMANDS[account.cloud]
        self.environment = {
            **user_environment(account.environment),
            "GAUDI3_DEPLOYMENTS": str(folder / "deployments"),
            "HOME": str(folder),
        }
        (folder / "gate").mkdir(exist_ok=True)
        self.environment["PATH"] = f"{self._tools()}:{self.environment.get('PATH', os.defpath)}"
        (folder / "job.yml").write_text("trainer_job_name: job\n")
        copied(TREE, folder / "terraform")

    def _tools(self) -> Path:
        """Stand-ins for what comes after Terraform: nodes that let everybody in, and playbooks that do nothing."""
        tools = self.folder / "tools"
        tools.mkdir(exist_ok=True)
        (self.folder / "written/job").mkdir(parents=True, exist_ok=True)
        fetched = f'case "$*" in *" tar "*) tar -C {self.folder / "written"} -cf - job;; esac'
        playbook = f'echo "$*" >> {self.folder / "plays"}; [ ! -e {self.folder / "fail"} ]'
        for name, text in {"ssh": fetched, "ansible-playbook": playbook}.items():
            (tools / name).write_text(f"#!/bin/sh\n{text}\n")
            (tools / name).chmod(0o755)
        return tools

    @property
    def work(self) -> Path:
        """Where Terraform runs: the copy of the tree beside the records."""
        return self.folder / "deployments/.terraform" / self.commands.cloud

    def run(self, *arguments: str, code: int = 0) -> str:
        """Run the command to its end; what it said."""
        return answer(["gaudi3-deploy", *arguments], {**self.environment, **self._provider}, code, self.folder)

    def terraform(self, *arguments: str, code: int = 0) -> str:
        """Run terraform in the deployment's workspace."""
        environment = {**self.environment, **self._provider, "TF_WORKSPACE": "cluster"}
        return answer(["terraform", *arguments], environment, code, self.work)

    def cut_off(self, instant: Instant, *arguments: str) -> bool:
        """Start the command and end it at an instant, counted from now on; whether that came before its end."""
        gate = self.folder / "gate"
        (gate / "held").unlink(missing_ok=True)
        (gate / "hold").write_text(json.dumps({"action": instant.action, "count": instant.count + self._done(instant)}))
        process = subprocess.Popen(
            ["gaudi3-deploy", *arguments],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            deadline = time.monotonic() + 600
            while not (gate / "held").exists():
                if process.poll() is not None:
                    return False
                assert time.monotonic() < deadline, "the instant did not come"
                time.sleep(0.1)
            if instant.how == "power":
                self.kill_all(process)
            elif instant.how == "ctrl-c":
                os.killpg(process.pid, signal.SIGINT)
                self.wait_for_log("nterrupt")
            else:
                process.kill()
            (gate / "hold").unlink()
            process.wait(timeout=300)
            return True
        finally:
            (gate / "hold").unlink(missing_ok=True)
            if process.poll() is None:
                self.kill_all(process)

    def _done(self, instant: Instant) -> int:
        """How many of an instant's operations are done."""
        log = self.folder / "gate/actions"
        done = log.read_text().split() if log.exists() else []
        return len(done) if instant.action == "*" else done.count(instant.action)

    def wait_for_log(self, word: str) -> None:
        """Until Terraform has said a word."""
        deadline = time.monotonic() + 60
        log = max(self.folder.glob("deployments/cluster/logs/*-apply.log"))
        while word not in log.read_text():
            assert time.monotonic() < deadline, f"terraform never said {word}"
            time.sleep(0.1)

    def state(self) -> dict[str, Any]:
        """Terraform's state as it is on disk."""
        path = self.work / "terraform.tfstate.d/cluster/terraform.tfstate"
        found: dict[str, Any] = json.loads(path.read_text()) if path.exists() and path.stat().st_size else {}
        return found

    def tainted(self) -> list[str]:
        """Types of what is marked as half made."""
        return [
            each["type"]
            for each in self.state().get("resources", [])
            for instance in each["instances"]
            if instance.get("status") == "tainted"
        ]

    def kill_all(self, process: subprocess.Popen[bytes]) -> None:
        """End the command and all that works in this folder for it, at one instant: none sees the others end."""
        everybody = [process.pid]
        for each in Path("/proc").glob("[0-9]*"):
            try:
                if (each / "cwd").readlink().is_relative_to(self.work.parent):
                    everybody.append(int(each.name))
            except OSError:
                continue
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for pid in everybody:
                try:
                    os.kill(pid, number)
                except ProcessLookupError:
                    continue

    def endpoints(self) -> dict[str, dict[str, Any]]:
        """The machines on record."""
        outputs = json.loads((self.folder / "deployments/cluster/outputs.json").read_text())
        return dict(outputs["cluster_endpoints"])


def cpu_seconds(of: Callable[[], Any]) -> tuple[Any, float]:
    """What a function gives, and the CPU seconds of the processes that ended meanwhile."""

    def used() -> float:
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime

    before = used()
    given = of()
    return given, used() - before
