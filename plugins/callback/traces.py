# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Send the phases of a run as spans of a trace, which the jobs that it starts go on with."""

from __future__ import annotations

DOCUMENTATION = r"""
name: traces
type: aggregate
short_description: Send the phases of a run as spans of a trace
version_added: 0.1.0
author:
  - gaudi3.scale contributors (@gaudi3)
description:
  - Sends one span for the run of a playbook and one for each of its phases, over OTLP. A phase is a playbook that
    another one imports, or else a play. A span has the name of the phase, and how many hosts it had, changed and lost.
    A phase in which no host had work has none.
  - It sends no variables, arguments, results, messages or names of hosts.
  - A job that a run starts goes on with its trace, where the job sends traces too.
  - Address, headers and certificates of the receiver are those of the variables E(OTEL_EXPORTER_OTLP_ENDPOINT),
    E(OTEL_EXPORTER_OTLP_HEADERS), E(OTEL_EXPORTER_OTLP_CERTIFICATE) and so on, by HTTP and protobuf alone.
  - A receiver that is away does not stop a run. The run waits for it for at most 3 seconds at its end, and warns of
    what got lost.
  - The run belongs to the span that E(TRACEPARENT) names, if it is set.
  - E(OTEL_SDK_DISABLED) switches it off.
requirements:
  - C(callbacks_enabled = gaudi3.scale.traces) below C([defaults]) in C(ansible.cfg)
  - C(opentelemetry-sdk) and C(opentelemetry-exporter-otlp-proto-http) on the controller
"""

import atexit
import os
from typing import Any, Optional

from ansible.plugins.callback import CallbackBase

from ansible_collections.gaudi3.scale.plugins.module_utils import _traces
from ansible_collections.gaudi3.scale.plugins.module_utils._printable import printable
from ansible_collections.gaudi3.scale.plugins.module_utils._progress.run import phase_of
from ansible_collections.gaudi3.scale.plugins.plugin_utils.results import is_rescued, part


class CallbackModule(CallbackBase):
    """What Ansible calls."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "gaudi3.scale.traces"
    CALLBACK_NEEDS_ENABLED = True

    def __init__(self) -> None:
        super().__init__()
        self.disabled = _traces.is_disabled(os.environ)
        self._recorder = _traces.Recorder("ansible-playbook", os.environ.get(_traces.VARIABLE, ""), background=False)
        self._playbook = ""
        self._run: Optional[_traces.Span] = None
        self._phase: Optional[_traces.Span] = None
        self._hosts: set[str] = set()
        self._changed: set[str] = set()
        self._failed: set[str] = set()

    def v2_playbook_on_start(self, playbook: Any) -> None:
        """The run of a playbook begins."""
        self._playbook = os.path.abspath(str(playbook._file_name))
        self._run = self._recorder.begin(printable(os.path.basename(self._playbook), 100))
        self._hand_on()
        atexit.register(self._close)  # an interrupted run has no other end; Ansible's processes for tasks leave without

    def v2_playbook_on_play_start(self, play: Any) -> None:
        """A play begins, and with it perhaps a phase."""
        file = str(play.get_path()).rpartition(":")[0]
        name = printable(phase_of(file, self._playbook, play.get_name().strip()), 100)
        if name and (self._phase is None or self._phase.name != name):
            self._end_phase()
            self._phase = self._recorder.begin(name)
            self._hand_on()

    def v2_runner_on_start(self, host: Any, task: Any) -> None:
        """A host has work in this phase."""
        self._hosts.add(host.get_name())

    def v2_runner_on_ok(self, result: Any) -> None:
        """A task ended well on a host."""
        if part(result, "result").get("changed"):
            self._changed.add(part(result, "host").get_name())

    def v2_runner_on_failed(self, result: Any, ignore_errors: bool = False) -> None:
        """A task failed on a host."""
        if not ignore_errors and not is_rescued(part(result, "task")):
            self._failed.add(part(result, "host").get_name())

    def v2_runner_on_unreachable(self, result: Any) -> None:
        """A host does not answer."""
        if not part(result, "task").ignore_unreachable:
            self._failed.add(part(result, "host").get_name())

    def v2_playbook_on_stats(self, stats: Any) -> None:
        """The run of a playbook ends, of which one command may name several."""
        failed = sum(1 for host in stats.processed if stats.failures.get(host) or stats.dark.get(host))
        self._end_phase()
        self._recorder.end(self._run, f"failed on {failed} host(s)" if failed else "")
        self._hand_on()
        self._close()

    def _close(self) -> None:
        atexit.unregister(self._close)
        problem = self._recorder.close()
        if problem:
            self._display.warning(problem)

    def _end_phase(self) -> None:
        if self._phase is not None and not self._hosts:  # such as the hooks of a site that has none
            self._recorder.drop(self._phase)
        elif self._phase is not None:
            counts = {"hosts": self._hosts, "changed": self._changed, "failed": self._failed}
            self._phase.attributes.update({f"gaudi.{name}": len(each) for name, each in counts.items()})
            self._recorder.end(self._phase, f"failed on {len(self._failed)} host(s)" if self._failed else "")
        self._phase = None
        self._hosts, self._changed, self._failed = set(), set(), set()

    def _hand_on(self) -> None:
        """What is started from here on belongs to what is open: the tasks' processes inherit it."""
        now = self._recorder.traceparent
        if now:
            os.environ[_traces.VARIABLE] = now
        else:
            os.environ.pop(_traces.VARIABLE, None)
