"""Files and answers of the upgrade, the certificate and the mirror with any value in any place: read, or one sentence.

Each place of a sound document gets each odd value once, and each is left out once.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from upgrade_fleet import NEW, node

from ansible_collections.gaudi3.scale.plugins.module_utils._certificate import (
    answers,
    compare,
    document,
    evidence,
    page,
)
from ansible_collections.gaudi3.scale.plugins.module_utils._health.readings import NodeReading
from ansible_collections.gaudi3.scale.plugins.module_utils._mirror import lock_of, refuse_unfit
from ansible_collections.gaudi3.scale.plugins.module_utils._module_bodies.certificate import Long, Progress, todo
from ansible_collections.gaudi3.scale.plugins.module_utils._refusal import Refusal
from ansible_collections.gaudi3.scale.plugins.module_utils._upgrade import planned, record, rehearsed, standing
from ansible_collections.gaudi3.scale.plugins.module_utils._upgrade.plan import Wish, make

FLEET: dict[str, Any] = {"gaudi-1": node(), "gaudi-2": node()}
PLAN = make(FLEET, Wish(NEW)).text()
DIGEST = planned.digest(PLAN)
LOOKS = {name: {**each.as_answer(), "held": []} for name, each in FLEET.items()}
WAY = json.loads(PLAN)["nodes"]["gaudi-1"]["up"]
RECORD = record.begin(record.new(DIGEST, "gaudi-1", WAY), {"held": ["habanalabs-dkms"]})[0].text()

DEEP: Any = "x"
for _level in range(30):
    DEEP = [DEEP]
ODD: tuple[Any, ...] = (
    None, True, 7, -1, 2.5, float("nan"), float("inf"), 10**400, "", "\x1b[2J\n", "\ud83d", [], [[]], [None], [7],
    ["a", 7], [{}], {}, {"a": None}, {"\x1b": [7]}, [["a", "b"], {"c": 1}], DEEP,
)  # fmt: skip


def places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place of a document; of a list the first and the last."""
    yield at
    inner = (
        list(value.items()) if isinstance(value, dict) else list(enumerate(value)) if isinstance(value, list) else []
    )
    for name, each in inner if isinstance(value, dict) else inner[:1] + inner[1:][-1:]:
        yield from places(each, (*at, name))


def changed(value: Any) -> Iterator[Any]:
    """The document with an odd value in a place, for each place and value, and without each entry."""
    for at in places(value):
        for odd in ODD:
            if not at:
                yield odd
                continue
            made = copy.deepcopy(value)
            inner = made
            for name in at[:-1]:
                inner = inner[name]
            inner[at[-1]] = odd
            yield made
        if at:
            made = copy.deepcopy(value)
            inner = made
            for name in at[:-1]:
                inner = inner[name]
            del inner[at[-1]]
            yield made


def plan(value: Any) -> None:
    """What the playbook does with a plan."""
    found = planned.read(json.dumps(value))
    standing.problems(found, {}, LOOKS)
    standing.flashes(found, False)
    rehearsed.refusals(found, False)
    for name in found["nodes"]:
        standing.next_of(found, DIGEST, {}, name, LOOKS[name], ("", "", []))


def the_record(value: Any) -> None:
    found = record.read(json.dumps(value), DIGEST, "gaudi-1", WAY)
    records = {"gaudi-1": found}
    standing.problems(json.loads(PLAN), records, LOOKS)
    for step in ("", found.begun):
        _after, answer = standing.next_of(
            json.loads(PLAN), DIGEST, records, "gaudi-1", LOOKS["gaudi-1"], (step, "", ["a"])
        )
        json.dumps(answer)
    found.text().encode()


def look(value: Any) -> None:
    standing.problems(json.loads(PLAN), {}, {**LOOKS, "gaudi-1": value})
    standing.next_of(json.loads(PLAN), DIGEST, {}, "gaudi-1", value, ("", "", []))


def evidence_of_a_node(value: Any) -> None:
    answers.answers({"gaudi-1": {"evidence": value}}, {})
    found = document.load(document.write(evidence.read(value)), "a")
    page.html(found, "")
    page.text(found, "")
    compare.compare(found, found)


def certificate(value: Any) -> None:
    found = document.load(json.dumps(value), "a")
    page.html(found, "").encode("utf-8", "surrogateescape")


def progress(value: Any, folder: Path) -> None:
    identity = {"driver": "1.23.0", "cards": ["U0"]}
    (folder / "progress.json").write_text(json.dumps(value))
    kept = Progress(str(folder), identity, 1_790_000_000.0, 7)
    todo(kept, NodeReading(0.0), Long("hl_qual", "python"))
    facts = {"format": 1, "taken_at": 1.0, "qual": kept.results("qual"), "steps": kept.results("steps")}
    document.write(evidence.read(facts))


def lock(value: Any) -> None:
    refuse_unfit(lock_of(json.dumps(value).encode(), "http://m"), "http://m", "1.23.0-695", {"a": "b"})


def sound_evidence() -> dict[str, Any]:
    """One card is enough to have every place."""
    return {
        "format": 1, "node": "gaudi-1", "taken_at": 1_790_000_000.0, "board": "HL-325L", "generation": "gaudi3",
        "machine_serial": "M1", "driver": "1.23.0-2eae87a", "uptime_s": 7200.0, "pci_cards": 1,
        "cards": [{
            "index": 0, "serial": "AM00", "uuid": "U0", "module_id": 0, "status": "Operational", "rows_pending": False,
            "counters": {"corrected": 0}, "rows": [{"address": "0x1", "cause": "double bit"}], "pcie": {"gen": 5},
            "firmware": {"spi": "one"}, "ports": [{"port": 7, "type": "internal", "link": "up", "symbol_rate": 0.5}],
            "controller": {"oam": 0, "keys": {"key1_revocation": 0}, "memory": {"a": 0}, "alerts": [{"name": "a"}]},
        }],
        "events": [{"component": "card", "severity": "warning", "text": "a"}], "disks": [{"name": "sda", "hours": 7}],
        "qual": [{"name": "power", "passed": True, "at": 1.0}], "steps": [{"name": "step", "passed": True, "card": 0}],
        "unanswered": {"kernel log": "it was not asked"},
    }  # fmt: skip


def sound_progress() -> dict[str, Any]:
    result = {"name": "power", "passed": True, "card": 0, "message": "", "at": 1_790_000_000.0}
    return {"identity": {"driver": "1.23.0", "cards": ["U0"]}, "qual": [result], "steps": [result]}


LOCK = {
    "schema": 1, "release": "1.23.0-695",
    "files": [{"path": "a/b", "sha256": "0" * 64}, {"path": "pypi/wheels/torch-2.0-x.whl", "sha256": "0" * 64}],
}  # fmt: skip


@pytest.mark.parametrize(
    ("read", "sound"),
    [
        (plan, json.loads(PLAN)),
        (the_record, json.loads(RECORD)),
        (look, LOOKS["gaudi-1"]),
        (evidence_of_a_node, sound_evidence()),
        (certificate, json.loads(document.write(evidence.read(sound_evidence())))),
        (lock, LOCK),
    ],
    ids=["plan", "record", "look", "evidence", "certificate", "lock"],
)
def test_a_document_with_an_odd_value_is_read_or_refused_in_a_line(read: Callable[[Any], None], sound: Any) -> None:
    for document_with in changed(sound):
        try:
            read(document_with)
        except Refusal as refusal:
            assert str(refusal).isprintable(), document_with


def test_an_odd_progress_file_is_as_none(tmp_path: Path) -> None:
    for each in changed(sound_progress()):
        progress(each, tmp_path)
