"""gaudi_claim: what somebody else wrote is refused, or kept and put back; what the collection wrote is its own."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.gaudi3.scale.plugins.modules import gaudi_claim

SITE = "scrape_configs:\n  - {job_name: storage}\n"
DPKG = """#!/bin/sh
[ -e {folder}/installed ] || exit 1
printf 'installed\\n {file} {md5}\\n'
"""


class Machine:
    """A folder with a service's files."""

    def __init__(self, folder: Path, run_module: Any) -> None:
        self.folder, self.run_module = folder, run_module
        self.file, self.other, self.arguments = folder / "a.yml", folder / "b.yml", folder / "default"
        md5 = hashlib.md5(b"as packaged", usedforsecurity=False).hexdigest()
        self.dpkg = folder / "dpkg-query"
        self.dpkg.write_text(DPKG.format(folder=folder, file=self.file, md5=md5))
        self.dpkg.chmod(0o755)
        self.options: dict[str, Any] = {
            "service": "prometheus", "variable": "prometheus", "package": "prometheus=2.*",
            "files": [str(self.file), str(self.other), str(self.arguments)], "arguments_file": str(self.arguments),
            "keep": {str(self.file): str(folder / "site.yml")}, "records": str(folder / "written"),
            "unit": "prometheus.service", "data": str(folder / "data"),
            "unit_folders": [str(folder / "units"), str(folder / "more")],
            "dpkg_query_executable": str(self.dpkg),
        }  # fmt: skip

    def run(self, **more: Any) -> dict[str, Any]:
        result: dict[str, Any] = self.run_module(gaudi_claim, **{**self.options, **more})
        return result

    def written(self, **more: Any) -> None:
        """The role, as far as its files go."""
        assert not self.run(**more).get("failed")
        for path in (self.file, self.other, self.arguments):
            path.write_text("ours")
        assert self.run(state="recorded").get("failed") is not True

    def kept(self, path: Path) -> list[str]:
        return [each.read_text() for each in sorted(path.parent.glob(f"{path.name}.2*~"))]


@pytest.fixture
def machine(tmp_path: Path, run_module: Any) -> Machine:
    return Machine(tmp_path, run_module)


def test_what_nobody_wrote_is_claimed_and_known_at_the_next_run(machine: Machine) -> None:
    machine.written()
    again = machine.run()
    assert (again["changed"], again["taken_over"], again["in_use"]) == (False, [], False)
    assert (machine.folder / "written/prometheus.json").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("check", [True, False])
def test_what_somebody_else_wrote_is_refused_and_stays(machine: Machine, check: bool) -> None:
    machine.file.write_text(SITE)
    units = machine.folder / "units/prometheus.service.d"
    units.mkdir(parents=True)
    (units / "site.conf").write_text("[Service]\nExecStart=\nExecStart=/opt/prometheus\n")
    (units / "limits.conf").write_text("[Service]\nLimitNOFILE=9\n")
    other = machine.folder / "more/prometheus.service"
    other.parent.mkdir()
    other.write_text("[Service]\n")
    before = {path: path.read_bytes() for path in machine.folder.rglob("*") if path.is_file()}
    assert machine.run(check=check)["msg"] == (
        f"{machine.file}, {units}/site.conf, {other} on this host were not written by this collection, or changed "
        "since: set prometheus_take_over=true to have it replaced, which keeps a dated backup beside each file, move "
        "it away, or take this host out of its group."
    )
    assert {path: path.read_bytes() for path in machine.folder.rglob("*") if path.is_file()} == before


def test_a_file_as_its_package_brought_it_is_nobodys(machine: Machine) -> None:
    (machine.folder / "installed").touch()
    machine.file.write_text("as packaged")
    assert machine.run()["taken_over"] == []
    machine.file.write_text("as packaged, and a job more")
    assert machine.run(check=True, records=str(machine.folder / "none"))["failed"]


def test_what_is_taken_over_is_kept_and_put_back(machine: Machine) -> None:
    (machine.folder / "installed").touch()
    (machine.folder / "units").mkdir()
    unit = machine.folder / "units/prometheus.service"
    for path, text in ((machine.file, SITE), (unit, "[Service]\n")):
        path.write_text(text)
    machine.arguments.write_text('ARGS="--storage.tsdb.retention.time=400d --web.enable-lifecycle"\n')
    predicted = machine.run(check=True, take_over=True)
    assert predicted["kept"] == {str(machine.file): SITE} and predicted["changed"] and not machine.kept(machine.file)
    machine.written(take_over=True)
    assert machine.kept(machine.file) == [SITE] and machine.kept(unit) == ["[Service]\n"] and not unit.exists()
    again = machine.run()
    assert again["kept"] == {str(machine.file): SITE} and again["in_use"] and not again["changed"]
    assert again["arguments"] == ["--storage.tsdb.retention.time=400d", "--web.enable-lifecycle"]
    assert machine.run(state="absent", check=True)["in_use"] and machine.other.exists()
    gone = machine.run(state="absent")
    assert gone["restored"] == [str(machine.file), str(machine.arguments), str(unit)] and gone["in_use"]
    assert machine.file.read_text() == SITE and unit.exists() and not machine.other.exists()
    assert not machine.kept(machine.file) and not (machine.folder / "site.yml").exists()
    assert machine.run(state="absent")["changed"] is False


KEPT = "--storage.tsdb.retention.time=400d"


@pytest.mark.parametrize(
    "text",
    [
        f'ARGS="{KEPT} --b"\n',
        f"# ARGS=--old\n; ARGS=--old\nARGS='{KEPT}  --b'\n",
        f'ARGS="{KEPT} \\\n  --b"\n',
        f"ARGS={KEPT} \\\n --b\n",
        f'ARGS="{KEPT}\n--b"\n',
        f'ARGS="--old"\nOTHER=x\n ARGS = "{KEPT} --b"',
        f'ARGS="{KEPT} --b',
    ],
)
def test_arguments_are_read_as_systemd_reads_them(machine: Machine, text: str) -> None:
    machine.arguments.write_text(text)
    assert machine.run(check=True, take_over=True)["running"] == [KEPT, "--b"]


@pytest.mark.parametrize(
    ("unit", "drop_in"),
    [
        (f"[Service]\nExecStart=/opt/prometheus {KEPT} --b\n", ""),
        (f"[Service]\nExecStart=-/opt/prometheus \\\n  {KEPT} \\\n  --b\n", ""),
        ("[Service]\nEnvironmentFile=-FOLDER/own\nExecStart=/opt/prometheus $OPTIONS --b\n", ""),
        ("[Service]\nExecStart=/opt/prometheus --old\n", f"[Service]\nExecStart=\nExecStart=/bin/p {KEPT} --b\n"),
        ("", f'[Service]\nEnvironment="ARGS={KEPT} --b"\n'),
        ("", "[Service]\nEnvironmentFile=FOLDER/own\n"),
        ("", f"[Service]\nExecStart=\nExecStart=/usr/bin/prometheus {KEPT} $ARGS\n"),
    ],
)
def test_arguments_of_a_unit_of_the_site_stay(machine: Machine, unit: str, drop_in: str) -> None:
    folder = machine.folder / "units/prometheus.service.d"
    folder.mkdir(parents=True)
    machine.arguments.write_text('ARGS="--b"\n')
    (machine.folder / "own").write_text(f'OPTIONS="{KEPT}"\nARGS="{KEPT} --b"\n')
    for path, text in ((folder.parent / "prometheus.service", unit), (folder / "site.conf", drop_in)):
        if text:
            path.write_text(text.replace("FOLDER", str(machine.folder)))
    machine.written(take_over=True)
    assert machine.run()["arguments"] == [KEPT, "--b"]


def test_a_unit_whose_arguments_cannot_be_known_is_refused(machine: Machine) -> None:
    (machine.folder / "units").mkdir()
    unit = machine.folder / "units/prometheus.service"
    unit.write_text(f"[Service]\nExecStart=/bin/sh -c 'exec prometheus {KEPT}'\n")
    assert machine.run(take_over=True)["msg"] == (
        f"{unit} on this host starts /bin/sh with '-c' as its first argument, so the arguments of prometheus cannot be "
        f'known: write them into {machine.arguments} as ARGS="...", move the unit away, and run again.'
    )
    assert unit.exists() and not machine.kept(unit)


def test_without_a_record_a_package_that_is_there_is_the_sites(machine: Machine) -> None:
    """A run that was refused wrote nothing, and its removal removes nothing."""
    assert machine.run(state="absent")["in_use"] is False
    (machine.folder / "installed").touch()
    machine.file.write_text(SITE)
    assert machine.run()["failed"]
    gone = machine.run(state="absent")
    assert (gone["changed"], gone["in_use"], machine.file.read_text()) == (False, True, SITE)


def test_an_edit_by_hand_is_noticed_and_is_not_removed(machine: Machine) -> None:
    machine.written()
    machine.other.write_text("ours, and a line of mine")
    assert machine.run()["msg"].startswith(f"{machine.other} on this host was not written by this collection")
    assert machine.run(state="absent")["left"] == [str(machine.other)]
    assert machine.other.exists() and not machine.file.exists()


def test_a_run_that_was_interrupted_owns_what_it_wrote(machine: Machine) -> None:
    machine.run()
    machine.file.write_text("ours, half of it")
    assert machine.run()["taken_over"] == []


def test_a_part_of_the_files_leaves_the_record_open(machine: Machine) -> None:
    machine.run()
    machine.file.write_text("targets")
    machine.run(state="recorded", files=[str(machine.file)])
    machine.other.write_text("ours")
    assert machine.run()["taken_over"] == []


def test_a_part_that_is_written_later_opens_the_record_for_no_other_file(machine: Machine) -> None:
    machine.written()
    part = {"files": [str(machine.file)], "package": ""}
    machine.run(**part)
    machine.file.write_text("other targets")
    machine.run(state="recorded", **part)
    assert machine.run()["taken_over"] == []
    machine.run(state="recorded")
    machine.run(**part)  # and is interrupted here
    machine.other.write_text("ours, and a line of mine")
    assert machine.run()["msg"].startswith(f"{machine.other} on this host was not written by this collection")


A = {"authority": "a", "nodes": {"gaudi-1": "10.0.0.1", "gaudi-2": "10.0.0.2"}}


@pytest.mark.parametrize(
    ("authority", "nodes", "same"),
    [
        ("a", {"gaudi-1": "10.0.0.1"}, True),  # shrunk
        ("a", {"gaudi-1": "10.9.0.1"}, True),  # all have new addresses
        ("", {"node-7": "10.0.0.2"}, True),  # renamed, from a controller without the secrets
        ("b", {"gaudi-2": "10.0.0.2", "gaudi-3": "10.0.0.3"}, True),  # grown, with a new authority
        ("b", {"gaudi-1": "10.1.0.1", "gaudi-2": "10.1.0.2"}, False),  # another cluster that uses the same names
        ("", {"b-01": "10.2.0.1"}, False),
    ],
)
def test_a_second_cluster_is_refused_and_the_first_may_change(
    machine: Machine, authority: str, nodes: dict[str, str], same: bool
) -> None:
    machine.written(cluster=A)
    machine.run(state="recorded", cluster=A)
    for state in ("claimed", "recorded", "absent"):
        said = machine.run(state=state, check=True, cluster={"authority": authority, "nodes": nodes})
        assert bool(said.get("failed")) is not same
        expected = "This host's prometheus watches gaudi-1, gaudi-2 of another inventory, and none of "
        assert same or said["msg"].startswith(expected)


def test_a_damaged_record_is_refused(machine: Machine) -> None:
    (machine.folder / "written").mkdir()
    for text in ("{", json.dumps([]), json.dumps({"files": {}, "pending": True})):
        (machine.folder / "written/prometheus.json").write_text(text)
        assert "cannot be read" in machine.run()["msg"]


def test_a_unit_that_the_role_writes_is_one_of_its_files(machine: Machine) -> None:
    """Somebody else's is refused as such a file is, and our own is no unit of the site's at the next run."""
    folder = machine.folder / "units"
    unit = folder / "prometheus.service"
    folder.mkdir()
    machine.options["files"].append(str(unit))
    unit.write_text("[Service]\nExecStart=/site\n")
    said = machine.run()
    assert said["failed"] and str(unit) in said["msg"] and said["msg"].count(str(unit)) == 1
    unit.unlink()
    assert not machine.run().get("failed")
    unit.write_text("ours")
    machine.written()
    assert machine.run()["taken_over"] == []
