# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Which phases a run of ansible-playbook has, as its tags say."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

#: Phases and roles that need no card, so that a node without one has them, too.
WATCHING = re.compile("monitoring|prometheus|alertmanager|grafana|watch|node_exporter|hpu_exporter|firewall")
#: Roles whose variables are checked, by the phase that has them.
ROLES = {
    "tuning": ("tuning",),
    "firewall": ("firewall",),
    "pytorch": ("pytorch",),
    "monitoring": ("node_exporter", "hpu_exporter"),
}
#: Those that a monitoring host has, too, besides what checks its own.
ANYWHERE = ("firewall", "node_exporter")
#: Those that every phase of a node asks.
ALWAYS = ("synapseai", "fabric", "trainer")
#: Tags with one of which a run has jobs, or looks whether they can run, and those without which it has none.
JOBS = ("all", "tagged", "train", "trainer", "preflight", "trainer_preflight", "trainer_job")
NO_JOBS = ("all", "tagged", "train", "trainer", "trainer_job")


@dataclass(frozen=True)
class Run:
    """The tags that were asked for and those that were left out."""

    tags: frozenset[str]
    skipped: frozenset[str]

    @classmethod
    def of(cls, tags: Iterable[str], skipped: Iterable[str]) -> Run:
        """From ``ansible_run_tags`` and ``ansible_skip_tags``."""
        return cls(frozenset(map(str, tags)) or frozenset({"all"}), frozenset(map(str, skipped)))

    def has(self, phase: str, *others: str) -> bool:
        """Whether the run has this phase; with one of the other tags, too."""
        return phase not in self.skipped and bool(self.tags & {"all", phase, *others})

    @property
    def whole(self) -> bool:
        """Whether it is no single phase, but for those that are left out."""
        return "all" in self.tags

    @property
    def only_preflight(self) -> bool:
        """Whether it has nothing but the preflight."""
        return self.tags == {"preflight"}

    @property
    def has_jobs(self) -> bool:
        """Whether jobs run, or are looked at. Without them, a node that cannot train can have all the rest."""
        return bool(self.tags & {*JOBS}) and not self.skipped & {*NO_JOBS}

    @property
    def needs_cards(self) -> bool:
        """Whether it has more than what watches hosts and closes their ports."""
        return any(not WATCHING.match(tag) for tag in self.tags)

    @property
    def meets(self) -> bool:
        """Whether hosts are told to reach each other by their addresses."""
        return bool(self.tags & {"all", "monitoring", "train", "preflight"})

    @property
    def watches(self) -> bool:
        """Whether what monitoring hosts run is judged before the first change."""
        return bool(self.tags & {"all", "monitoring", "preflight"}) and "monitoring" not in self.skipped

    @property
    def leaves(self) -> bool:
        """Whether monitoring hosts are left out of phases that would change nothing there."""
        return self.watches and bool(self.tags & {"all", "monitoring"})

    @property
    def closes(self) -> bool:
        """Whether it closes ports by name, which is for the cluster's own hosts alone."""
        return "firewall" in self.tags

    def roles(self, trains: bool) -> tuple[str, ...]:
        """The roles whose variables are checked on a host, which is in group gaudi where it ``trains``."""
        if self.tags & {"all", "preflight"}:
            phases = [phase for phase in ROLES if phase not in self.skipped]
        else:
            phases = [phase for phase, roles in ROLES.items() if phase in self.tags or any(map(self._tagged, roles))]
        found = [role for phase in phases for role in ROLES[phase] if trains or role in ANYWHERE]
        return (*(ALWAYS if trains and self.needs_cards else ()), *found)

    def _tagged(self, role: str) -> bool:
        """Whether a tag is the role's, or that of a part of it, such as node_exporter_install."""
        return any(tag == role or tag.startswith(f"{role}_") for tag in self.tags)
