# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Planning and applying in one workspace of a terraform project."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from typing import Any

from .._refusal import Refusal
from .command import first_error
from .plan import Plan, errors_of, read_plan
from .state import State, read_state, values_of
from .storage import stays_when_tainted

#: Seconds for an interrupted terraform to write its state and give its lock back.
GRACE = 60.0
#: Of what terraform writes: a state holds addresses, and on IBM Cloud the key pair of the checkpoints' bucket.
PRIVATE = 0o077
#: The variable of the modules that says that everything is destroyed.
TEARDOWN = "teardown"


def teardown(folder: str) -> dict[str, bool]:
    """What is set where everything is destroyed, if the root module knows it: nothing is refused then."""
    for name in sorted(os.listdir(folder)):
        if name.endswith(".tf"):
            with open(os.path.join(folder, name), encoding="utf-8") as stream:
                if f'variable "{TEARDOWN}"' in stream.read():
                    return {TEARDOWN: True}
    return {}


class Project:
    """A root module seen through one workspace. The state's lock keeps others out."""

    def __init__(self, folder: str, workspace: str, executable: str, lock_timeout: int, timeout: float = 7200) -> None:
        self._folder = folder
        self._workspace = workspace
        self._executable = executable
        self._lock = f"-lock-timeout={lock_timeout}s"
        self._timeout = timeout

    def init(self) -> None:
        """Fetch providers and modules, where they are not there yet."""
        self._call("init", "-input=false", "-no-color")

    def state(self) -> State:
        """The whole state; empty where there is none yet."""
        return read_state(json.loads(self._call("state", "pull") or "{}"))

    def keep_half_made(self) -> None:
        """Take Terraform's mark from what an interrupted apply left and what must not be replaced, such as a key."""
        for resource in self.state().resources:
            if resource.tainted and stays_when_tainted(resource):
                self._call("untaint", self._lock, resource.address)

    def plan(
        self, variables: Mapping[str, Any], folder: str, destroy: bool, only: Sequence[str] = ()
    ) -> tuple[Plan, str]:
        """Compare what is wanted with what there is; the plan, and the file that ``apply`` takes.

        ``folder`` gets the variables and the plan, which holds them too: it must be the user's alone. ``only`` are
        addresses, where not all is to be looked at.
        """
        given, planned = os.path.join(folder, "variables.tfvars.json"), os.path.join(folder, "plan")
        with open(os.open(given, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as stream:
            json.dump({**variables, **teardown(self._folder)} if destroy else variables, stream)
        arguments = ["-input=false", "-json", self._lock, f"-var-file={given}", f"-out={planned}"]
        arguments += [*(["-destroy"] if destroy else []), *(f"-target={address}" for address in only)]
        said = self._call("plan", *arguments)
        return read_plan(said, self.state, lambda: json.loads(self._call("show", "-json", planned))), planned

    def apply(self, planned: str) -> None:
        """Do what was planned."""
        self._call("apply", "-input=false", "-json", self._lock, planned)

    def outputs(self) -> dict[str, Any]:
        """The outputs' values, without those marked sensitive; empty before the first apply and after a destroy."""
        told = json.loads(self._call("output", "-json") or "{}")
        return values_of({name: output for name, output in told.items() if not output.get("sensitive")})

    def forget(self) -> None:
        """Remove the empty workspace. The one called default always is."""
        if self._workspace != "default":
            self._call("workspace", "delete", "-no-color", self._workspace, inside=False)

    def _call(self, *arguments: str, inside: bool = True) -> str:
        environment = {**os.environ, "TF_IN_AUTOMATION": "1", "TF_INPUT": "0", "CHECKPOINT_DISABLE": "1"}
        environment.pop("TF_WORKSPACE", None)
        if inside:
            environment["TF_WORKSPACE"] = self._workspace
        done = self._run([self._executable, *arguments], environment)
        if done.returncode != 0:
            told = errors_of(done.stdout)
            reason = " ".join(told) if told else f"{first_error(done.stderr or done.stdout)}."
            raise Refusal(f"'terraform {arguments[0]}' failed in {self._folder}: {reason}")
        return done.stdout

    def _run(self, command: list[str], environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
        """The command's end, which is brought about after the time limit."""
        with subprocess.Popen(
            command,
            cwd=self._folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            umask=PRIVATE,
        ) as process:
            try:
                output, errors = process.communicate(timeout=self._timeout)
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGINT)
                try:
                    process.communicate(timeout=GRACE)
                except subprocess.TimeoutExpired:
                    process.kill()
                raise Refusal(
                    f"'terraform {command[1]}' did not end within {self._timeout:g} seconds in {self._folder} and was "
                    "interrupted: look at the provider and the backend, run the same again, or raise timeout."
                ) from None
            return subprocess.CompletedProcess(command, process.returncode, output, errors)
