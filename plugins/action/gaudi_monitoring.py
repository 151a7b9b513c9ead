# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""One step of a service of a monitoring host, decided on the controller and done there by one or two modules."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Optional

from ansible import constants
from ansible.errors import AnsibleActionFail
from ansible.module_utils.parsing.convert_bool import boolean
from ansible.plugins.action import ActionBase

from ansible_collections.gaudi3.scale.plugins.module_utils._plan.monitoring import Part, Service
from ansible_collections.gaudi3.scale.plugins.module_utils._plan.monitoring_host import SERVICES
from ansible_collections.gaudi3.scale.plugins.module_utils._plan.prometheus import Prometheus
from ansible_collections.gaudi3.scale.plugins.module_utils._plan.prometheus_targets import silent_sentence
from ansible_collections.gaudi3.scale.plugins.module_utils._refusal import Refusal
from ansible_collections.gaudi3.scale.plugins.module_utils._settings import settings_problem
from ansible_collections.gaudi3.scale.plugins.plugin_utils.host_values import host_values
from ansible_collections.gaudi3.scale.plugins.plugin_utils.monitoring import called, given_of, shown
from ansible_collections.gaudi3.scale.plugins.plugin_utils.role_values import plain

STEPS = ("preflight", "cluster", "claim", "targets", "run", "verify", "remove")


class ActionModule(ActionBase):
    """Runs one step. No answer has a secret in it, so that none is hidden from who reads it."""

    TRANSFERS_FILES = False
    _supports_check_mode = True
    _supports_async = False

    def run(self, tmp: Optional[str] = None, task_vars: Optional[dict[str, Any]] = None) -> dict[str, Any]:
        """Entry point of the task."""
        super().run(tmp, task_vars)
        self._given = dict(task_vars or {})
        step, name = str(self._task.args.get("step")), str(self._task.args.get("service"))
        if step not in STEPS or name not in SERVICES:
            raise AnsibleActionFail(
                f"Give one of {', '.join(SERVICES)} as service and one of {', '.join(STEPS)} as step."
            )
        # A certificate is for the addresses in variables of its host.
        problem = settings_problem(constants.config.get_config_value)
        if problem:
            return {"failed": True, "msg": problem}
        values = host_values(self, self._given)
        service = SERVICES[name](given_of(self, self._given, values, self._given.get("ansible_facts") or {}))
        try:
            result: dict[str, Any] = getattr(self, f"_{step}")(service)
        except Refusal as refusal:
            return {"failed": True, "msg": str(refusal)}
        return result

    # What changes nothing

    def _preflight(self, service: Service) -> dict[str, Any]:
        """Refuse what the service cannot run with, before anything changes."""
        service.refuse()
        service.learn(self._look(service.first()))
        service.secrets(dry_run=True)
        return {"changed": False}

    def _cluster(self, service: Service) -> dict[str, Any]:
        """Refuse a host that watches another cluster."""
        options = _prometheus(service).watches()
        self._look([{"name": "cluster", "module": "gaudi_claim", "arguments": options, "tolerated": False}])
        return {"changed": False}

    def _verify(self, service: Service) -> dict[str, Any]:
        """Wait until the service answers. In check mode it may not be there."""
        if self._task.check_mode:
            return {"changed": False, "said": ""}
        known = service.known_secrets()
        if known:
            service.learn(self._look(known))
        options = {**service.page(service.secrets(dry_run=True)), "tries": service.tries}
        part = {"name": "page", "module": "service_page", "arguments": options, "tolerated": False}
        answer = self._look([part]).get("page") or {}
        return {"changed": False, "said": silent_sentence(answer.get("silent"))}

    def _look(self, parts: list[Part]) -> Mapping[str, Any]:
        """What the host answers; ``Refusal`` where it is wrong."""
        if not parts:
            return {}
        answer = plain(called(self, "gaudi_node_look", {"parts": parts}, self._given))
        if answer.get("failed") or answer.get("unreachable"):
            raise Refusal(str(answer.get("msg")))
        found = answer.get("found")
        return found if isinstance(found, Mapping) else {}

    # What changes the host

    def _claim(self, service: Service) -> dict[str, Any]:
        """Make passwords and certificate, and take the files, or refuse those that somebody else wrote."""
        service.learn(self._look(service.known_secrets()))
        secrets = service.secrets(dry_run=bool(self._task.check_mode))
        answer = called(self, "gaudi_claim", service.claim(), self._given)
        taken = answer.get("taken_over") or []
        said = (
            f"Taken over on {service.given.host}: {', '.join(map(str, taken))}. Kept beside each as a dated backup."
            if taken
            else ""
        )
        return {**shown([{"changed": bool(secrets.files)}, answer]), "said": said}

    def _targets(self, service: Service) -> dict[str, Any]:
        """Write the targets alone, and record them."""
        prometheus = _prometheus(service)
        prometheus.learn(self._look(prometheus.first()))
        options = {**prometheus.options(prometheus.targets(), prometheus.target_files), "state": "written"}
        return shown([called(self, "gaudi_service", _of_files(options), self._given)])

    def _run(self, service: Service) -> dict[str, Any]:
        """Write the files, record them, and run the service with them."""
        service.learn(self._look(service.first()))
        secrets = service.secrets(dry_run=bool(self._task.check_mode))
        new = boolean(self._task.args.get("package_changed", False), strict=False)
        options = service.options(service.files(secrets), service.written(), "restart" if new else "none")
        answer = called(self, "gaudi_service", options, self._given)
        return shown([{"changed": bool(secrets.files)}, answer])

    def _remove(self, service: Service) -> dict[str, Any]:
        """Remove what was written, and put back what was taken over."""
        return shown([called(self, "gaudi_claim", service.removal(), self._given)])


def _prometheus(service: Service) -> Prometheus:
    if not isinstance(service, Prometheus):
        raise Refusal("Only Prometheus has targets and watches a cluster.")
    return service


def _of_files(options: Mapping[str, Any]) -> dict[str, Any]:
    """Without what is about the service itself."""
    return {name: each for name, each in options.items() if name not in ("listens", "pending", "restart_files")}
