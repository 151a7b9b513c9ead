# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""What stands in a line of the record: when, who, what, before and after, result.

Secrets stay out: what no_log hides is not there to begin with, and lines that show a secret are replaced.
"""

from __future__ import annotations

import getpass
import json
import os
import re
import socket
from collections.abc import Iterator, Mapping
from datetime import datetime, timezone
from typing import Any, Optional

from .._secret_words import names_secret, secret_kind

FILE = "audit.jsonl"
VARIABLE = "GAUDI3_AUDIT"
#: Characters of before and after that are kept, of each.
LONGEST = 4000
NO_LOG = "hidden (no_log)"
#: What changes nothing but Ansible's own memory, or judges only.
MEMORY = frozenset(("add_host", "group_by", "set_fact", "assert", "fail", "debug", "meta", "pause", "include_vars"))
#: ``name = value``, ``name: value``, also as an option or within JSON.
_NAMED = re.compile(r"^[\s\"'+-]*([A-Za-z][\w.-]{0,60})[\"']?\s*[=:]\s*\S")


def default_path(environment: Mapping[str, str]) -> str:
    """Where the record is: as ``GAUDI3_AUDIT`` says, else beside the records of ``gaudi3-deploy``."""
    if environment.get(VARIABLE):
        return os.path.abspath(os.path.expanduser(environment[VARIABLE]))
    if environment.get("GAUDI3_DEPLOYMENTS"):
        return os.path.join(os.path.abspath(environment["GAUDI3_DEPLOYMENTS"]), FILE)
    state = environment.get("XDG_STATE_HOME", "")
    above = state if os.path.isabs(state) else os.path.join(os.path.expanduser("~"), ".local", "state")
    return os.path.join(above, "gaudi3-deploy", FILE)


def who(environment: Mapping[str, str], become: Optional[str] = None) -> dict[str, Any]:
    """The user of this process, by whom sudo was called, and who a task becomes on its host.

    ``sudo_user`` is what sudo left in the environment. A user can set that; ``uid`` is the kernel's word.
    """
    try:
        user = getpass.getuser() if os.geteuid() else "root"
    except (OSError, KeyError):
        user = str(os.geteuid())
    found: dict[str, Any] = {"user": user, "uid": os.geteuid(), "on": socket.gethostname()}
    if environment.get("SUDO_USER"):
        found["sudo_user"] = environment["SUDO_USER"]
    if become:
        found["become_user"] = become
    return found


def now() -> str:
    """The time in UTC, to a millisecond."""
    return datetime.now(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def shown(value: Any) -> Any:
    """A value for the record: text without secrets, and not longer than ``LONGEST``."""
    if value is None:
        return None
    safe = _safe(value)
    text = safe if isinstance(safe, str) else json.dumps(safe, sort_keys=True)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}... ({len(text) - LONGEST} characters more)"


def differences(diff: Any) -> Iterator[tuple[Any, Any]]:
    """Before and after, as a module's diff has them; a prepared diff is all of the second."""
    for each in diff if isinstance(diff, list) else [diff]:
        if isinstance(each, Mapping) and ("before" in each or "after" in each):
            yield shown(each.get("before")), shown(each.get("after"))
        elif isinstance(each, Mapping) and each.get("prepared"):
            yield None, shown(each["prepared"])


def results(answer: Mapping[str, Any], ended: str) -> Iterator[dict[str, Any]]:
    """What is recorded of a task's answer on a host: one for each change, none where nothing changed.

    ``ended`` is ok, failed or unreachable. What failed or did not answer may have changed something, and is recorded.
    """
    items = answer.get("results")
    if isinstance(items, list) and items and all(isinstance(each, Mapping) for each in items):
        for item in items:
            how = "failed" if item.get("failed") else "unreachable" if item.get("unreachable") else "ok"
            for found in results({name: value for name, value in item.items() if name != "results"}, how):
                yield found if "hidden" in found else {"item": shown(item.get("item")), **found}
        return
    if ended == "ok" and not answer.get("changed"):
        return
    result = {"result": "changed" if ended == "ok" else ended}
    if "censored" in answer:
        yield {**result, "hidden": NO_LOG}
        return
    if ended != "ok":
        result["said"] = shown(str(answer.get("msg") or ""))
    pairs = list(differences(answer.get("diff")))
    before = [one for one, _other in pairs if one is not None]
    after = [other for _one, other in pairs if other is not None]
    yield {**result, "before": _joined(before), "after": _joined(after)}


def is_recorded(action: str) -> bool:
    """Whether a task of this module can be a change."""
    return action.rpartition(".")[2] not in MEMORY


def _joined(texts: list[Any]) -> Any:
    return "\n".join(texts) if texts else None


def _safe(value: Any) -> Any:
    """The same without secrets, as JSON has it."""
    if isinstance(value, Mapping):
        return {str(name): "hidden" if names_secret(str(name)) else _safe(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_safe(each) for each in value]
    if value is None or isinstance(value, (bool, int, float)):
        return value
    return "\n".join(_line(line) for line in str(value).split("\n"))


def _line(line: str) -> str:
    kind = secret_kind(line)
    if kind:
        return f"hidden ({kind})"
    named = _NAMED.match(line)
    return f"hidden (a value of {named.group(1)})" if named and names_secret(named.group(1)) else line
