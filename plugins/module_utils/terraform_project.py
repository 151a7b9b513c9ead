# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Planning and applying in one workspace of a terraform project."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.gaudi3.scale.plugins.module_utils.terraform_command import first_error
from ansible_collections.gaudi3.scale.plugins.module_utils.terraform_plan import (
    Plan,
    errors_of,
    failed_checks,
    read_plan,
)
from ansible_collections.gaudi3.scale.plugins.module_utils.terraform_state import TerraformStateError
from ansible_collections.gaudi3.scale.plugins.module_utils.terraform_storage import to_be_kept_as_they_are


class Project:
    """A root module seen through one workspace. The state's lock keeps others out."""

    def __init__(self, folder: str, workspace: str, executable: str, lock_timeout: int) -> None:
        self._folder = folder
        self._workspace = workspace
        self._executable = executable
        self._lock = f"-lock-timeout={lock_timeout}s"

    def init(self) -> None:
        """Fetch providers and modules, where they are not there yet."""
        self._call("init", "-input=false", "-no-color")

    def state(self) -> dict[str, Any]:
        """The whole state; empty where there is none yet."""
        pulled: dict[str, Any] = json.loads(self._call("state", "pull") or "{}")
        return pulled

    def keep_half_made(self) -> None:
        """Take Terraform's mark from what an interrupted apply left and what must not be made anew, such as a key."""
        for address in to_be_kept_as_they_are(self.state()):
            self._call("untaint", self._lock, address)

    def plan(
        self, variables: Mapping[str, Any], folder: str, destroy: bool, only: Sequence[str] = ()
    ) -> tuple[Plan, str]:
        """Compare what is wanted with what there is; the plan, and the file that ``apply`` takes.

        ``folder`` gets the variables and the plan, which holds them too: it must be the user's alone. ``only`` are
        addresses, where not all is to be looked at.
        """
        given, planned = os.path.join(folder, "variables.tfvars.json"), os.path.join(folder, "plan")
        with open(os.open(given, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as stream:
            json.dump(variables, stream)
        arguments = ["-input=false", "-json", self._lock, f"-var-file={given}", f"-out={planned}"]
        arguments += [*(["-destroy"] if destroy else []), *(f"-target={address}" for address in only)]
        said = self._call("plan", *arguments)
        plan = read_plan(json.loads(self._call("show", "-json", planned)))
        plan.warnings = failed_checks(said)
        return plan, planned

    def apply(self, planned: str) -> None:
        """Do what was planned."""
        self._call("apply", "-input=false", "-json", self._lock, planned)

    def outputs(self) -> dict[str, Any]:
        """The outputs' values; empty before the first apply and after a destroy."""
        return {name: output["value"] for name, output in json.loads(self._call("output", "-json") or "{}").items()}

    def forget(self) -> None:
        """Remove the empty workspace. The one called default always is."""
        if self._workspace != "default":
            self._call("workspace", "delete", "-no-color", self._workspace, inside=False)

    def _call(self, *arguments: str, inside: bool = True) -> str:
        environment = {**os.environ, "TF_IN_AUTOMATION": "1", "TF_INPUT": "0", "CHECKPOINT_DISABLE": "1"}
        environment.pop("TF_WORKSPACE", None)
        if inside:
            environment["TF_WORKSPACE"] = self._workspace
        done = subprocess.run(
            [self._executable, *arguments],
            cwd=self._folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            told = errors_of(done.stdout)
            reason = " ".join(told) if told else f"{first_error(done.stderr or done.stdout)}."
            raise TerraformStateError(f"'terraform {arguments[0]}' failed in {self._folder}: {reason}")
        return done.stdout
