"""Terraform as this command uses it: one workspace per deployment, machine-readable output, patience with locks."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from gaudi3_deploy import declared, traces
from gaudi3_deploy.advice import advice
from gaudi3_deploy.collection._terraform.plan import errors_of, read_plan
from gaudi3_deploy.collection._terraform.project import teardown
from gaudi3_deploy.collection._terraform.state import State, read_state, values_of
from gaudi3_deploy.collection._traces import SWITCH
from gaudi3_deploy.errors import DeployError, UsageError
from gaudi3_deploy.kept_state import KeptState
from gaudi3_deploy.plan import Plan
from gaudi3_deploy.prepared import Prepared
from gaudi3_deploy.process import PRIVATE, run
from gaudi3_deploy.record import write_atomically

LOCK_TIMEOUT = "900s"
#: Summaries of its errors about what was asked for; the first is that of a variable's own check.
REFUSALS = ("Invalid value for variable", "Invalid value for input variable", "No value for required variable")


class Progress(Protocol):
    """Receives the progress of a run."""

    def total(self, resources: int) -> None:
        """The plan changes this many resources."""

    def began(self, address: str, action: str) -> None:
        """Work on a resource has begun."""

    def done(self, address: str, failed: bool) -> None:
        """Work on it has ended."""

    def log(self, text: str) -> None:
        """A sentence of its own."""


class Terraform:
    """A root module, seen through one workspace."""

    def __init__(
        self,
        directory: Path,
        workspace: str,
        logs: Path,
        progress: Progress,
        executable: str,
        environment: Mapping[str, str] | None = None,
        private: Path | None = None,
    ) -> None:
        """`private`: a folder of which nobody else reads, for what holds the variables; the logs' own parent else."""
        found = shutil.which(executable)
        if found is None:
            raise UsageError(
                f"The command {executable!r} is not on this machine: install Terraform 1.9 or newer, or name it with "
                "--terraform."
            )
        if not any(directory.glob("*.tf")):
            raise UsageError(
                f"There are no Terraform files in {directory}: run this from the collection's checkout, or give the "
                "folder that holds aws/, ibm/, ... with --terraform-dir."
            )
        self._executable = found
        self.directory = directory
        self.workspace = workspace
        self._logs = logs
        self._private = private or logs.parent
        self._progress = progress
        self._environment = {
            **os.environ,
            **(environment or {}),
            "TF_IN_AUTOMATION": "1",
            "TF_INPUT": "0",
            "CHECKPOINT_DISABLE": "1",
        }
        self._environment.pop("TF_WORKSPACE", None)
        # By which Terraform, too, would send traces, with the addresses of all resources.
        self._environment.pop(SWITCH, None)
        self._prepared = Prepared(directory, found, self._environment)
        self._kept = KeptState(directory, workspace, self._private)

    def init(self) -> None:
        """Providers, and the workspace; neither where it would do nothing."""
        there = self._prepared.workspaces()
        if there is None:
            self._logged("init", ["init", "-input=false", "-no-color"], lambda line: None)
        if there is None or self.workspace not in there:
            choose = ["workspace", "select", "-or-create", "-no-color", self.workspace]
            self._logged("workspace", choose, lambda line: None)
            self._prepared.note({self.workspace, *(there or ())})
        self._environment["TF_WORKSPACE"] = self.workspace
        if copy := self._kept.restore():
            self.log(
                f"Terraform's state was broken, as by a power cut while it was written, and is restored from {copy}"
            )

    def plan(
        self,
        variables: Mapping[str, Any],
        destroy: bool = False,
        only: Sequence[str] = (),
        given: Mapping[str, Any] | None = None,
        replace: Sequence[str] = (),
    ) -> Plan:
        """Compare what is wanted with what there is, of all or `only` of some addresses; `given`: more variables.

        The plan lies in a folder of its own until it is applied or discarded: nobody else writes or reads it.
        """
        self._private.mkdir(parents=True, exist_ok=True, mode=0o700)
        folder = Path(tempfile.mkdtemp(prefix="plan-", dir=self._private))
        try:
            return self._plan(folder, variables, destroy, only, given or {}, replace)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise

    def _plan(
        self,
        folder: Path,
        variables: Mapping[str, Any],
        destroy: bool,
        only: Sequence[str],
        given: Mapping[str, Any],
        replace: Sequence[str],
    ) -> Plan:
        out, file = folder / "plan", folder / "variables.tfvars.json"
        write_atomically(file, json.dumps(variables) + "\n")
        command = ["plan", "-json", "-input=false", f"-lock-timeout={LOCK_TIMEOUT}", f"-var-file={file}"]
        command += [f"-out={out}", *(["-destroy"] if destroy else []), *(f"-target={each}" for each in only)]
        command += [f"-replace={each}" for each in replace]
        if destroy:
            given = {**given, **teardown(str(self.directory))}
        command += [f"-var={name}={json.dumps(value)}" for name, value in given.items()]
        said: list[str] = []
        self._logged("plan", command, said.append)
        read = read_plan("\n".join(said), self.state, lambda: json.loads(self._captured(["show", "-json", str(out)])))
        return Plan(**vars(read), path=out)

    def apply(self, plan: Plan) -> None:
        """Make it so, telling how far it is."""
        self._progress.total(plan.count)
        try:
            command = ["apply", "-json", "-input=false", f"-lock-timeout={LOCK_TIMEOUT}", str(plan.path)]
            self._logged("apply", command, self._json_line)
        finally:
            plan.discard()
            self._kept.keep()

    def outputs(self) -> dict[str, Any]:
        """The root module's outputs, by name; empty before the first apply."""
        return values_of(json.loads(self._captured(["output", "-json"])))

    def state(self) -> State:
        """Everything that it made and keeps."""
        return read_state(json.loads(self._captured(["state", "pull"]).strip() or "{}"))

    def untaint(self, address: str) -> None:
        """Take the mark away that a thing has whose making was cut off."""
        self._captured(["untaint", "-no-color", f"-lock-timeout={LOCK_TIMEOUT}", address])

    def take(self, variables: Mapping[str, Any], address: str, identity: str) -> None:
        """Write down a thing that exists."""
        self._private.mkdir(parents=True, exist_ok=True, mode=0o700)
        with tempfile.TemporaryDirectory(prefix="plan-", dir=self._private) as folder:
            file = Path(folder, "variables.tfvars.json")
            write_atomically(file, json.dumps(variables) + "\n")
            options = ["-no-color", "-input=false", f"-lock-timeout={LOCK_TIMEOUT}", f"-var-file={file}"]
            self._captured(["import", *options, address, identity])

    def swap(self, one: str, other: str) -> None:
        """Let two keys of `for_each` change places in the state, with all that has them; at once, or not at all."""
        pulled = json.loads(self._captured(["state", "pull"]))
        places = {one: other, other: one}
        for resource in pulled.get("resources", []):
            for instance in resource.get("instances", []):
                if resource.get("mode") == "managed" and instance.get("index_key") in places:
                    instance["index_key"] = places[instance["index_key"]]
        pulled["serial"] += 1
        self._captured(["state", "push", f"-lock-timeout={LOCK_TIMEOUT}", "-"], given=json.dumps(pulled))

    @property
    def adopts(self) -> bool:
        """Whether the root module can write down what exists, by its variable `adopt`."""
        return "adopt" in self.variables()

    def variables(self) -> set[str]:
        """Names of the root module's variables."""
        return declared.names(self.directory)

    def log(self, text: str) -> None:
        """Tell a sentence."""
        self._progress.log(text)

    def forget(self) -> None:
        """Remove the empty workspace."""
        self._kept.forget()
        self._prepared.void()
        environment = dict(self._environment)
        environment.pop("TF_WORKSPACE", None)
        for arguments in (["workspace", "select", "default"], ["workspace", "delete", self.workspace]):
            subprocess.run(
                [self._executable, *arguments],
                cwd=self.directory,
                env=environment,
                check=False,
                capture_output=True,
                timeout=300,
                umask=PRIVATE,
            )

    def _json_line(self, line: str) -> None:
        try:
            event = json.loads(line)
        except ValueError:
            return
        kind, hook = event.get("type"), event.get("hook", {})
        address = hook.get("resource", {}).get("addr", "")
        if hook.get("action") == "read":
            return
        if kind == "apply_start":
            self._progress.began(address, hook.get("action", ""))
        elif kind in ("apply_complete", "apply_errored"):
            self._progress.done(address, kind == "apply_errored")
            self._kept.keep()

    def _logged(self, verb: str, arguments: list[str], on_line: Callable[[str], None]) -> None:
        """Run with its output in a log; a failure is reported in terraform's own words."""
        log = self._logs / f"{time.strftime('%Y%m%dT%H%M%S')}-{verb}.log"
        errors: list[str] = []
        refused = 0

        def listen(line: str) -> None:
            nonlocal refused
            errors.extend(found := errors_of(line))
            refused += len(found) if any(each in line for each in REFUSALS) else 0
            on_line(line)

        def interrupted(times: int) -> None:
            self._progress.log(
                "interrupted: terraform finishes what it has begun, then stops"
                if times == 1
                else "interrupted again: terraform is told to stop at once; look whether anything was left behind"
            )

        with traces.span(f"terraform {verb}"):
            code = run([self._executable, *arguments], log, self._environment, listen, interrupted, self.directory)
        if code:
            self._prepared.void()
            reason = "; ".join(dict.fromkeys(errors)) or _tail(log)
            if errors and refused == len(errors):
                raise UsageError(f"{reason} (whole output: {log})")
            raise DeployError(
                f"terraform {verb} failed (exit code {code}): {reason}{advice(reason)} (whole output: {log})"
            )

    def _captured(self, arguments: list[str], allowed: tuple[int, ...] = (0,), given: str = "") -> str:
        result = subprocess.run(
            [self._executable, *arguments],
            cwd=self.directory,
            env=self._environment,
            check=False,
            capture_output=True,
            text=True,
            timeout=300,
            umask=PRIVATE,
            input=given,
        )
        if result.returncode not in allowed:
            self._prepared.void()
            raise DeployError(f"terraform {arguments[0]} failed: {result.stderr.strip() or result.stdout.strip()}")
        return result.stdout


def _tail(log: Path) -> str:
    lines = [line.strip(" │╷╵") for line in log.read_text(encoding="utf-8", errors="replace").splitlines()]
    wanted = [line for line in lines if line]
    start = next((n for n, line in enumerate(wanted) if line.startswith("Error")), max(0, len(wanted) - 3))
    return " ".join(wanted[start : start + 6])
