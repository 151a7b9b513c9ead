# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Show a run as one line for each phase and group of hosts."""

from __future__ import annotations

DOCUMENTATION = r"""
name: progress
type: stdout
short_description: Show a run as one line for each phase and group of hosts
version_added: 0.1.0
author:
  - gaudi3.scale contributors (@gaudi3)
description:
  - Shows one line for each phase and group of hosts, with what changed and how long it took, and the messages of the
    playbook. A phase is a playbook that another one imports, or else a play.
  - Shows a failure when it comes up, as the sentence of the module, and repeats all of them at the end of the run, with
    the hosts, the cause where a host does not answer, and the command to type next.
  - Shows every difference in full with C(--diff). With C(-v) the output is that of C(ansible.builtin.default), and the
    failures are repeated behind it.
  - Says how much time is left where it knows how long the phases took in earlier runs with the same playbook, tags and
    hosts. It keeps those times in C(~/.local/state/gaudi3-scale/NAME-HASH/progress.json) (or below
    E(XDG_STATE_HOME)), after the folder of the inventory. The file holds names of phases and seconds. A prediction
    (C(--check)) and a run that fails are not kept.
  - What comes from a host is shown as text on which a terminal does not act.
options:
  width:
    description:
      - The columns of a line. Addresses and commands are never cut. One that is longer has a line of its own.
      - With V(0) those of the terminal, and 80 where the output is no terminal.
    type: int
    default: 0
    env:
      - name: GAUDI3_PROGRESS_WIDTH
    ini:
      - section: callback_progress
        key: width
  details:
    description: When every task is shown, as C(ansible.builtin.default) shows it.
    type: str
    choices:
      verbose: With C(-v).
      always: Always.
      never: Never.
    default: verbose
    env:
      - name: GAUDI3_PROGRESS_DETAILS
    ini:
      - section: callback_progress
        key: details
  changes:
    description: Whether the names of the tasks that changed something are shown below the line of their phase.
    type: bool
    default: true
    env:
      - name: GAUDI3_PROGRESS_CHANGES
    ini:
      - section: callback_progress
        key: changes
  history:
    description: Whether the times of the phases are kept, and the time that is left is estimated by them.
    type: bool
    default: true
    env:
      - name: GAUDI3_PROGRESS_HISTORY
    ini:
      - section: callback_progress
        key: history
extends_documentation_fragment:
  - default_callback
  - result_format_callback
requirements:
  - C(stdout_callback = gaudi3.scale.progress) below C([defaults]) in C(ansible.cfg)
"""

import os
import shutil
import sys
import time
from collections.abc import Mapping
from typing import Any, Optional

from ansible import constants, context
from ansible.plugins.callback.default import CallbackModule as Default

from ansible_collections.gaudi3.scale.plugins.module_utils._printable import printable
from ansible_collections.gaudi3.scale.plugins.module_utils._progress import command, history
from ansible_collections.gaudi3.scale.plugins.module_utils._progress.failures import Failure, sentences
from ansible_collections.gaudi3.scale.plugins.module_utils._progress.run import Line, Run, phase_of
from ansible_collections.gaudi3.scale.plugins.module_utils._progress.screen import safe_diff, shown_lines
from ansible_collections.gaudi3.scale.plugins.module_utils._progress.unreachable import Login, cause
from ansible_collections.gaudi3.scale.plugins.module_utils._refusal import Refusal
from ansible_collections.gaudi3.scale.plugins.module_utils._secrets_dir import outside_of_the_inventory, state_folder

DEBUG = ("debug", "ansible.builtin.debug", "ansible.legacy.debug")
COLUMNS = 80
LOCAL = "localhost"
FILE = "progress.json"


def part(result: Any, name: str) -> Any:
    """The task, the host or the answer of a result, which ansible-core 2.17 and 2.18 call by other names."""
    return getattr(result, name) if hasattr(result, name) else getattr(result, f"_{name}")


def columns(wanted: int) -> int:
    """The columns of a line: as wanted, else those of the terminal."""
    if wanted > 0:
        return wanted
    return shutil.get_terminal_size((COLUMNS, 24)).columns if sys.stdout.isatty() else COLUMNS


def is_rescued(task: Any) -> bool:
    """Whether a block goes on behind a failure of the task."""
    child, parent = task, getattr(task, "_parent", None)
    while parent is not None:
        rescue = getattr(parent, "rescue", None)
        behind = [*(rescue or []), *(getattr(parent, "always", None) or [])]
        if rescue and all(each._uuid != child._uuid for each in behind):
            return True
        child, parent = parent, getattr(parent, "_parent", None)
    return False


def with_cause(lines: list[str], result: Any) -> list[str]:
    """The lines, and below them the first cause of an exception, which ansible-core keeps apart from 2.19 on."""
    event: Any = getattr(getattr(result, "exception", None), "event", None)
    while getattr(event, "chain", None) is not None:
        event = event.chain.event
    known = " ".join(" ".join(lines).split())
    more = [line.strip() for line in shown_lines(getattr(event, "msg", None) or "")]
    return [*lines, *(line for line in more if line and " ".join(line.split()) not in known)]


class CallbackModule(Default):
    """What Ansible calls; it shows the lines of ``Run``."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "stdout"
    CALLBACK_NAME = "gaudi3.scale.progress"

    def __init__(self) -> None:
        super().__init__()
        self._run: Optional[Run] = None
        self._playbook = ""
        self._manager: Any = None
        self._sources: list[str] = []
        self._matched = False
        self._differs = ""

    def _detailed(self) -> bool:
        chosen = self.get_option("details")
        return bool(chosen == "always" or (chosen == "verbose" and self._display.verbosity > 0))

    def _show(self, lines: list[Line]) -> None:
        colours = {"changed": constants.COLOR_CHANGED, "failed": constants.COLOR_ERROR, "ok": constants.COLOR_OK}
        for line in lines:
            self._display.display(line.text, color=colours.get(line.kind))

    def v2_playbook_on_start(self, playbook: Any) -> None:
        """The run begins."""
        self._playbook = os.path.abspath(str(playbook._file_name))
        self._begin()
        if self._detailed():
            super().v2_playbook_on_start(playbook)

    def _begin(self) -> Run:
        """Where nothing has begun, as in a test of a part: a run of now."""
        if self._run is None:
            given: Mapping[str, Any] = context.CLIARGS
            limit = given.get("subset") or "all"
            tags = ",".join(sorted(given.get("tags") or ())), ",".join(sorted(given.get("skip_tags") or ()))
            stem = os.path.splitext(os.path.basename(self._playbook))[0]
            self._sources = [str(each) for each in given.get("inventory") or constants.DEFAULT_HOST_LIST or ()]
            self._run = Run(
                time.monotonic(),
                columns(int(self.get_option("width"))),
                predicts=bool(given.get("check")),
                what=f"{stem} tags={tags[0]} without={tags[1]} hosts={limit}",
                past=history.read(path) if (path := self._file()) else (),
                names=bool(self.get_option("changes")),
                partial=tags != ("all", ""),
            )
        return self._run

    def _file(self) -> str:
        """Where the times of earlier runs are; empty where they are not kept."""
        folder = state_folder(self._sources, os.environ) if self.get_option("history") else None
        if folder is None:
            return ""
        try:
            return os.path.join(outside_of_the_inventory(folder, self._sources, "XDG_STATE_HOME"), FILE)
        except Refusal:
            return ""

    def v2_playbook_on_play_start(self, play: Any) -> None:
        """A play begins."""
        self._manager = play.get_variable_manager()
        variables = self._manager.get_vars(play=play, include_hostvars=False)
        groups = variables.get("groups") or {}
        hosts = [str(each) for each in variables.get("ansible_play_hosts_all") or ()]
        self._matched = self._matched or bool(hosts)
        file = str(play.get_path()).rpartition(":")[0]
        name = printable(play.get_name().strip())
        self._show_brief(self._begin().play(time.monotonic(), phase_of(file, self._playbook, name), hosts, groups))
        if self._detailed():
            super().v2_playbook_on_play_start(play)
        self._play = play

    def _show_brief(self, lines: list[Line]) -> None:
        if not self._detailed():
            self._show(lines)

    def v2_playbook_on_task_start(self, task: Any, is_conditional: bool) -> None:
        """A task begins."""
        self._show_brief(self._begin().task(time.monotonic()))
        if self._detailed():
            super().v2_playbook_on_task_start(task, is_conditional)

    def v2_runner_item_on_ok(self, result: Any) -> None:
        """An item of a loop."""
        if self._detailed():
            super().v2_runner_item_on_ok(result)
        elif part(result, "task").action in DEBUG:
            self._say(part(result, "result"))

    def v2_runner_on_skipped(self, result: Any) -> None:
        """A task was skipped on a host."""
        self._note(result, False)
        if self._detailed():
            super().v2_runner_on_skipped(result)

    def v2_runner_on_ok(self, result: Any) -> None:
        """A task ended well on a host."""
        answer = part(result, "result")
        self._note(result, bool(answer.get("changed")))
        if self._detailed():
            super().v2_runner_on_ok(result)
            return
        self._warn(result)
        if part(result, "task").action in DEBUG and not isinstance(answer.get("results"), list):
            self._say(answer)

    def _warn(self, result: Any) -> None:
        """The warnings of a module. Its text may be a node's; Ansible would write it as it is."""
        answer = part(result, "result")
        # Texts, or from ansible-core 2.19 on objects.
        for each in answer.pop("warnings", None) or ():
            text = each if isinstance(each, str) else getattr(getattr(each, "event", None), "msg", each)
            self._display.warning(printable(text))
        self._handle_warnings(answer)

    def _note(self, result: Any, changed: bool) -> None:
        task = part(result, "task")
        name = part(result, "host").get_name()
        # What is done on the controller is no change of the host that it is done for.
        host = LOCAL if changed and str(task.delegate_to or "") == LOCAL else name
        self._begin().result(time.monotonic(), host, name_of(task), changed)

    def _say(self, answer: Mapping[str, Any]) -> None:
        """The message of a debug task, or the value of its variable."""
        if answer.get("skipped") or answer.get("censored"):
            return
        if isinstance(answer.get("msg"), (str, list, tuple)):
            lines = list(shown_lines(answer["msg"]))
        else:
            lines = [line for line in shown_lines(self._dump_results(answer)) if line.strip()]
        self._show(self._begin().said(lines))

    def v2_runner_on_failed(self, result: Any, ignore_errors: bool = False) -> None:
        """A task failed on a host."""
        task, host, answer = (part(result, name) for name in ("task", "host", "result"))
        lines: list[Line] = []
        if ignore_errors or is_rescued(task):
            self._note(result, False)
        else:
            shown = sentences(answer) if "censored" in answer else with_cause(sentences(answer), result)
            failure = Failure(host.get_name(), name_of(task), tuple(shown))
            lines = self._begin().failed(time.monotonic(), failure)
        if self._detailed():
            super().v2_runner_on_failed(result, ignore_errors)
        else:
            self._warn(result)
            self._show(lines)

    def v2_runner_on_unreachable(self, result: Any) -> None:
        """A host does not answer."""
        task, host, answer = (part(result, name) for name in ("task", "host", "result"))
        why = cause(answer.get("msg") or "", self._login(host))
        failure = Failure(host.get_name(), name_of(task), (f"{why.sentence}.",), why)
        lines = self._begin().failed(time.monotonic(), failure)
        if self._detailed():
            super().v2_runner_on_unreachable(result)
        else:
            self._show(lines)

    def _login(self, host: Any) -> Login:
        """How Ansible logs in to a host, as far as its variables say so without a template."""
        found = self._manager.get_vars(host=host, include_hostvars=False) if self._manager is not None else {}

        def plain(*names: str) -> str:
            for name in names:
                value = found.get(name)
                if value not in (None, "") and "{{" not in str(value):
                    return printable(value)
            return ""

        given: Mapping[str, Any] = context.CLIARGS
        port = plain("ansible_port", "ansible_ssh_port")
        return Login(
            plain("ansible_host", "ansible_ssh_host") or host.get_name(),
            plain("ansible_user", "ansible_ssh_user") or printable(given.get("remote_user") or ""),
            int(port) if port.isdigit() else 0,
            plain("ansible_ssh_private_key_file", "ansible_private_key_file")
            or printable(given.get("private_key_file") or ""),
        )

    def v2_on_file_diff(self, result: Any) -> None:
        """The differences of a task, in full and from whatever text."""
        answer = part(result, "result")
        for each in answer.get("results") or [answer]:
            if isinstance(each, dict) and each.get("diff"):
                each["diff"] = safe_diff(each["diff"])
        if self._detailed():
            super().v2_on_file_diff(result)
            return
        for each in answer.get("results") or [answer]:
            if isinstance(each, dict) and each.get("diff") and each.get("changed"):
                shown = self._get_diff(each["diff"])
                if shown:
                    of = f"{part(result, 'host').get_name()}: {name_of(part(result, 'task'))}"
                    if of != self._differs:
                        self._show([Line(of, "changed")])
                    self._differs = of
                    self._display.display(shown.rstrip("\n"))

    def v2_playbook_on_stats(self, stats: Any) -> None:
        """The run ends."""
        now, run = time.monotonic(), self._begin()
        counts = {str(host): stats.summarize(host) for host in sorted(stats.processed)}
        failed = [host for host, each in counts.items() if each["failures"] or each["unreachable"]]
        again = command.again(sys.argv)
        really = command.again(sys.argv, really=True)
        lines = run.end(now, failed, again, really)
        if self._detailed():
            super().v2_playbook_on_stats(stats)
            lines = lines[next((n for n, line in enumerate(lines) if line.text.startswith("Stopped ")), len(lines)) :]
        elif not self._matched:
            lines = run.said(
                [f"Nothing was done: no host of the inventory ({' '.join(self._sources) or 'none'}) is meant."]
            )
        self._show(lines)
        kept = run.past
        if not failed and kept is not None and self._matched and not context.CLIARGS.get("check"):
            self._keep(kept)

    def _keep(self, run: history.Past) -> None:
        """Keep the times for later runs; a folder that cannot be written costs an estimate alone."""
        path = self._file()
        if not path:
            return
        try:
            history.write(path, history.with_run(history.read(path), run))
        except OSError as error:
            self._display.vv(f"The times of this run are not kept: {error}")


#: Events of which only Ansible's own details tell. A play without hosts is one of them, and so is a task that is tried
#: again; of an item that failed, the result of its loop has the sentence.
DETAILS = (
    *("v2_playbook_on_handler_task_start", "v2_playbook_on_no_hosts_matched", "v2_playbook_on_no_hosts_remaining"),
    *("v2_playbook_on_include", "v2_playbook_on_notify", "v2_runner_on_start", "v2_runner_retry"),
    *("v2_runner_on_async_poll", "v2_runner_on_async_ok", "v2_runner_on_async_failed"),
    *("v2_runner_item_on_failed", "v2_runner_item_on_skipped"),
)


def _with_details_alone(name: str) -> Any:
    def event(self: CallbackModule, *given: Any) -> None:
        if self._detailed():
            getattr(Default, name)(self, *given)

    return event


for _name in DETAILS:
    setattr(CallbackModule, _name, _with_details_alone(_name))


def name_of(task: Any) -> str:
    """The name of a task without its role, as text that a terminal only shows."""
    name = str(task.get_name()).strip()
    _role, found, rest = name.partition(" : ")
    return printable(rest if found else name)
