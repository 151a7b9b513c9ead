# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Keep a record of every change that a run of a playbook makes."""

from __future__ import annotations

DOCUMENTATION = r"""
name: audit
type: notification
short_description: Keep a record of every change that a run of a playbook makes
version_added: 0.1.0
author:
  - gaudi3.scale contributors (@gaudi3)
description:
  - Writes one JSON line for each change of each host into a file that only grows, with who ran it, when in UTC, play,
    task, module and host, what was there before and after as the module's diff has it, and the result. A task that
    failed, or whose host did not answer, may have changed something and is recorded.
  - A run has a line when it begins and one when it ends, so that one that was killed is seen. C(--check) writes none.
  - Each line holds the SHA-256 of the line before it. C(gaudi3-deploy audit --verify) names the first broken link.
  - What C(no_log) hides is not written, and lines that show a secret are replaced.
  - Most modules give what was before and after with C(--diff) only. Set C(always = true) below C([diff]) in
    C(ansible.cfg) to have it of every run.
  - A run whose record cannot be written does not begin.
options:
  file:
    description:
      - The file of the record, on the controller.
      - By default C(audit.jsonl) in the folder of the records of C(gaudi3-deploy), which is E(GAUDI3_DEPLOYMENTS) or
        C(~/.local/state/gaudi3-deploy).
    type: path
    env:
      - name: GAUDI3_AUDIT
    ini:
      - section: callback_audit
        key: file
requirements:
  - C(callbacks_enabled = gaudi3.scale.audit) below C([defaults]) in C(ansible.cfg)
"""

import os
from collections.abc import Mapping
from typing import Any, Optional

from ansible import context
from ansible.errors import AnsibleError
from ansible.module_utils.parsing.convert_bool import boolean
from ansible.plugins.callback import CallbackBase
from ansible.template import Templar

from ansible_collections.gaudi3.scale.plugins.module_utils._audit import chain, entries
from ansible_collections.gaudi3.scale.plugins.module_utils._printable import printable
from ansible_collections.gaudi3.scale.plugins.plugin_utils.results import name_of, part

#: Variables that say whether a task becomes somebody, and whom.
_VARIABLES = ("ansible_become", "ansible_become_user", "ansible_sudo_user")


class CallbackModule(CallbackBase):
    """What Ansible calls."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "notification"
    CALLBACK_NAME = "gaudi3.scale.audit"
    CALLBACK_NEEDS_ENABLED = True

    def __init__(self) -> None:
        super().__init__()
        self._playbook = ""
        self._play: Any = None
        self._lost = 0
        self._changes = 0

    def _path(self) -> str:
        given = self.get_option("file")
        return os.path.abspath(os.path.expanduser(given)) if given else entries.default_path(os.environ)

    def v2_playbook_on_start(self, playbook: Any) -> None:
        """The run of a playbook begins, or does not where nobody could tell of it later."""
        self._playbook = os.path.abspath(str(playbook._file_name))
        self._changes = 0
        if context.CLIARGS.get("check"):
            return
        try:
            self._append({"result": "begun"})
        except OSError as error:
            self._display.error(
                f"Nothing was done: the audit record {printable(self._path())} cannot be written "
                f"({printable(error.strerror)}): mend that, or take gaudi3.scale.audit out of callbacks_enabled."
            )
            raise SystemExit(1) from None

    def v2_playbook_on_play_start(self, play: Any) -> None:
        """A play begins."""
        self._play = play

    def v2_runner_on_ok(self, result: Any) -> None:
        """A task ended well on a host."""
        self._note(result, "ok")

    def v2_runner_on_failed(self, result: Any, ignore_errors: bool = False) -> None:
        """A task failed on a host."""
        self._note(result, "failed")

    def v2_runner_on_unreachable(self, result: Any) -> None:
        """A host does not answer."""
        self._note(result, "unreachable")

    def v2_playbook_on_stats(self, stats: Any) -> None:
        """The run of a playbook ends."""
        if context.CLIARGS.get("check"):
            return
        failed = sorted(str(each) for each in stats.processed if stats.failures.get(each) or stats.dark.get(each))
        end: dict[str, Any] = {"result": "failed" if failed else "done", "changes": self._changes}
        if failed:
            end["failed_hosts"] = failed
        self._try(end)
        if self._lost:
            self._display.warning(
                f"{self._lost} lines of the audit record {printable(self._path())} could not be written: it lacks what "
                "this run changed since then."
            )

    def _note(self, result: Any, ended: str) -> None:
        task, host, answer = (part(result, name) for name in ("task", "host", "result"))
        fields = getattr(result, "task_fields", None) or getattr(result, "_task_fields", None) or {}
        if fields.get("check_mode") or not entries.is_recorded(str(task.action)):
            return
        what: dict[str, Any] = {
            "play": printable(self._play.get_name()) if self._play is not None else "",
            "task": name_of(task),
            "module": str(task.action),
            "host": host.get_name(),
        }
        if task.delegate_to:
            what["delegated_to"] = printable(fields.get("delegate_to") or task.delegate_to)
        job = _job(fields, answer)
        if job:
            what["job"] = job
        become = self._become(fields, task, host)
        for found in entries.results(answer, ended):
            self._changes += 1
            self._try({"what": what, **found}, become)

    def _become(self, fields: Mapping[str, Any], task: Any, host: Any) -> Optional[str]:
        """Whom a task became on its host; variables beat keywords and options."""
        try:
            manager = self._play.get_variable_manager()
            found = manager.get_vars(play=self._play, host=host, task=task, include_hostvars=False)
            given = {name: found[name] for name in _VARIABLES if name in found}
            values = Templar(loader=None, variables=found).template(given) if given else {}
        except AnsibleError as error:
            return f"unknown ({printable(error, 200)})"
        if not boolean(values.get("ansible_become", fields.get("become") or False), strict=False):
            return None
        user = values.get("ansible_sudo_user") or values.get("ansible_become_user") or fields.get("become_user")
        return printable(user or "root")

    def _try(self, entry: Mapping[str, Any], become: Any = None) -> None:
        try:
            self._append(entry, become)
        except OSError:
            self._lost += 1

    def _append(self, entry: Mapping[str, Any], become: Any = None) -> None:
        what = {"by": "ansible-playbook", "playbook": self._playbook, **entry.get("what", {})}
        whole = {"at": entries.now(), "who": entries.who(os.environ, become), **entry, "what": what}
        chain.append(self._path(), whole)


def _job(fields: Mapping[str, Any], answer: Mapping[str, Any]) -> str:
    """The name of the job that a task of ours is about; empty where it is about none."""
    if str(fields.get("action", "")).rpartition(".")[2] != "gaudi_train" or "censored" in answer:
        return ""
    given = fields.get("args")
    return printable(given.get("name") or "") if isinstance(given, Mapping) else ""
