# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""What a run asks a monitoring host of its services, and which of their phases would change nothing there."""

from __future__ import annotations

from collections.abc import Mapping

from .alertmanager import Alertmanager
from .grafana import Grafana
from .model import Answers, mapping
from .monitoring import Given, Part, Service
from .prometheus import Prometheus
from .run import Run
from .watch import WatchPage

SERVICES: Mapping[str, type[Service]] = {each.name: each for each in (Prometheus, Alertmanager, Grafana, WatchPage)}
#: The phases, in the order in which they run.
NAMES = tuple(SERVICES)


class Watch:
    """The services of one monitoring host in one run. It is asked in the order of its methods."""

    def __init__(self, given: Given, run: Run) -> None:
        self._run = run
        self._services = [kind(given) for kind in SERVICES.values()] if run.watches else []
        self._prometheus = Prometheus(given)
        self._answers: Answers = {}
        self._made: list[str] = []
        """Services whose passwords and certificates would be made."""

    def roles(self) -> tuple[str, ...]:
        """The roles whose variables are checked."""
        return NAMES if self._services else ()

    @property
    def _enabled(self) -> list[Service]:
        return [service for service in self._services if service.enabled]

    def first(self, closes: bool) -> list[Part]:
        """The first questions; ``Refusal`` where a service cannot be.

        Where the run only ``closes`` ports it asks whether this is the cluster's own host.
        """
        for service in self._enabled:
            service.refuse()
        parts = [part for service in self._enabled for part in service.first()]
        if parts or not closes:
            return parts
        return [
            {
                "name": "cluster",
                "module": "gaudi_claim",
                "arguments": self._prometheus.watches(),
                "tolerated": False,
            }
        ]

    def then(self, answers: Answers) -> list[Part]:
        """What is asked with the first answers known; ``Refusal`` where secrets or a site's own part cannot be."""
        parts: list[Part] = []
        for service in self._enabled:
            service.learn(answers)
            secrets = service.secrets(dry_run=True)
            if secrets.files:
                self._made.append(service.name)
            if self._run.leaves:
                parts += service.then(secrets)
        return parts

    def leave(self, answers: Answers) -> list[str]:
        """The phases that would change nothing."""
        if not self._run.leaves:
            return []
        return [service.name for service in self._services if self._leaves(service, answers)]

    def installs(self, answers: Answers) -> list[str]:
        """The services whose package is known to be missing, so that it would be installed."""
        found = {name: mapping(answers, f"{name}_package").get("installed") for name in SERVICES}
        return [each.name for each in self._enabled if each.runs and found[each.name] is False]

    def _leaves(self, service: Service, answers: Answers) -> bool:
        return not service.enabled or (service.name not in self._made and service.unchanged(answers))
