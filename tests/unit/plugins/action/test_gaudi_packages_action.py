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

    def __init__(
        self, *packages: dict[str, Any], versions: tuple[str, ...] = (), lists: int = 0, source: float = 0
    ) -> None:
        """``source`` is when a source was written; apt read them at 50. The last of ``packages`` is answered again."""
        self.asked: list[tuple[str, dict[str, Any], bool]] = []
        self.packages, self.versions, self.lists, self.source = list(packages), list(versions), lists, source

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
            answer = self.packages.pop(0) if len(self.packages) > 1 else self.packages[0]
            return MagicMock(run=lambda task_vars: dict(answer), cleanup=lambda: self.asked.append(CLEANED))

        def execute(module_name: str, module_args: dict[str, Any], task_vars: Any) -> dict[str, Any]:
            self.asked.append((module_name.rpartition(".")[2], module_args, plugin._task.check_mode))
            if module_name.endswith("find"):
                if "age" in module_args:
                    return {"matched": self.lists}
                times = {"/var/lib/apt/lists": 50.0, "/etc/apt/sources.list.d/a.sources": self.source}
                return {"files": [{"path": path, "mtime": at, "ctime": at} for path, at in times.items()]}
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
    play = Play({"changed": True}, versions=("1.7.0-1 installed",))
    assert play.run(ask_version=True) == {"changed": False, "version": "1.7.0-1"}
    assert play.modules == ["command"]


def test_one_that_is_missing_is_installed_and_asked_for_its_version() -> None:
    play = Play({"changed": True, "stdout": "..."}, versions=("", "1.7.0-1 installed"))
    assert play.run(ask_version=True, start=False) == {"changed": True, "stdout": "...", "version": "1.7.0-1"}
    assert play.modules == ["command", "package", "cleanup", "command"]
    assert (play.asked[1][1]["name"], play.asked[1][1]["state"]) == (["exporter"], "present")
    # Whichever manager the host turns out to have.
    sites, ours = play.asked[1][1]["defaults"]
    assert sites == {"ansible.builtin.apt": {"lock_timeout": 9}} and ours["ansible.builtin.apt"]["policy_rc_d"] == 101


def test_one_of_another_version_than_its_name_says_is_installed() -> None:
    play = Play({"changed": True}, versions=("1.1.2 installed", "1.5.0-1 installed"))
    assert play.run(ask_version=True, name=["exporter=1.5*"]) == {"changed": True, "version": "1.5.0-1"}
    assert [options["argv"][-1] for name, options, _check in play.asked if name == "command"] == ["exporter"] * 2
    play = Play({"changed": True}, versions=("1.5.0-1 installed",))
    assert play.run(ask_version=True, name=["exporter=1.5*"]) == {"changed": False, "version": "1.5.0-1"}


def test_a_version_is_asked_in_a_dry_run_too() -> None:
    play = Play({"changed": True}, versions=("", ""))
    assert play.run(check=True, ask_version=True) == {"changed": True, "version": ""}
    assert [(name, check) for name, _options, check in play.asked if name != "cleanup"] == [
        ("command", False), ("package", True), ("command", False),
    ]  # fmt: skip


def test_a_failure_is_told_and_nothing_more_is_asked() -> None:
    play = Play({"failed": True, "msg": "no network"}, versions=("",))
    assert play.run(ask_version=True) == {"failed": True, "msg": "no network", "version": ""}
    assert play.modules == ["command", "package", "cleanup"]


@pytest.mark.parametrize(
    ("lists", "source", "options", "failed"),
    [
        (0, 0, {}, False),
        (1, 0, {}, True),
        (1, 0, {"new_source": True}, False),
        # Of a run that ended between the source and the package.
        (1, 60, {}, False),
    ],
)
def test_a_dry_run_passes_over_what_the_run_itself_fetches(
    lists: int, source: float, options: dict[str, Any], failed: bool
) -> None:
    found = Play(UNKNOWN, lists=lists, source=source).run(check=True, **options)
    assert found == (UNKNOWN if failed else {"changed": True})


def test_sources_are_read_again_where_one_is_newer_than_the_lists() -> None:
    play = Play(UNKNOWN, {"changed": True, "stdout": "..."}, lists=1, source=60)
    assert play.run() == {"changed": True, "stdout": "..."}
    first, _cleaned, _find, second, _last = play.asked
    times = [asked[1]["defaults"][-1]["ansible.builtin.apt"]["cache_valid_time"] for asked in (first, second)]
    assert times == [3600, 0]


@pytest.mark.parametrize(("source", "options"), [(0, {}), (60, {"new_source": True})])
def test_a_package_that_is_nowhere_fails(source: float, options: dict[str, Any]) -> None:
    play = Play(UNKNOWN, source=source)
    assert play.run(**options) == UNKNOWN
    assert play.modules.count("package") == 1


@pytest.mark.parametrize(("listed", "changed"), [("exporter 1 installed\n", False), ("", True)])
def test_a_dry_run_without_the_bindings_of_apt_predicts(listed: str, changed: bool) -> None:
    """The run itself installs them."""
    said = {"failed": True, "msg": "python3-apt must be installed to use check mode. If run normally this module can"}
    assert Play(said, versions=(listed,)).run(check=True) == {"changed": changed}
    assert Play(said).run() == said


def test_nothing_is_done_where_no_package_is_wanted() -> None:
    """Apt's module would read the sources, and say that it changed something."""
    play = Play({"changed": True})
    assert play.run(name=[]) == {"changed": False} and play.asked == []
