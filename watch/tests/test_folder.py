"""The page of a job's folder: what it shows, and what it says where there is nothing or something is wrong."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from conftest import BEGAN, account, metric, status, write_lines

from gaudi3_scale.cost import what_if, what_if_show
from gaudi3_watch import folder as folders
from gaudi3_watch.folder import FolderSource
from gaudi3_watch.view import Asked, View


def page(folder: Path, asked: Asked | None = None, now: float = BEGAN + 1010, health: Path | None = None) -> View:
    found = FolderSource(folder, health, lambda: now).page(asked or Asked())
    json.dumps(found, allow_nan=False)
    return found


def part(found: View, name: str) -> View:
    return next(each for each in found["sections"] if each["id"] == name)


def tiles(found: View, name: str) -> dict[str, str]:
    return {each["label"]: each["value"] for each in part(found, name)["tiles"]}


def chart(found: View, section: str, name: str) -> View:
    return next(each for each in part(found, section)["charts"] if each["id"] == name)


def test_a_job_fills_its_sections(job: Path) -> None:
    found = page(job)
    assert (found["title"], found["state"]["name"], found["state"]["ended"], found["problems"]) == (
        "job",
        "running",
        False,
        [],
    )
    assert tiles(found, "training") == {
        "Step": "100",
        "Loss": "3.5",
        "Held-out loss": "2.6",
        "Tokens per second": "1,234",
        "Time of a step": "10 s",
        "Left at this pace": "50 min",
    }
    loss = chart(found, "training", "loss")
    assert [each["name"] for each in loss["series"]] == ["training loss", "held-out loss", "baseline"]
    assert loss["series"][0]["last"][0] == 5.3 and "between 3.5 and 5.3" in loss["summary"]
    assert tiles(found, "goodput")["Restarts"] == "1"
    assert [each["kind"] for each in found["marks"]] == ["checkpoint", "restart", "checkpoint"]
    assert found["span"] == {"begin": BEGAN + 5, "end": BEGAN + 1000, "first": BEGAN + 5, "newest": BEGAN + 1000}


@pytest.mark.parametrize("name", ["cards", "nodes", "cost"])
def test_a_section_without_data_says_why_and_what_to_do(job: Path, name: str) -> None:
    said = part(page(job), name)["empty"]
    assert len(said["why"].split()) > 4 and len(said["remedy"].split()) > 4


def test_a_folder_without_a_job_says_so(tmp_path: Path) -> None:
    found = page(tmp_path)
    assert found["state"]["name"] == "unknown"
    assert all(each.get("empty") for each in found["sections"])


def test_a_span_is_cut_out(job: Path) -> None:
    found = page(job, Asked(BEGAN + 300, BEGAN + 500, None, 100))
    assert [each - BEGAN for each in chart(found, "training", "loss")["series"][0]["x"]] == [200, 300, 400, 500, 600]
    assert [each["time"] - BEGAN for each in found["marks"]] == [305]
    assert page(job, Asked(last=100))["span"]["begin"] == BEGAN + 900


@pytest.mark.parametrize(
    ("changes", "level", "ended", "said"),
    [
        ({"state": "finished"}, "good", True, "has ended"),
        ({"state": "failed", "error": "out of memory"}, "bad", True, "out of memory"),
        ({"state": "failed"}, "bad", True, "no reason"),
        ({"state": "interrupted", "interruption": "SIGTERM"}, "warn", True, "SIGTERM"),
        ({"state": "spare"}, "good", False, "spare"),
        ({"updated_at": BEGAN}, "warn", False, "No word for 16 min 50 s"),
        ({"state": "starting"}, "good", False, "starts"),
        ({"updated_at": BEGAN + 1070}, "good", False, "The job runs."),
        ({"updated_at": BEGAN + 1010 + 7200}, "warn", False, "clock is 2 h ahead of this machine's"),
    ],
)
def test_a_state_is_said_in_words(job: Path, changes: dict[str, Any], level: str, ended: bool, said: str) -> None:
    (job / "status.json").write_text(json.dumps(status(**changes)))
    found = page(job)["state"]
    assert (found["level"], found["ended"]) == (level, ended) and said in found["text"]


def test_the_sentence_of_a_hang_is_shown_whole(job: Path) -> None:
    sentence = "Rank 37 on gaudi-5 did not enter all_reduce 4711 of shape [4096, 4096] bfloat16; " + 40 * "it waits, "
    (job / "status.json").write_text(json.dumps(status(state="running", hang={"sentence": sentence})))
    assert ["last hang", sentence] in part(page(job), "training")["tables"][0]["rows"]
    (job / "status.json").write_text(json.dumps(status(state="failed", error=sentence)))
    assert sentence in page(job)["state"]["text"]
    for odd in ("x", {"sentence": 4}, [], None):
        (job / "status.json").write_text(json.dumps(status(hang=odd)))
        assert not [row for row in part(page(job), "training")["tables"][0]["rows"] if row[0] == "last hang"]


def test_what_a_simulator_measured_is_said_to_be_its_own(job: Path) -> None:
    (job / "status.json").write_text(
        json.dumps(status(device="hpu", simulated=True, mfu=0.5, cost={"spent": 5.0, "currency": "EUR"}))
    )
    found = page(job)
    assert "nothing about a Gaudi" in found["simulated"]
    assert "MFU" not in tiles(found, "training")
    for name in ("speed", "step"):
        assert chart(found, "training", name)["title"].endswith("on the simulator")
    details = [
        each["detail"]
        for each in part(found, "training")["tiles"]
        if each["label"] in ("Tokens per second", "Time of a step")
    ]
    assert details == ["on the simulator"] * 2
    assert "no cost of a Gaudi" in part(found, "cost")["tiles"][0]["detail"]
    (job / "status.json").write_text(json.dumps(status(device="hpu", hardware_name="GAUDI3", mfu=0.5)))
    found = page(job)
    assert not found["simulated"] and tiles(found, "training")["MFU"] == "50 %"


def test_a_cost_stands_against_its_budget(job: Path) -> None:
    cost = {
        "spent": 90.0,
        "currency": "EUR",
        "budget": 100.0,
        "budget_left": 10.0,
        "price_per_hour": 36.0,
        "price_source": "a contract",
        "per_million_tokens": 4.0,
        "parts": {"compute": 80.0, "startup": 10.0},
    }
    (job / "status.json").write_text(json.dumps(status(cost=cost)))
    found = part(page(job), "cost")
    assert [(each["label"], each["value"], each["level"]) for each in found["tiles"]] == [
        ("Spent", "90 EUR", ""),
        ("Budget", "100 EUR", "warn"),
        ("At this pace", "360 EUR", "warn"),
        ("Per million tokens", "4 EUR", ""),
    ]
    assert ["kept steps", "80 EUR"] in found["tables"][0]["rows"]


def test_wrong_values_inside_a_status_are_left_out(job: Path) -> None:
    odd = {
        "goodput": {"seconds": {"compute": "x"}, "ratio": "y"},
        "cost": {"spent": "much", "parts": [1]},
        "anomaly": {"kind": [1]},
        "software": {"a": {}},
    }
    (job / "status.json").write_text(json.dumps(status(**odd)))
    found = page(job)
    assert part(found, "cost")["empty"] and tiles(found, "goodput")["Restarts"] == "1"


@pytest.mark.parametrize("content", ["{", "[]", '{"state": "dancing"}', '{"step": "ten"}', "x" * 2**21])
def test_a_status_that_is_none_is_a_problem_and_the_rest_is_shown(job: Path, content: str) -> None:
    (job / "status.json").write_text(content)
    found = page(job)
    assert "status.json" in found["problems"][0]["text"]
    assert tiles(found, "training")["Loss"] == "3.5"


def test_a_number_beyond_all_measure_spares_the_other_jobs(several: Path) -> None:
    written = json.dumps(status(loss=1)).replace('"loss": 1,', f'"loss": 1{"0" * 400},')
    (several / "b/node-9/status.json").write_text(written)
    found = page(several, Asked(job="b/node-9"))
    assert found["state"]["text"] == "What the job does is not known: its status.json cannot be read."
    assert "has the number 1000000000" in found["problems"][0]["text"]
    rows = part(found, "fleet")["tables"][0]["rows"]
    assert len(rows) == len(found["jobs"]) > 1
    assert [row[0] for row in rows if row[1]["text"] == "its status.json cannot be read"] == ["b/node-9"]


def test_a_price_that_is_none_is_left_out(job: Path) -> None:
    for odd in ({"price_per_hour": 10**400}, {"price_per_hour": float("nan")}, {"price_per_hour": 1, "carried": [1]}):
        line = account(120, 1100, "b", startup=10, compute=490, checkpoint_stall=10)
        write_lines(job / "goodput.jsonl", [line | {"cost": {"currency": "EUR", **odd}}])
        assert part(page(job), "cost")["empty"]["why"] == "No price is set for this job."


def test_a_span_begins_with_the_first_point(job: Path) -> None:
    for name in ("metrics.jsonl", "goodput.jsonl", "evaluation.jsonl"):
        (job / name).unlink(missing_ok=True)
    write_lines(job / "metrics.jsonl", [metric(1, time=BEGAN + 0.0004), metric(2, time=BEGAN + 10.00049)])
    found = page(job)
    x = chart(found, "training", "loss")["series"][0]["x"]
    assert x == [found["span"]["begin"], found["span"]["end"]] == [BEGAN, BEGAN + 10]


def test_a_name_that_is_no_text_can_be_chosen(tmp_path: Path) -> None:
    for name in (b"b\xff\xfe", b"new\nline"):
        folder = tmp_path / os.fsdecode(name)
        folder.mkdir()
        (folder / "status.json").write_text(json.dumps(status()))
    names = ["b\ufffd\ufffd", "new\ufffdline"]
    assert page(tmp_path)["jobs"] == names
    assert [page(tmp_path, Asked(job=name))["job"] for name in names] == names
    assert page(tmp_path, Asked(job=names[0]))["problems"] == []


def test_more_jobs_than_are_listed_are_a_problem(several: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert page(several)["problems"] == []
    monkeypatch.setattr(folders, "MOST_JOBS", 2)
    assert [each["text"] for each in page(several)["problems"]] == [
        "There are more than 2 jobs or folders here: not all are listed."
    ]


def test_a_file_that_cannot_be_read_any_more_is_not_waited_for(job: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folders, "SECONDS_TO_READ", 0.0)
    monkeypatch.setattr(folders, "PIECE", 100)
    source = FolderSource(job, None, lambda: BEGAN + 1010)
    assert source.page(Asked())["poll"] == 0.1
    for path in job.glob("*.jsonl"):
        path.rename(job / "away")
        path.symlink_to(job / "away")
    assert source.page(Asked())["poll"] == 2


def test_what_if_is_in_the_words_of_the_command(job: Path) -> None:
    table = next(each for each in part(page(job), "goodput")["tables"] if each["id"] == "what-if")
    assert table["columns"] == ["cause", "time", "share", "without it", "what it is"]
    assert [row[0] for row in table["rows"]] == [
        "compute",
        "checkpoint stall",
        "startup",
        "restart after step 50, from step 30",
    ]
    assert table["rows"][0][3] == ""
    assert table["note"].startswith("The ranks' own times are not in this ledger")
    found = what_if.of_directory(job)
    assert [row[3] for row in table["rows"]] == [what_if_show.without(cause, found) for cause in found.causes]
    priced = account(120, 1100, "b", startup=10, compute=490, checkpoint_stall=10)
    write_lines(job / "goodput.jsonl", [priced | {"cost": {"price_per_hour": 36.0, "currency": "<b>"}}])
    tables = part(page(job), "goodput")["tables"]
    assert next(each for each in tables if each["id"] == "what-if")["columns"][3] == "<b>"


def test_lines_that_cannot_be_read_are_counted_and_shown_as_text(job: Path) -> None:
    with (job / "metrics.jsonl").open("a") as file:
        file.write("<script>alert(1)</script>\x1b[31m\nmore\n")
    said = page(job)["problems"][0]
    assert "metrics.jsonl has 2 of 12 lines" in said["text"] and "line 11 " in said["text"]
    assert said["sample"] == "<script>alert(1)</script>\N{REPLACEMENT CHARACTER}[31m"


def test_a_clock_that_was_set_back_is_a_problem(job: Path) -> None:
    write_lines(job / "metrics.jsonl", [metric(10), metric(20, time=BEGAN), metric(30)])
    assert "set back once:" in page(job)["problems"][0]["text"]


@pytest.fixture
def several(tmp_path: Path, job: Path) -> Path:
    """A folder of jobs, one of them with two nodes' folders."""
    for name, step in (("b/node-10", 7), ("b/node-9", 7), ("<img src=x>", 3)):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "status.json").write_text(json.dumps(status(step=step, state="finished")))
        os.utime(tmp_path / name / "status.json", (1, 1))
    (tmp_path / "empty").mkdir()
    (tmp_path / "link").symlink_to(job)
    return tmp_path


def test_a_folder_of_jobs_has_them_all(several: Path) -> None:
    found = page(several)
    assert found["jobs"] == ["<img src=x>", "b/node-9", "b/node-10", "job"] and found["job"] == "job"
    assert [row[0] for row in part(found, "fleet")["tables"][0]["rows"]] == found["jobs"]
    chosen = page(several, Asked(job="b/node-9"))
    assert chosen["title"] == "b/node-9" and tiles(chosen, "training")["Step"] == "7"
    assert "no job other" in page(several, Asked(job="other"))["problems"][0]["text"]
    assert page(several, Asked(job="../x"))["job"] == "job"


def test_only_some_jobs_stay_in_memory(several: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folders, "MOST_OPEN", 2)
    source = FolderSource(several)
    for name in ("b/node-9", "b/node-10", "job"):
        source.page(Asked(job=name))
    assert list(source._open) == ["b/node-10", "job"]


def test_a_long_file_is_shown_while_it_is_read(job: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folders, "PIECE", 300)
    monkeypatch.setattr(folders, "SECONDS_TO_READ", 0)
    source = FolderSource(job)
    found = source.page(Asked())
    assert "read so far" in found["problems"][-1]["text"] and found["poll"] < 1
    while found["poll"] < 1:
        found = source.page(Asked())
    assert not [each for each in found["problems"] if "so far" in each["text"]]


def test_an_hpu_that_is_not_known_yet_is_no_gaudi(job: Path) -> None:
    (job / "status.json").write_text(json.dumps(status(device="hpu", simulated=None, mfu=0.4)))
    found = page(job)
    assert chart(found, "training", "speed")["title"] == "Tokens per second, on an hpu that is not known yet"
    assert "MFU" not in tiles(found, "training")


def test_nodes_of_the_reports_can_be_chosen(job: Path, tmp_path: Path) -> None:
    (tmp_path / "health").mkdir()
    for name in ("gaudi-10", "gaudi-9"):
        (tmp_path / "health" / f"{name}.report.json").write_text('{"healthy": true}')
    found = page(job, Asked(node="gaudi-10"), health=tmp_path / "health")
    assert found["nodes"] == ["gaudi-9", "gaudi-10"]
    assert len(part(found, "nodes")["tables"][0]["rows"]) == 1
