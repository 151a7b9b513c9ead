"""Packages in one task: what is asked of a host, and when a dry run passes over one that apt does not know."""

from __future__ import annotations

from typing import Any
from unittest.mock import MagicMock

import pytest

from ansible_collections.gaudi3.scale.plugins.action import gaudi_packages as action

UNKNOWN = {"failed": True, "msg": "No package matching 'exporter' is available"}
FACTS = {"ansible_facts": {"os_family": "Debian"}}
CLEANED: tuple[str, dict[str, Any], bool] = ("cleanup", {}, False)


class Play:
    """One task on a host that answers the package module, queries of a version and looks at lists."""

    def __init__(self, package: dict[str, Any], versions: tuple[str, ...] = (), lists: int = 0) -> None:
        self.asked: list[tuple[str, dict[str, Any], bool]] = []
        self.package, self.versions, self.lists = package, list(versions), lists

    def run(self, check: bool = False, **arguments: Any) -> dict[str, Any]:
        task = MagicMock(args={"name": ["exporter"], **arguments}, check_mode=check, async_val=0)
        task.module_defaults = [{"ansible.builtin.apt": {"lock_timeout": 9}}]
        task.copy.side_effect = lambda: MagicMock(
            args=dict(task.args), check_mode=check, module_defaults=task.module_defaults
        )
        loader = MagicMock()
        plugin = action.ActionModule(task, MagicMock(), MagicMock(), MagicMock(), MagicMock(), loader)

        def package(_name: str, task: Any, **_given: Any) -> Any:
            self.asked.append(("package", {**task.args, "defaults": task.module_defaults}, task.check_mode))
            return MagicMock(run=lambda task_vars: dict(self.package), cleanup=lambda: self.asked.append(CLEANED))

        def execute(module_name: str, module_args: dict[str, Any], task_vars: Any) -> dict[str, Any]:
            self.asked.append((module_name.rpartition(".")[2], module_args, plugin._task.check_mode))
            if module_name.endswith("find"):
                return {"matched": self.lists}
            return {"rc": 0, "stdout": self.versions.pop(0)}

        loader.action_loader.get = package
        plugin._shared_loader_obj = loader
        plugin._execute_module = execute
        result: dict[str, Any] = plugin.run(task_vars=dict(FACTS))
        return result

    @property
    def modules(self) -> list[str]:
        return [name for name, _options, _check in self.asked]


def test_one_that_is_installed_is_asked_for_its_version_alone() -> None:
    play = Play({"changed": True}, ("1.7.0-1 installed",))
    assert play.run(ask_version=True) == {"changed": False, "version": "1.7.0-1"}
    assert play.modules == ["command"]


def test_one_that_is_missing_is_installed_and_asked_for_its_version() -> None:
    play = Play({"changed": True, "stdout": "..."}, ("", "1.7.0-1 installed"))
    assert play.run(ask_version=True, start=False) == {"changed": True, "stdout": "...", "version": "1.7.0-1"}
    assert play.modules == ["command", "package", "cleanup", "command"]
    assert (play.asked[1][1]["name"], play.asked[1][1]["state"]) == (["exporter"], "present")
    # Whichever manager the host turns out to have.
    sites, ours = play.asked[1][1]["defaults"]
    assert sites == {"ansible.builtin.apt": {"lock_timeout": 9}} and ours["ansible.builtin.apt"]["policy_rc_d"] == 101


def test_a_version_is_asked_in_a_dry_run_too() -> None:
    play = Play({"changed": True}, ("", ""))
    assert play.run(check=True, ask_version=True) == {"changed": True, "version": ""}
    assert [(name, check) for name, _options, check in play.asked if name != "cleanup"] == [
        ("command", False), ("package", True), ("command", False),
    ]  # fmt: skip


def test_a_failure_is_told_and_nothing_more_is_asked() -> None:
    play = Play({"failed": True, "msg": "no network"}, ("",))
    assert play.run(ask_version=True) == {"failed": True, "msg": "no network", "version": ""}
    assert play.modules == ["command", "package", "cleanup"]


@pytest.mark.parametrize(
    ("check", "lists", "options", "failed"),
    [(True, 0, {}, False), (True, 1, {}, True), (True, 1, {"new_source": True}, False), (False, 0, {}, True)],
)
def test_a_package_that_apt_does_not_know(check: bool, lists: int, options: dict[str, Any], failed: bool) -> None:
    found = Play(UNKNOWN, lists=lists).run(check=check, **options)
    assert found == (UNKNOWN if failed else {"changed": True})
