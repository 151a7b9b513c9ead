# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Asks one host all that the phases of a run need to know of it, and what they would change, in one task."""

from __future__ import annotations

import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Optional

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase
from ansible.utils.display import Display
from ansible.vars.clean import namespace_facts

from ansible_collections.gaudi3.scale.plugins.module_utils._plan.host import Host
from ansible_collections.gaudi3.scale.plugins.module_utils._plan.model import Answers, Question
from ansible_collections.gaudi3.scale.plugins.module_utils._plan.monitoring_host import Watch
from ansible_collections.gaudi3.scale.plugins.module_utils._plan.phases import BY_NAME
from ansible_collections.gaudi3.scale.plugins.module_utils._plan.run import Run
from ansible_collections.gaudi3.scale.plugins.module_utils._printable import printable
from ansible_collections.gaudi3.scale.plugins.module_utils._refusal import Refusal
from ansible_collections.gaudi3.scale.plugins.plugin_utils.acting import acted
from ansible_collections.gaudi3.scale.plugins.plugin_utils.arguments import faults
from ansible_collections.gaudi3.scale.plugins.plugin_utils.failing import failing
from ansible_collections.gaudi3.scale.plugins.plugin_utils.host_values import host_values
from ansible_collections.gaudi3.scale.plugins.plugin_utils.monitoring import called, given_of
from ansible_collections.gaudi3.scale.plugins.plugin_utils.role_tasks import TASKS
from ansible_collections.gaudi3.scale.plugins.plugin_utils.role_values import plain
from ansible_collections.gaudi3.scale.plugins.plugin_utils.wheel_options import with_wheel

FACTS = ["!all", "!min", "platform", "distribution", "pkg_mgr", "service_mgr", "user"]


class ActionModule(ActionBase):
    """Runs modules on the host one after the other, the options of the later from the answers of the earlier."""

    TRANSFERS_FILES = False
    _supports_check_mode = True
    _supports_async = False

    def run(self, tmp: Optional[str] = None, task_vars: Optional[dict[str, Any]] = None) -> dict[str, Any]:
        """Entry point of the task."""
        super().run(tmp, task_vars)
        given = dict(task_vars or {})
        phases = self._task.args.get("phases")
        unknown = [name for name in phases or () if name not in BY_NAME]
        if unknown:
            raise AnsibleActionFail(
                f"'phases' has {', '.join(map(str, unknown))}: give phases of a site, which are {', '.join(BY_NAME)}."
            )
        facts: dict[str, Any] = {}
        if not phases:
            answer = self._gathered(given)
            if answer.get("failed"):
                return answer
            facts = dict(answer.get("ansible_facts") or {})
        run = Run.of(given.get("ansible_run_tags") or (), given.get("ansible_skip_tags") or ())
        name = str(given.get("inventory_hostname"))
        groups = given.get("groups") or {}
        variables = Variables(self, given, facts)
        watch = None
        if name in groups.get("monitoring", ()) and not phases:
            watch = Watch(given_of(self, given, variables.values, variables.facts()), run)
        host = Host(variables, name, run, name in groups.get("gaudi", ()), watch)
        result: dict[str, Any] = {"changed": False}
        try:
            if phases:
                plan = given.get("_gaudi_plan")
                known = plan.get("found") if isinstance(plan, Mapping) else None
                host.require([BY_NAME[each] for each in phases], known if isinstance(known, Mapping) else {})
                result["found"] = host.found
            else:
                result.update(host.plan())
        except Refusal as error:
            result.update(failed=True, msg=str(error))
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            # Never the answer of a host, which is read by its kinds: a value that no check of variables knows as wrong.
            Display().vvv(traceback.format_exc(), host=name)
            said = (
                f"What the run would change on {name} cannot be found out ({printable(repr(error), 300)}): look for a "
                "variable with an odd value; with -vvv the place in the collection is shown."
            )
            result.update({"failed": True, "msg": said} if phases else {"found": {}, "leave": [], "problem": said})
        for caution in host.cautions:
            Display().warning(caution)
        return {**result, "ansible_facts": {**facts, **host.seen}}

    def _gathered(self, task_vars: dict[str, Any]) -> dict[str, Any]:
        """As ansible.builtin.gather_facts gathers them, with the modules and the timeout that the site has set."""
        answer: dict[str, Any] = plain(acted(self, "ansible.legacy.gather_facts", {"gather_subset": FACTS}, task_vars))
        return answer

    def answer(self, module: str, arguments: Mapping[str, Any], task_vars: dict[str, Any]) -> dict[str, Any]:
        """What a module of this collection answers."""
        found: dict[str, Any] = plain(called(self, module, arguments, task_vars))
        return found


class Variables:
    """The variables of the roles on one host, whose values follow from what it has answered."""

    def __init__(self, action: ActionModule, task_vars: dict[str, Any], facts: Mapping[str, Any]) -> None:
        self._action = action
        self._given = task_vars
        own = task_vars.get("ansible_facts") or {}
        self._facts: dict[str, Any] = {**own, **namespace_facts(dict(facts))["ansible_facts"]}
        self.values = host_values(action, task_vars)
        self.learn({}, {})

    def value(self, name: str) -> Any:
        """A variable of the roles, None where it has no value."""
        with self._evaluating():
            return self.values[name]

    @contextmanager
    def _evaluating(self) -> Iterator[None]:
        """A variable whose template fails is named, as a refusal."""
        try:
            yield
        except Refusal:
            raise
        except Exception as error:
            host = str(self._given.get("inventory_hostname"))
            raise Refusal(failing(self._given, self.values.evaluate, error, host)) from error

    def facts(self) -> Mapping[str, Any]:
        """The facts of the host, by their names without the prefix."""
        return self._facts

    def learn(self, facts: Mapping[str, Any], found: Answers) -> None:
        """Take what was answered into the values of variables."""
        self._facts.update(facts)
        self.values.answered(ansible_facts=self._facts, _gaudi_plan={"found": dict(found)})

    def module(self, name: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """What a module of the collection answers."""
        return self._action.answer(name, arguments, self._given)

    def options(self, question: Question) -> tuple[str, Mapping[str, Any]]:
        """Which module a question asks, with which options."""
        if not question.task:
            return question.module, question.options(self.value) if question.options else {}
        module, options = TASKS[question.role][question.task]
        with self._evaluating():
            found = self.values.evaluate(options)
        return module, with_wheel(found) if module == "trainer_install" else found

    def faults(self, roles: Sequence[str]) -> Sequence[str]:
        """What is wrong with the variables of these roles."""
        return faults(roles, self._given, self.values.evaluate)
