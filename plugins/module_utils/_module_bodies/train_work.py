# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""The course of gaudi_train, whoever launches the job: describe it, look, take the lock, look again, tell, act."""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Generic, Optional, Protocol, TypeVar

from .._jobs import archives as job_archives
from .._jobs import rules as job_rules
from .._jobs.decision import Decision

if TYPE_CHECKING:
    from ansible.module_utils.basic import AnsibleModule


class ObservedJob(Protocol):
    """A job as it was observed."""

    def as_dict(self, directory: str) -> dict[str, Any]:
        """The job as a module returns it."""


Observed = TypeVar("Observed", bound=ObservedJob)


class Work(ABC, Generic[Observed]):
    """One task on one job: what it was given, what it found, and what it returns."""

    def __init__(self, module: AnsibleModule) -> None:
        self.module = module
        self.params: dict[str, Any] = module.params
        self.name: str = module.params["name"]
        self.found: Optional[Observed] = None
        self.told: dict[str, Any] = {"changed": False, "pending": False, "archived": None, "removed_archives": []}

    def result(self) -> dict[str, Any]:
        """What is returned, also where something failed."""
        if self.found is None:
            return self.told
        return {**self.told, "job": self.found.as_dict(self.directory)}

    def carry_out(self) -> None:
        """Look, decide, act; ValueError for what cannot be meant, JobError for what cannot be done."""
        state = self.params["state"]
        job_archives.check_kept(self.params["keep_archives"])
        if state in ("started", "finished"):
            self._describe()
        else:
            job_rules.check({"name": self.name})
        found, decision = self._look()
        if decision.action == "start" or state in ("stopped", "absent"):
            self._refuse_other()
        if decision.action == "start":
            self._prepare(decision)
        with contextlib.ExitStack() as held:
            if decision.changed and not self.module.check_mode:
                # Another controller may have acted since: look once more, with nobody else at work.
                held.enter_context(self._alone())
                found, decision = self._look()
            self._admit(decision)
            self._tell(found, decision)
            if self.module.check_mode:
                return
            self._note(found)
            if decision.changed:
                self._act(found, decision)
                self.found = self._observe()

    @property
    @abstractmethod
    def directory(self) -> str:
        """The job's folder."""

    @abstractmethod
    def _describe(self) -> None:
        """What a job that is to run is."""

    @abstractmethod
    def _look(self) -> tuple[Observed, Decision]:
        """The job as it is, which ``found`` has then, and what is done about it."""

    @abstractmethod
    def _refuse_other(self) -> None:
        """Refuse to take a job of another launcher, which would write in the same folder."""

    @abstractmethod
    def _prepare(self, decision: Decision) -> None:
        """Refuse a start that cannot be, and make what it needs."""

    @abstractmethod
    def _alone(self) -> contextlib.AbstractContextManager[None]:
        """The lock of all who change jobs here."""

    def _admit(self, decision: Decision) -> None:
        """Refuse, under the lock, what other jobs stand in the way of."""

    @abstractmethod
    def _tell(self, found: Observed, decision: Decision) -> None:
        """What is about to change, in check mode as well."""

    def _note(self, found: Observed) -> None:
        """Complete what a run that was cut off left unwritten."""

    @abstractmethod
    def _act(self, found: Observed, decision: Decision) -> None:
        """Do it."""

    @abstractmethod
    def _observe(self) -> Observed:
        """The job as it is after that."""
