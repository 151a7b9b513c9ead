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
  - Of several playbooks on one command line, each has lines, counts and times of its own. A run of which C(--tags),
    C(--skip-tags) or C(--start-at-task) leaves nothing says so.
  - A host that does not answer is no failure where the playbook ignores it. It is counted.
  - Shows every difference in full with C(--diff). With C(-v) the output is that of C(ansible.builtin.default), and the
    failures are repeated behind it.
  - Says how much time is left where it knows how long the phases took in earlier runs with the same playbook, tags and
    hosts. It keeps those times in C(~/.local/state/gaudi3-scale/NAME-HASH/progress.json) (or below
    E(XDG_STATE_HOME)), after the folder of the inventory. The file holds paths of playbooks, the options that choose
    among their tasks and hosts, names of phases, and seconds. A prediction (C(--check)), a run that fails and one that
    does nothing are not kept.
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
  silence:
    description: The seconds after which a task that still runs is named, with its phase and the time. With V(0) never.
    type: float
    default: 10
    env:
      - name: GAUDI3_PROGRESS_SILENCE
    ini:
      - section: callback_progress
        key: silence
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
from ansible_collections.gaudi3.scale.plugins.module_utils._progress.unreachable import cause
from ansible_collections.gaudi3.scale.plugins.module_utils._refusal import Refusal
from ansible_collections.gaudi3.scale.plugins.module_utils._secrets_dir import outside_of_the_inventory, state_folder
from ansible_collections.gaudi3.scale.plugins.plugin_utils.detailed_events import add_detailed_events
from ansible_collections.gaudi3.scale.plugins.plugin_utils.forks import freeze, load_filters
from ansible_collections.gaudi3.scale.plugins.plugin_utils.heartbeat import Heartbeat
from ansible_collections.gaudi3.scale.plugins.plugin_utils.login import login_of
from ansible_collections.gaudi3.scale.plugins.plugin_utils.results import (
    chosen,
    is_chosen,
    is_rescued,
    name_of,
    part,
    said_of,
    with_cause,
)

DEBUG = ("debug", "ansible.builtin.debug", "ansible.legacy.debug")
PAUSE = ("pause", "ansible.builtin.pause", "ansible.legacy.pause")
COLUMNS = 80
LOCAL = "localhost"
FILE = "progress.json"


def columns(wanted: int) -> int:
    """The columns of a line: as wanted, else those of the terminal."""
    if wanted > 0:
        return wanted
    return shutil.get_terminal_size((COLUMNS, 24)).columns if sys.stdout.isatty() else COLUMNS


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
        self._chosen: list[str] = []
        self._matched = False
        self._differs = ""
        self._told: dict[tuple[str, ...], str] = {}
        self._heart = Heartbeat(0, self._still)
        self._doing = ""
        self._phases: list[str] = []
        self._number = 0
        self._counts: dict[str, int] = {}
        self._changes = 0

    def _detailed(self) -> bool:
        chosen = self.get_option("details")
        return bool(chosen == "always" or (chosen == "verbose" and self._display.verbosity > 0))

    def _show(self, lines: list[Line]) -> None:
        colours = {"changed": constants.COLOR_CHANGED, "failed": constants.COLOR_ERROR, "ok": constants.COLOR_OK}
        for line in lines:
            self._display.display(line.text, color=colours.get(line.kind))
            self._heart.shown()

    def _still(self, now: float) -> list[str]:
        """Nothing while Ansible's own lines are shown, or somebody is asked for an answer."""
        return [] if self._run is None or not self._doing else self._run.still(now, self._doing, self._phases)

    def v2_playbook_on_start(self, playbook: Any) -> None:
        """The run of a playbook begins."""
        self._playbook = os.path.abspath(str(playbook._file_name))
        self._run, self._matched, self._differs = None, False, ""
        self._number += 1
        plays = [(str(play.get_path()).rpartition(":")[0], play.get_name()) for play in playbook.get_plays()]
        named = (phase_of(file, self._playbook, printable(str(name).strip())) for file, name in plays)
        self._phases = [name for name in dict.fromkeys(named) if name]
        self._begin()
        self._heart.end()
        self._heart = Heartbeat(0 if self._detailed() else float(self.get_option("silence")), self._still)
        load_filters()
        if self._detailed():
            super().v2_playbook_on_start(playbook)

    def _begin(self) -> Run:
        """Where nothing has begun, as in a test of a part: a run of now."""
        if self._run is None:
            given: Mapping[str, Any] = context.CLIARGS
            self._chosen = chosen(given)
            self._sources = [str(each) for each in given.get("inventory") or constants.DEFAULT_HOST_LIST or ()]
            self._run = Run(
                time.monotonic(),
                columns(int(self.get_option("width"))),
                predicts=bool(given.get("check")),
                what=" ".join([self._playbook, *self._chosen, f"hosts={given.get('subset') or 'all'}"]),
                past=history.read(path) if (path := self._file()) else (),
                names=bool(self.get_option("changes")),
                partial=bool(self._chosen),
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
        hosts = [str(each) for each in variables.get("ansible_play_hosts_all") or ()]
        self._matched = self._matched or bool(hosts)
        file = str(play.get_path()).rpartition(":")[0]
        phase = phase_of(file, self._playbook, printable(play.get_name().strip()))
        self._show_brief(self._begin().play(time.monotonic(), phase, hosts, variables.get("groups") or {}))
        if self._detailed():
            super().v2_playbook_on_play_start(play)
        self._play = play
        freeze()

    def _show_brief(self, lines: list[Line]) -> None:
        if not self._detailed():
            self._show(lines)

    def v2_playbook_on_task_start(self, task: Any, is_conditional: bool) -> None:
        """A task begins."""
        self._show_brief(self._begin().task(time.monotonic(), is_chosen(task)))
        self._doing = "" if task.action in PAUSE else name_of(task)
        self._heart.task()
        if self._detailed():
            super().v2_playbook_on_task_start(task, is_conditional)

    def v2_runner_item_on_ok(self, result: Any) -> None:
        """An item of a loop."""
        if self._detailed():
            super().v2_runner_item_on_ok(result)
        elif part(result, "task").action in DEBUG:
            self._print(result)

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
            self._print(result)

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
        self._begin().result(time.monotonic(), host, name_of(task), changed, is_chosen(task))

    def _print(self, result: Any) -> None:
        """The message of a debug task, or the value of its variable."""
        answer: Mapping[str, Any] = part(result, "result")
        if answer.get("skipped") or answer.get("censored"):
            return
        if isinstance(answer.get("msg"), (str, list, tuple)):
            lines = list(shown_lines(answer["msg"]))
        else:
            own = {name: value for name, value in answer.items() if name != "changed"}
            lines = [line for line in shown_lines(self._dump_results(own)) if line.strip()]
        # The same of further hosts is shown once.
        first = self._told.setdefault((part(result, "task")._uuid, *lines), part(result, "host").get_name())
        if first == part(result, "host").get_name():
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
        fields = getattr(result, "_task_fields", None) or {}
        why = cause(said_of(answer), login_of(host, task, fields, self._manager, self._play))
        place = printable(fields.get("delegate_to") or host.get_name(), 200)
        other = place != host.get_name() and "{{" not in place
        told = [f"The task is delegated to {place}, which does not answer."] if other else []
        failure = Failure(host.get_name(), name_of(task), (*told, f"{why.sentence}."), why)
        if task.ignore_unreachable:
            self._begin().passed(time.monotonic(), failure)
            lines = []
        else:
            lines = self._begin().failed(time.monotonic(), failure)
        if self._detailed():
            super().v2_runner_on_unreachable(result)
        else:
            self._show(lines)

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
        """The run of a playbook ends, of which one command may name several."""
        now, run = time.monotonic(), self._begin()
        self._heart.end()
        # Ansible counts on from playbook to playbook.
        before, self._counts = self._counts, {}
        for host in sorted(stats.processed):
            each = stats.summarize(host)
            self._counts[str(host)] = each["failures"] + each["unreachable"]
        failed = [host for host, count in self._counts.items() if count > before.get(host, 0)]
        given: Mapping[str, Any] = context.CLIARGS
        begin = command.program(sys.argv, getattr(sys, "orig_argv", sys.argv), shutil.which)
        # What a prediction leads to is said once, behind the last playbook.
        last = self._number >= len(given.get("args") or ())
        really = command.again(sys.argv, really=True, begin=begin) if last else None
        nothing = [
            f"Nothing was done: {' '.join(self._chosen)} leaves no task but those that always run.",
            "Next, to see the tags that there are:",
            f"  {command.listing(sys.argv, begin, given.get('args') or ())}",
        ]
        again = command.again(sys.argv, begin=begin)
        lines = run.end(
            now, failed, again, really, self._changes, nothing, command.variables(given.get("extra_vars") or ())
        )
        self._changes += run.changes
        if not self._matched:
            lines = run.said(
                [f"Nothing was done: no host of the inventory ({' '.join(self._sources) or 'none'}) is meant."]
            )
        if self._detailed():
            super().v2_playbook_on_stats(stats)
            ends = ("Stopped ", "Nothing was done")
            lines = lines[next((n for n, line in enumerate(lines) if line.text.startswith(ends)), len(lines)) :]
        self._show(lines)
        kept = run.past
        if not failed and kept is not None and self._matched and not given.get("check"):
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


add_detailed_events(CallbackModule, Default)
