"""gaudi_service: a service runs with what lies on disk, whoever wrote it and when."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._host.service_state import youngest
from ansible_collections.gaudi3.scale.plugins.modules import gaudi_service


class Systemd:
    """systemctl of one unit, whose times are those of what it was asked to do."""

    def __init__(self, folder: Path) -> None:
        self.calls = folder / "calls"
        self.state = folder / "state"
        self.executable = folder / "systemctl"
        self.executable.write_text(
            f"""#!/bin/sh
now() {{ {sys.executable} -I -S -c 'import time; print(int(time.monotonic() * 1e6))'; }}
case "$1" in
show) cat {self.state}; exit 0 ;;
esac
echo "$@" >> {self.calls}
[ -e {folder}/fails ] && {{ rm {folder}/fails; echo 'Job failed.' >&2; exit 1; }}
case "$1" in
daemon-reload) sed -i s/NeedDaemonReload=yes/NeedDaemonReload=no/ {self.state} ;;
enable) sed -i s/=disabled/=enabled/ {self.state} ;;
disable) sed -i s/=enabled/=disabled/ {self.state} ;;
stop) sed -i s/=active/=inactive/ {self.state} ;;
reload) sed -i "s/^StateChange.*/StateChangeTimestampMonotonic=$(now)/" {self.state} ;;
*) sed -i -e s/=inactive/=active/ -e "s/TimestampMonotonic=.*/TimestampMonotonic=$(now)/" {self.state} ;;
esac
"""
        )
        self.executable.chmod(0o755)
        self.be()

    def be(self, **other: str) -> None:
        now = str(int(time.monotonic() * 1e6))
        values = {
            "LoadState": "loaded",
            "ActiveState": "active",
            "UnitFileState": "enabled",
            "NeedDaemonReload": "no",
            "ActiveEnterTimestampMonotonic": now,
            "StateChangeTimestampMonotonic": now,
            **other,
        }
        self.state.write_text("".join(f"{key}={value}\n" for key, value in values.items()))

    def asked(self) -> list[str]:
        """What it was asked to do since this was asked last."""
        said = self.calls.read_text().splitlines() if self.calls.exists() else []
        self.calls.unlink(missing_ok=True)
        return said


@pytest.fixture
def systemd(tmp_path: Path) -> Systemd:
    return Systemd(tmp_path)


@pytest.fixture
def options(systemd: Systemd, tmp_path: Path) -> dict[str, Any]:
    for name in ("program", "configuration"):
        (tmp_path / name).write_text("1")
    time.sleep(0.02)
    systemd.be()
    return {
        "name": "a.service",
        "restart_files": [str(tmp_path / "program"), str(tmp_path / "missing")],
        "reload_files": [str(tmp_path / "configuration")],
        "systemctl_executable": str(systemd.executable),
    }


def test_what_is_up_to_date_is_left_alone(systemd: Systemd, options: dict[str, Any], run_module: Any) -> None:
    assert run_module(gaudi_service, **options)["changed"] is False
    assert systemd.asked() == []


def test_a_program_that_a_package_replaced_is_started_anew(
    systemd: Systemd, options: dict[str, Any], run_module: Any, tmp_path: Path
) -> None:
    """A package keeps the time of its build."""
    time.sleep(0.02)
    draft = tmp_path / "draft"
    draft.write_text("2")
    os.utime(draft, (1.0, 1.0))
    draft.rename(tmp_path / "program")
    assert run_module(gaudi_service, check=True, **options)["done"] == ["restart"]
    assert run_module(gaudi_service, **options)["done"] == ["restart"]
    assert systemd.asked() == ["restart a.service"]
    assert run_module(gaudi_service, **options)["changed"] is False


def test_a_configuration_is_reloaded_and_a_restart_that_failed_is_made_up_for(
    systemd: Systemd, options: dict[str, Any], run_module: Any, tmp_path: Path
) -> None:
    time.sleep(0.02)
    (tmp_path / "configuration").write_text("2")
    (tmp_path / "fails").touch()
    failed = run_module(gaudi_service, **options)
    assert failed["msg"] == (
        "'systemctl reload a.service' failed (Job failed.): look into its log with 'journalctl -u a.service', and run "
        "again."
    )
    assert run_module(gaudi_service, **options)["done"] == ["reload"]
    assert run_module(gaudi_service, **options)["changed"] is False
    assert systemd.asked() == ["reload a.service"] * 2


@pytest.mark.parametrize(
    ("state", "done"),
    [
        ({"ActiveState": "inactive"}, ["start"]),
        ({"ActiveState": "failed", "UnitFileState": "disabled"}, ["enable", "start"]),
        ({"NeedDaemonReload": "yes"}, ["daemon-reload", "restart"]),
    ],
)
def test_other_states(
    state: dict[str, str], done: list[str], systemd: Systemd, options: dict[str, Any], run_module: Any
) -> None:
    systemd.be(**state)
    assert run_module(gaudi_service, check=True, **options)["done"] == done
    assert systemd.asked() == []
    assert run_module(gaudi_service, **options)["done"] == done


def test_what_is_not_there_yet(systemd: Systemd, options: dict[str, Any], run_module: Any) -> None:
    systemd.be(LoadState="not-found", ActiveState="inactive")
    assert run_module(gaudi_service, check=True, **options)["changed"] is True
    assert run_module(gaudi_service, **options)["msg"] == (
        "systemd knows no unit a.service: install what brings it, or mend its name."
    )


def test_what_tasks_before_will_change_is_predicted(options: dict[str, Any], run_module: Any) -> None:
    assert run_module(gaudi_service, check=True, pending="reload", **options)["done"] == ["reload"]
    assert run_module(gaudi_service, pending="reload", **options)["done"] == []


def test_a_clock_that_was_set_back_asks_for_no_restart(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    changed = (tmp_path / "file").stat().st_ctime
    assert youngest([str(tmp_path / "file")], changed + 1) == changed
    assert youngest([str(tmp_path / "file")], changed - 3600) == 0.0


def test_a_unit_that_goes_is_stopped_and_its_file_removed(
    systemd: Systemd, options: dict[str, Any], run_module: Any, tmp_path: Path
) -> None:
    going = {**options, "state": "absent", "unit_folder": str(tmp_path)}
    (tmp_path / "a.service").write_text("[Service]\n")
    verbs = ["stop", "disable", "daemon-reload"]
    assert run_module(gaudi_service, check=True, **going)["done"] == verbs
    assert systemd.asked() == [] and (tmp_path / "a.service").exists()
    assert run_module(gaudi_service, **going)["done"] == verbs
    assert systemd.asked() == ["stop a.service", "disable a.service", "daemon-reload"]
    assert not (tmp_path / "a.service").exists()
    systemd.be(LoadState="not-found", ActiveState="inactive", UnitFileState="")
    assert run_module(gaudi_service, **going)["changed"] is False and systemd.asked() == []


def test_files_are_written_before_the_start_and_a_second_run_changes_nothing(
    systemd: Systemd, options: dict[str, Any], run_module: Any, tmp_path: Path
) -> None:
    unit, data = tmp_path / "new/a.service", tmp_path / "list.conf"
    options["files"] = [
        {"path": str(unit), "content": "[Service]\n"},
        {"path": str(data), "content": "secret\n", "mode": "0600", "restart": False},
    ]
    predicted = run_module(gaudi_service, **options, check=True)
    assert (predicted["changed"], predicted["done"], unit.exists()) == (True, ["restart"], False)
    written = run_module(gaudi_service, **options)
    assert (unit.read_text(), data.read_text(), data.stat().st_mode & 0o777) == ("[Service]\n", "secret\n", 0o600)
    assert written["done"] == ["restart"] and systemd.asked() == ["restart a.service"]
    assert [(each["after_header"], each["after"]) for each in written["diff"]] == [
        (str(unit), "# mode 0644\n[Service]\n"),
        (str(data), "# mode 0600\nsecret\n"),
    ]
    second = run_module(gaudi_service, **options)
    assert (second["changed"], second["done"], second["diff"]) == (False, [], [])
    data.write_text("other\n")
    assert run_module(gaudi_service, **options)["changed"] is True
    assert systemd.asked() == []


def test_a_unit_that_is_only_enabled_is_not_started(
    systemd: Systemd, options: dict[str, Any], run_module: Any, tmp_path: Path
) -> None:
    options |= {"state": "enabled", "files": [{"path": str(tmp_path / "a.service"), "content": "[Unit]\n"}]}
    systemd.be(LoadState="not-found", ActiveState="inactive", UnitFileState="")
    predicted = run_module(gaudi_service, **options, check=True)
    assert predicted["done"] == ["enable"]
    systemd.be(ActiveState="inactive", UnitFileState="disabled", NeedDaemonReload="yes")
    assert run_module(gaudi_service, **options)["done"] == ["daemon-reload", "enable"]
    assert systemd.asked() == ["daemon-reload", "enable a.service"]
    assert run_module(gaudi_service, **options)["changed"] is False
