"""gaudi_service: a service runs with what lies on disk, whoever wrote it and when."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._host.service_state import youngest
from ansible_collections.gaudi3.scale.plugins.module_utils._module_bodies import listener
from ansible_collections.gaudi3.scale.plugins.modules import gaudi_service

from ..sockets import Sockets


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


@pytest.fixture
def listens(tmp_path: Path) -> dict[str, Any]:
    """Where the unit is to listen, on a host on which nobody does."""
    return {"address": "10.0.0.1", "port": 9100, "variable": "mine", "proc_root": str(tmp_path / "proc"), "timeout": 0}


def test_a_port_that_another_holds_is_refused_before_anything_changes(
    systemd: Systemd, options: dict[str, Any], listens: dict[str, Any], run_module: Any, tmp_path: Path
) -> None:
    Sockets(tmp_path / "proc").listen("0.0.0.0", 9100, "exporter\x1b[2J", "/system.slice/theirs.service", 41)
    options |= {"listens": listens, "files": [{"path": str(tmp_path / "new"), "content": "1"}]}
    for check in (True, False):
        assert run_module(gaudi_service, check=check, **options)["msg"] == (
            "Port 9100 of 10.0.0.1 is held by exporter\\x1b[2J (process 41, theirs.service), so a.service cannot "
            "listen there: stop and disable what holds it, or give another port as mine_port."
        )
    assert systemd.asked() == [] and not (tmp_path / "new").exists()


def test_its_own_listener_is_no_obstacle(
    systemd: Systemd, options: dict[str, Any], listens: dict[str, Any], run_module: Any, tmp_path: Path
) -> None:
    Sockets(tmp_path / "proc").listen("10.0.0.1", 9100, "mine", "/system.slice/a.service", 41)
    for check in (True, False):
        assert run_module(gaudi_service, check=check, listens=listens, **options)["changed"] is False


@pytest.mark.parametrize(
    ("state", "why"),
    [
        ({}, "nothing of the unit listens after 0 seconds"),
        ({"ActiveState": "activating"}, "nothing of the unit listens after 0 seconds"),
    ],
)
def test_a_unit_that_does_not_come_to_listen_has_failed(
    state: dict[str, str],
    why: str,
    systemd: Systemd,
    options: dict[str, Any],
    listens: dict[str, Any],
    run_module: Any,
    tmp_path: Path,
) -> None:
    Sockets(tmp_path / "proc")
    systemd.be(**state)
    assert run_module(gaudi_service, listens=listens, **options)["msg"] == (
        f"a.service does not listen on 10.0.0.1 port 9100, since {why}: see 'journalctl -u a.service', and check the "
        "role's address, port and further arguments."
    )


def test_who_answers_is_not_asked_but_who_owns_the_port(
    options: dict[str, Any], listens: dict[str, Any], run_module: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another one that takes the port while the unit starts."""
    sockets = Sockets(tmp_path / "proc")
    act = listener.wait_for_own

    def late(*given: Any) -> None:
        sockets.listen("::", 9100, "theirs", "/system.slice/theirs.service", 41)
        act(*given)

    monkeypatch.setattr(listener, "wait_for_own", late)
    said = run_module(gaudi_service, listens=listens, **options)["msg"]
    assert "since theirs (process 41, theirs.service) listens there" in said


def test_a_container_of_the_unit_is_its_own(
    options: dict[str, Any], listens: dict[str, Any], run_module: Any, tmp_path: Path
) -> None:
    group = "/machine.slice/libpod-0123456789abcdef0123.scope/container"
    Sockets(tmp_path / "proc").listen("10.0.0.1", 9100, "exporter", group, 41)
    listens["container"] = ["echo", "0123456789abcdef0123"]
    assert run_module(gaudi_service, listens=listens, **options)["changed"] is False
    listens["container"] = ["false"]
    assert run_module(gaudi_service, listens=listens, **options)["failed"]


@pytest.mark.parametrize("address", ["", "0.0.0.0", "10.0.0.0/8", "a b", "10.0.0.1:9100", "--web.x"])
def test_an_address_that_is_not_one_of_a_host_is_refused(
    address: str, options: dict[str, Any], listens: dict[str, Any], run_module: Any
) -> None:
    said = run_module(gaudi_service, listens={**listens, "address": address}, **options)["msg"]
    assert said.startswith(f"a.service is to listen on {address!r}, which is no address of one host")


@pytest.mark.parametrize("verb", ["restart", "reload"])
def test_a_dry_run_predicts_what_a_file_is_for(
    systemd: Systemd, options: dict[str, Any], run_module: Any, tmp_path: Path, verb: str
) -> None:
    file = {"path": str(tmp_path / "new"), "content": "1", "restart": verb == "restart", "reload": verb == "reload"}
    assert run_module(gaudi_service, check=True, **options, files=[file])["done"] == [verb]
    assert run_module(gaudi_service, **options, files=[file])["done"] == [verb]
    time.sleep(0.02)
    assert run_module(gaudi_service, **options, files=[file])["changed"] is False


def test_a_dry_run_says_whether_the_record_is_up_to_date(
    systemd: Systemd, options: dict[str, Any], run_module: Any, tmp_path: Path
) -> None:
    file = {"path": str(tmp_path / "new"), "content": "1"}
    claim = {"service": "a", "variable": "a", "files": [file["path"]], "records": str(tmp_path / "records")}
    options |= {"files": [file], "claim": {**claim, "unit_folders": [], "cluster": {"nodes": {"a": "10.0.0.1"}}}}
    assert run_module(gaudi_service, check=True, **options)["recorded"] is False
    run_module(gaudi_service, **options)
    assert run_module(gaudi_service, check=True, **options)["recorded"] is True
    options["claim"]["cluster"]["nodes"]["b"] = "10.0.0.2"
    assert run_module(gaudi_service, check=True, **options)["recorded"] is False
