"""from-report and from-inventory: what they refuse, in one sentence, with nothing written; what they write and name."""

from __future__ import annotations

import io
import json
import os
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import pytest

from gaudi3_simulator.cli import main
from gaudi3_simulator.twin import commands, fleet

ADDRESSES = ("0000:19:00.0", "0000:b3:00.0")


def doctors() -> dict[str, Any]:
    """A report of two cards whose driver is loaded, with a field in three places that nobody knows yet."""
    cards = [
        {"address": address, "accel": f"accel{number}", "device": "0x1060", "iommu_type": "identity", "net": {}}
        for number, address in enumerate(ADDRESSES)
    ]
    head = "index, module_id, bus_id, name"
    rows = [f"{number}, {6 - number}, {address}, HL-325L" for number, address in enumerate(ADDRESSES)]
    said = {"exit_code": 0, "seconds": 0.1, "errors": ""}
    tools = {
        "table": {**said, "output": ""},
        "csv_without_units": {**said, "output": "\n".join([head, *rows]) + "\n"},
        "log": {**said, "output": ""},
    }
    cards[0]["firmware_age"] = 3
    sections = {
        "machine": {"state": "fine", "data": {"kernel": "5.15.0-92-generic", "moon": "full"}},
        "cards": {"state": "fine", "data": {"cards": cards}},
        "tools": {"state": "fine", "data": tools},
        "weather": {"state": "fine", "data": {"rain": True}},
        "environment": {"state": "fine", "data": {"login": {}}},
    }
    return {"format": 1, "created": "2026-11-01 09:00 UTC", "simulated": False, "sections": sections}


def archive(*members: tarfile.TarInfo, compressed: bool = True) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz" if compressed else "w") as tar:
        for member in members:
            tar.addfile(member, io.BytesIO(b"x" * member.size))
    return buffer.getvalue()


def member(name: str, size: int = 0, kind: bytes = tarfile.REGTYPE) -> tarfile.TarInfo:
    made = tarfile.TarInfo(name)
    made.size, made.type, made.linkname = size, kind, "/etc/shadow" if kind != tarfile.REGTYPE else ""
    return made


LOG = member("gaudi-support/hl-smi-log.txt")
WHOLE = json.dumps(doctors()).encode()
BAD = {
    "cut off": (WHOLE[: len(WHOLE) // 2], "ends in the middle"),
    "no json": (b"hello", "is no JSON"),
    "deep": (b'{"format": 1, "sections": ' + b"[" * 100_000, "ends in the middle"),
    "other json": (b'{"verdicts": []}', "is no doctor's report"),
    "newer": (WHOLE.replace(b'"format": 1', b'"format": 2'), "has format 2, which is of a newer version"),
    "older": (WHOLE.replace(b'"format": 1', b'"format": 0'), "has format 0, which is of another version"),
    "oversized": (WHOLE + b" " * (4 << 20), "has more than 4 MiB"),
    "zip": (b"PK\x03\x04" + b"\0" * 40, "is a zip archive"),
    "upwards": (archive(LOG, member("gaudi-support/../../etc/cron.d/x")), "which leads out of its folder"),
    "absolute": (archive(LOG, member("/etc/cron.d/x")), "which leads out of its folder"),
    "symbolic link": (archive(LOG, member("gaudi-support/x", kind=tarfile.SYMTYPE)), "has the link gaudi-support/x"),
    "hard link": (archive(LOG, member("gaudi-support/x", kind=tarfile.LNKTYPE)), "has the link gaudi-support/x"),
    "device": (archive(LOG, member("gaudi-support/x", kind=tarfile.CHRTYPE)), "which is no plain file"),
    "bomb": (archive(member("gaudi-support/hl-smi-log.txt", 40 << 20)), "has more than 32 MiB"),
    "cut archive": (archive(LOG, member("gaudi-support/a", 9000))[:-40], "ends in the middle or is damaged"),
    "cut tar": (archive(member("gaudi-support/a", 9000), compressed=False)[:1024], "ends in the middle or is no tar"),
    "other archive": (archive(member("notes.txt")), "is no support bundle"),
    "no card": (b'{"format": 1, "sections": {}}', "names no card that is simulated"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_no_report_is_refused_and_nothing_is_written(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    content, said = BAD[name]
    report = tmp_path / "report"
    report.write_bytes(content)
    assert main(["from-report", str(report), "--into", str(tmp_path / "twin")]) == 2
    printed = capsys.readouterr()
    assert said in printed.err and printed.err.count("\n") == 1 and printed.out == ""
    assert [path.name for path in tmp_path.iterdir()] == ["report"]


def test_a_twin_has_the_reports_cards_and_what_nobody_knows_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report, twin = tmp_path / "report.json", tmp_path / "twin"
    report.write_bytes(WHOLE)
    assert main(["from-report", str(report), "--into", str(twin), "--node", "gaudi-7"]) == 0
    out = capsys.readouterr().out
    unknown = json.loads((twin / "unknown.json").read_text())
    assert unknown == {
        "sections.machine.data.moon": "full",
        "sections.cards.data.cards[0].firmware_age": 3,
        "sections.weather": {"state": "fine", "data": {"rain": True}},
    }
    assert all(f"  unknown   {path}\n" in out for path in unknown)
    assert "  note      section environment of the report is kept beside the twin and not simulated\n" in out
    assert (twin / "report.json").read_bytes() == WHOLE
    state = json.loads((twin / "state.json").read_text())
    assert (state["node"], state["board"]) == ("gaudi-7", "HL-325L")
    told = [(card["bus_id"], card["module_id"]) for card in state["cards"]]
    assert told == [(ADDRESSES[0], 6), (ADDRESSES[1], 5)]
    assert main(["from-report", str(report), "--into", str(twin)]) == 2
    assert "is there already" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["REPORT"], "--into is missing"),
        (["REPORT", "--into", "FOLDER/none/twin"], "There is no folder"),
        (["REPORT", "--into", "FOLDER/twin", "--node", "../x"], "--node was '../x'"),
        (["FOLDER", "--replay"], "is no twin"),
        (["FOLDER/none.json", "--into", "FOLDER/twin"], "cannot be read"),
    ],
)
def test_a_request_that_cannot_be_met_is_one_sentence(
    words: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = tmp_path / "report.json"
    report.write_bytes(WHOLE)
    given = [word.replace("REPORT", str(report)).replace("FOLDER", str(tmp_path)) for word in words]
    assert main(["from-report", *given]) == 2
    error = capsys.readouterr().err
    assert said in error and error.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["report.json"]


def test_words_of_a_report_reach_no_terminal_and_odd_bytes_stop_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = doctors()
    report["new\x1b[2J"] = 1
    report["sections"]["machine"]["data"]["kernel"] = "5.15\udcff\x1b[31m"
    report["sections"]["modules"] = {"data": {"loaded": {"habanalabs": {"version": "1.23.0\udcff"}}}}
    cards = report["sections"]["cards"]["data"]["cards"]
    cards[0].update(numa_node="\udcff", net={"hl0": {"dev_port": 1, "flags": "none"}})
    (tmp_path / "r.json").write_text(json.dumps(report), encoding="utf-8-sig")  # as an editor may mark it
    assert main(["from-report", str(tmp_path / "r.json"), "--into", str(tmp_path / "twin"), "--node", "gaudi-1"]) == 0
    said = capsys.readouterr().out
    assert "kernel 5.15\\udcff\\x1b[31m (of the report)" in said and "  unknown   new\\x1b[2J\n" in said
    assert "\x1b" not in said


@pytest.mark.parametrize("numbers", [(3, 3), (6, 77)])
def test_module_numbers_that_are_no_map_are_made_up(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], numbers: tuple[int, int]
) -> None:
    report = doctors()
    table = report["sections"]["tools"]["data"]["csv_without_units"]
    for number, said in enumerate(numbers):
        table["output"] = table["output"].replace(f"{number}, {6 - number},", f"{number}, {said},")
    (tmp_path / "r.json").write_text(json.dumps(report))
    assert main(["from-report", str(tmp_path / "r.json"), "--into", str(tmp_path / "twin"), "--node", "gaudi-1"]) == 0
    assert "note      the report's module numbers are no map of the cards: the twin's are" in capsys.readouterr().out
    cards = json.loads((tmp_path / "twin/state.json").read_text())["cards"]
    assert sorted(card["module_id"] for card in cards) == [0, 1]


def test_a_fleet_names_hosts_without_a_report_and_reports_without_a_host(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    inventory, place, into = tmp_path / "hosts.ini", tmp_path / "reports", tmp_path / "twins"
    inventory.write_text("[gaudi]\nnode-1.example.org\nnode-2\nnode-3\ndoctor-4\n")
    place.mkdir()
    for name in ("node-1.example.org.json", "doctor-node-3.json", "doctor-4.json", "old.json"):
        (place / name).write_bytes(WHOLE)
    command = ["from-inventory", str(inventory), "--reports", str(place), "--into", str(into)]
    assert main(command) == 0
    out = capsys.readouterr().out
    assert "hosts without a report: node-2\n" in out
    assert "reports without a host: old.json\n" in out
    assert sorted(path.name for path in into.iterdir()) == ["doctor-4", "node-1", "node-3"]
    assert {name: len(state["cards"]) for name, state in commands.nodes_of(into).items()} == {
        "doctor-4": 2,
        "node-1": 2,
        "node-3": 2,
    }
    assert [*commands.nodes_of(into / "node-3")] == ["node-3"]
    (place / "node-2.json").write_bytes(WHOLE[:200])
    assert main([*command[:-1], str(tmp_path / "others")]) == 2
    assert "ends in the middle" in capsys.readouterr().err and not (tmp_path / "others").exists()


@pytest.mark.parametrize("kind", ["pipe", "nowhere", "folder", "device"])
def test_what_is_no_file_is_refused_and_not_waited_for(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As a report, as one of a fleet, in a twin's folder, and as an inventory."""
    inventory, place, twin = tmp_path / "hosts.ini", tmp_path / "reports", tmp_path / "twin"
    inventory.write_text("[gaudi]\nnode-1\nnode-2\n")
    place.mkdir()
    (place / "node-1.json").write_bytes(WHOLE)
    assert main(["from-report", str(place / "node-1.json"), "--into", str(twin)]) == 0

    def odd(path: Path) -> str:
        path.unlink(missing_ok=True)
        if kind == "pipe":
            os.mkfifo(path)
        elif kind == "folder":
            path.mkdir()
        else:
            path.symlink_to("/dev/full" if kind == "device" else "/nowhere")
        return str(path)

    new, missing = tmp_path / "new", {"nowhere": "cannot be read (No such"}
    fleet_of = ["from-inventory", str(inventory), "--reports", str(place), "--into", str(new)]
    inventories = {"folder": "has no host in group gaudi"}
    # What is odd, the command, and what it says.
    cases = [
        (
            tmp_path / "x.json",
            ["from-report", "ODD", "--into", str(new)],
            {**missing, "folder": "is a folder"},
            "is no file",
        ),
        (twin / "report.json", ["from-report", str(twin), "--replay"], missing, "is no file"),
        (twin / "twin.json", ["from-report", str(twin), "--replay"], {}, "is no twin"),
        (tmp_path / "odd.ini", [*fleet_of[:1], "ODD", *fleet_of[2:]], inventories, "There is no inventory"),
        (place / "node-2.json", fleet_of, {}, "node-2.json has a report's name and is no file"),
    ]
    for path, words, otherwise, said in cases:
        made = odd(path)
        capsys.readouterr()
        assert main([made if word == "ODD" else word for word in words]) == 2, words
        printed = capsys.readouterr()
        assert otherwise.get(kind, said) in printed.err and printed.err.count("\n") == 1 and printed.out == "", words
        assert not new.exists()


@pytest.mark.parametrize(("name", "text"), [("state.json", "[]"), ("state.json", "{}"), ("twin.json", '{"format": 1}')])
def test_a_twin_that_somebody_changed_is_none(
    name: str, text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report, twin = tmp_path / "report.json", tmp_path / "twin"
    report.write_bytes(WHOLE)
    assert main(["from-report", str(report), "--into", str(twin)]) == 0
    (twin / name).write_text(text)
    capsys.readouterr()
    assert main(["from-report", str(twin), "--replay"]) == 2
    assert capsys.readouterr().err == (
        f"gaudi3-simulator: {twin} is no twin: make one with 'gaudi3-simulator from-report'.\n"
    )


def test_an_inventory_that_does_not_answer_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def late(*_given: Any, **_options: Any) -> None:
        raise subprocess.TimeoutExpired("ansible-inventory", 120)

    monkeypatch.setattr(fleet.subprocess, "run", late)
    inventory = tmp_path / "hosts.ini"
    inventory.write_text("[gaudi]\nnode-1\n")
    assert main(["from-inventory", str(inventory), "--reports", str(tmp_path), "--into", str(tmp_path / "new")]) == 2
    assert capsys.readouterr().err == (
        f"gaudi3-simulator: ansible-inventory did not read {inventory} within 120 seconds: run "
        f"'ansible-inventory -i {inventory} --list' to see what it waits for.\n"
    )
