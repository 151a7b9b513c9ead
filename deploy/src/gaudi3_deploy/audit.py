"""What commands change, as lines of the record that Ansible's callback `gaudi3.scale.audit` writes too.

A command has a line when it begins and one when it ends, so that one that was killed is seen.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from gaudi3_deploy import record, traces
from gaudi3_deploy.collection._audit import chain, entries
from gaudi3_deploy.errors import DeployError, UsageError
from gaudi3_deploy.messages import reason

CALLBACK = "gaudi3.scale.audit"
#: Commands that hold a deployment and change nothing but what is known of it on this machine.
LOOKS = ("plan", "wait", "inventory")


def path(deployments: Path) -> Path:
    """The file of the record: as GAUDI3_AUDIT says, else beside the records; `forget` removes none of it."""
    given = os.environ.get(entries.VARIABLE)
    return Path(entries.default_path(os.environ)) if given else deployments / entries.FILE


@contextlib.contextmanager
def recorded(deployments: Path, name: str, command: str, **more: str) -> Iterator[None]:
    """Record that a command is going to change a deployment, and what became of it.

    Raises DeployError before anything is done where the record cannot be written.
    """
    if command in LOOKS:
        yield
        return
    file = path(deployments)
    what = {"by": "gaudi3-deploy", "command": command, "deployment": name, **more}
    before = _state(deployments, name)
    try:
        _append(file, {"result": "begun", "what": what, "before": before})
    except OSError as error:
        raise DeployError(
            f"Nothing was done: the audit record {file} cannot be written ({reason(error)}): mend that, or set "
            f"{entries.VARIABLE} to a file that can be."
        ) from None
    end: dict[str, Any] = {"result": "failed"}
    try:
        yield
        end = {"result": "done"}
    except BaseException as error:
        code = getattr(error, "exit_code", None)  # of typer.Exit
        if code == 0:
            end = {"result": "done"}
        elif isinstance(error, UsageError | DeployError):
            end["said"] = entries.shown(str(error))
        else:
            end["said"] = type(error).__name__ if code is None else f"exit code {code}"
        raise
    finally:
        try:
            _append(file, {**end, "what": what, "before": before, "after": _state(deployments, name)})
        except OSError as error:
            print(f"gaudi3-deploy: the end of {command} is not in {file} ({reason(error)})", file=sys.stderr)


def environment(deployments: Path, checkout: Path | None, tracing: Mapping[str, str]) -> dict[str, str]:
    """What Ansible gets for its changes to be in the same record, beside what it gets for traces."""
    names = tracing.get(traces.ENABLED) or traces.enabled(checkout)
    plugins = [each.strip() for each in names.split(",") if each.strip()]
    if CALLBACK not in plugins:
        plugins.append(CALLBACK)
    return {**tracing, traces.ENABLED: ",".join(plugins), entries.VARIABLE: str(path(deployments))}


def _append(file: Path, entry: Mapping[str, Any]) -> None:
    chain.append(str(file), {"at": entries.now(), "who": entries.who(os.environ), **entry})


def _state(deployments: Path, name: str) -> Any:
    """What is on record of a deployment: phase, paid nodes, variables; None where there is none."""
    try:
        found = record.load(deployments, name)
    except DeployError:
        return "unreadable"
    if found is None:
        return None
    return entries.shown({"phase": found.phase, "nodes": found.nodes, **found.variables})
