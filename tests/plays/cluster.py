"""A few simulated hosts, their inventory, and runs of the real playbooks on them."""

from __future__ import annotations

import atexit
import functools
import json
import marshal
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import ansible

from ..ansible_run import ANSIBLE_PLAYBOOK, CALLBACK, PlaybookRun, callback_that_shows
from . import host as hosts
from .host import CHECKOUT, Host

NOBODY = 65534
SERVER = Path(__file__).with_name("forking_server.py")
#: Settings of the one who runs the tests; without bytecode every start of ansible compiles itself again.
_NOT_PASSED = ("ANSIBLE_", "PYTHONDONTWRITEBYTECODE")
#: Ansible's own warnings, which are about a playbook and not about a host.
_COMPLAINT = re.compile(
    # Not of the callback that prints a run as data, which is the tests' own.
    r"(\[DEPRECATION WARNING\](?!: Importing 'to_text' from 'ansible.module_utils._text')"
    r"|\[WARNING\]: (Using a template for task args|Using any_errors_fatal|Found variable using"
    r"|Encountered \d+ template|conditional statements|Removed unexpected|Reset is not implemented|The loop variable"
    r"|Collection \S+ does not support)).{0,300}"
)
_SUDO = """#!/bin/sh
# Who runs a playbook may not be root, nor become it: this says so, and that it was asked.
echo "$*" >> '{log}'
echo 'sudo: a password is required' >&2
exit 1
"""


@functools.cache
def unprivileged() -> tuple[str, ...]:
    """What makes a command run as a user that is not root; nothing where that is so anyway.

    The user has another number only inside a namespace of its own, so that it can read what its owner can.
    """
    if os.geteuid() != 0:
        return ()
    command = ("unshare", "--user", f"--map-user={NOBODY}", f"--map-group={NOBODY}")
    possible = shutil.which("unshare") and not subprocess.run([*command, "true"], capture_output=True).returncode
    return command if possible else ()


def ansible_complaint(output: str) -> str | None:
    """What Ansible itself says against a playbook in a run's output, with its line; modules may warn of hosts."""
    found = _COMPLAINT.search(" ".join(output.split()))
    return found[0] if found else None


class Server:
    """One process for all plays, whose copies are what a run starts."""

    def __init__(self, kind: str, interpreter: str, *arguments: str) -> None:
        self.place = Path(tempfile.mkdtemp(prefix="gaudi3-plays-")) / kind
        (home := self.place.with_name("home")).mkdir()
        libraries = str(Path(ansible.__file__).parents[1])
        process = subprocess.Popen(
            [*unprivileged(), interpreter, str(SERVER), kind, str(self.place), libraries, *arguments],
            env={**os.environ, "HOME": str(home), "ANSIBLE_NOCOLOR": "1", "ANSIBLE_LOCALHOST_WARNING": "0"},
            stdin=subprocess.PIPE,
        )
        assert process.stdin is not None
        atexit.register(shutil.rmtree, self.place.parent, ignore_errors=True)
        atexit.register(process.wait)
        atexit.register(process.stdin.close)
        while not self.place.exists():
            assert process.poll() is None, f"the server of {kind} has ended: look at its errors above"
            time.sleep(0.02)

    @staticmethod
    @functools.cache
    def of_modules() -> Server:
        """Starts modules on hosts."""
        return Server("modules", hosts.PYTHON, str(hosts.STAND_INS))

    @staticmethod
    @functools.cache
    def of_playbooks() -> Server:
        """Starts ansible-playbook."""
        return Server("playbooks", sys.executable)

    def run(
        self, arguments: list[str], environment: Mapping[str, str], folder: Path, umask: int, timeout: float
    ) -> tuple[int, str, str]:
        """Run a copy to its end; its exit code, and what it said."""
        outside = os.umask(0o22)
        os.umask(outside)
        variables = {os.fsencode(key): os.fsencode(value) for key, value in environment.items()}
        request = marshal.dumps((arguments, variables, str(folder), outside if umask < 0 else umask))
        with (
            socket.socket(socket.AF_UNIX) as asking,
            Path(os.devnull).open("rb") as nothing,
            tempfile.TemporaryFile() as output,
            tempfile.TemporaryFile() as errors,
        ):
            asking.settimeout(timeout)
            asking.connect(str(self.place))
            descriptors = [each.fileno() for each in (nothing, output, errors)]
            socket.send_fds(asking, [len(request).to_bytes(4, "big")], descriptors)
            asking.sendall(request)
            (code,) = asking.recv(1)
            for stream in (output, errors):
                stream.seek(0)
            said = [stream.read().decode(errors="replace") for stream in (output, errors)]
        return (code if code <= 128 else 128 - code), said[0], said[1]


class Cluster:
    """Hosts by name, and the groups of their inventory."""

    def __init__(self, folder: Path, boards: Path | None = None, cheap: bool = True) -> None:
        """With ``cheap`` the same programs are started for less; a benchmark starts them as a user does."""
        self.folder = folder
        self._cheap = cheap
        self._boards = boards
        self.hosts: dict[str, Host] = {}
        self.variables: dict[str, dict[str, Any]] = {}
        self.groups: dict[str, list[str]] = {}
        self.all: dict[str, Any] = {"trainer_job_name": "demo"}
        #: What Ansible may say against a run: nothing, unless a test has hosts that make it say something.
        self.allowed: re.Pattern[str] | None = None
        (folder / "home").mkdir(parents=True)
        (folder / "bin").mkdir()
        sudo = folder / "bin/sudo"
        sudo.write_text(_SUDO.format(log=folder / "sudo.log"))
        sudo.chmod(0o755)
        settings = [f"collections_path = {CHECKOUT / 'collections'}", "inject_facts_as_vars = False"]
        (folder / "ansible.cfg").write_text("\n".join(["[defaults]", *settings, ""]))

    def __getitem__(self, name: str) -> Host:
        return self.hosts[name]

    def add(self, name: str, *groups: str, variables: Mapping[str, Any] | None = None, **kind: Any) -> Host:
        """Add a host to the inventory."""
        made = hosts.make(self.folder / name, name, boards=self._boards, **kind)
        self.hosts[name] = made
        made.give(addresses={"eth0": [f"10.0.0.{len(self.hosts)}"]})
        self.variables[name] = {
            "ansible_connection": "local",
            "ansible_host": f"10.0.0.{len(self.hosts)}",
            "ansible_python_interpreter": str(made.interpreter),
            "ansible_remote_tmp": str(made.folder / "tmp"),
            **(variables or {}),
        }
        for group in groups:
            self.groups.setdefault(group, []).append(name)
        return made

    def inventory(self) -> Path:
        """The inventory's file, written anew."""
        path = self.folder / "inventory/hosts.yml"
        path.parent.mkdir(exist_ok=True)
        groups = {group: {"hosts": dict.fromkeys(names)} for group, names in self.groups.items()}
        tree = {"all": {"vars": self.all, "hosts": self.variables, "children": groups}}
        path.write_text(json.dumps(tree, indent=1))
        return path

    def gaudi(self, number: int, **kind: Any) -> None:
        """Add Gaudi nodes gaudi-1 to gaudi-N, of which the first is the head."""
        for each in range(1, number + 1):
            self.add(f"gaudi-{each}", *(["gaudi", "gaudi_head"] if each == 1 else ["gaudi"]), **kind)

    @property
    def calls(self) -> list[str]:
        """What all hosts' systemctl were asked in the last run, in order, each behind its host's name."""
        path = self.folder / "calls"
        return path.read_text(encoding="utf-8").splitlines() if path.exists() else []

    @property
    def become_asked(self) -> list[str]:
        """What was to be run as root on the controller."""
        try:
            return (self.folder / "sudo.log").read_text().splitlines()
        except FileNotFoundError:
            return []

    @property
    def screen(self) -> str:
        """What the last run with ``screen=True`` would have shown its user."""
        return (self.folder / "screen").read_text(encoding="utf-8")

    def play(
        self,
        playbook: str,
        *arguments: str,
        forks: int = 5,
        inventory: str | None = None,
        screen: bool = False,
        environment: Mapping[str, str] | None = None,
        umask: int = -1,
        **variables: Any,
    ) -> PlaybookRun:
        """Run ``ansible-playbook`` as a user would who has the collection, and no settings but what it demands.

        With ``screen`` what `gaudi3.scale.progress` shows of it is kept, whatever the run's verbosity.
        """
        path = CHECKOUT / "playbooks" / playbook if not playbook.startswith("/") else Path(playbook)
        for folder in (self.folder, *(host.folder for host in self.hosts.values())):
            (folder / "calls").unlink(missing_ok=True)
        words = [str(path), "-i", inventory or str(self.inventory()), "--forks", str(forks)]
        words += ["-e", json.dumps(variables), *arguments]
        given = {
            **{key: value for key, value in os.environ.items() if not key.startswith(_NOT_PASSED)},
            "ANSIBLE_CONFIG": str(self.folder / "ansible.cfg"),
            "ANSIBLE_STDOUT_CALLBACK": CALLBACK,
            "ANSIBLE_NOCOLOR": "1",
            "ANSIBLE_LOCALHOST_WARNING": "0",
            "HOME": str(self.folder / "home"),
            "PATH": f"{self.folder}/bin:{Path(sys.executable).parent}:{os.environ['PATH']}",
            **(callback_that_shows(self.folder / "screen") if screen else {}),
            **(environment or {}),
        }
        fresh = any("ANSIBLE" in key for key in environment or {})
        run = PlaybookRun.read(*self._run(words, given, umask, fresh))
        complaint = ansible_complaint(self.allowed.sub("", run.everything) if self.allowed else run.everything)
        assert complaint is None, f"{playbook}: {complaint}"
        return run

    def _run(self, arguments: list[str], environment: dict[str, str], umask: int, fresh: bool) -> tuple[int, str, str]:
        """Exit code, output and errors of an ansible-playbook, which is a process of its own where it is ``fresh``."""
        if self._cheap:
            environment["STAND_IN_MODULES"] = str(Server.of_modules().place)
            if not fresh:
                return Server.of_playbooks().run(arguments, environment, self.folder, umask, timeout=300)
        result = subprocess.run(
            [*unprivileged(), *(ANSIBLE_PLAYBOOK if self._cheap else ["ansible-playbook"]), *arguments],
            cwd=self.folder, env=environment, capture_output=True, text=True, timeout=300, check=False, umask=umask,
        )  # fmt: skip
        return result.returncode, result.stdout, result.stderr

    def role(self, role: str, *arguments: str, group: str = "gaudi", facts: bool = True, **more: Any) -> PlaybookRun:
        """Run one role, as a play of a site's own does."""
        play = {
            "hosts": group,
            "gather_facts": facts,
            "gather_subset": ["!all", "!min", "platform", "distribution", "pkg_mgr", "service_mgr"],
            "roles": [f"gaudi3.scale.{role}"],
        }
        path = self.folder / f"{role}.yml"
        path.write_text(json.dumps([play]))
        return self.play(str(path), *arguments, **more)
