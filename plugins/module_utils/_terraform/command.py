# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Calling terraform: its arguments, its environment, its refusals."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping
from typing import Any, Optional

from .._refusal import Refusal
from .state import State, read_json, read_state, values_of


class Terraform:
    """One project, and how to ask about it. Nothing here changes anything."""

    def __init__(self, project: str, executable: str = "terraform", workspace: Optional[str] = None, timeout: int = 60):
        self._project = project
        self._executable = executable
        self._workspace = workspace
        self._timeout = timeout

    def outputs(self) -> dict[str, Any]:
        """The outputs' values; empty where nothing was made yet."""
        return values_of(read_json(self._call("output", "-json") or "{}", f"What terraform says of {self._project}"))

    def state(self) -> Optional[State]:
        """The whole state; None where there is none yet."""
        text = self._call("state", "pull").strip()
        return read_state(read_json(text, f"The state of {self._project}")) if text else None

    def _environment(self) -> Mapping[str, str]:
        own = {"TF_IN_AUTOMATION": "1", "CHECKPOINT_DISABLE": "1", "TF_CLI_ARGS": ""}
        return {**os.environ, **own, **({"TF_WORKSPACE": self._workspace} if self._workspace else {})}

    def _call(self, *arguments: str) -> str:
        if not os.path.isdir(self._project):
            raise Refusal(
                f"project_path is {self._project}, which is no folder: give the folder where terraform was run."
            )
        command = [self._executable, *arguments]
        try:
            done = subprocess.run(
                command,
                cwd=self._project,
                env=self._environment(),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=self._timeout,
                check=False,
            )
        except FileNotFoundError:
            raise Refusal(
                f"{self._executable} was not found: install it, name it in executable, or give output_file with what "
                "'terraform output -json' printed elsewhere."
            ) from None
        except subprocess.TimeoutExpired:
            raise Refusal(
                f"'{' '.join(command)}' gave no answer within {self._timeout} seconds: look at the backend of "
                f"{self._project}, or raise timeout."
            ) from None
        if done.returncode != 0:
            raise Refusal(
                f"'{' '.join(command)}' failed in {self._project} ({first_error(done.stderr)}): run "
                "'terraform init' there, and then this command by hand."
            )
        return done.stdout


def first_error(text: str) -> str:
    """The headline of terraform's first error, without its frame and colours."""
    plain = re.sub(r"\x1b\[[0-9;]*m", "", text)
    for line in plain.splitlines():
        headline = line.lstrip("│╷╵ ")
        if headline.startswith("Error:"):
            return headline[len("Error:") :].strip()
    return next((line.strip("│╷╵ ") for line in plain.splitlines() if line.strip("│╷╵ ")), "without a word")
