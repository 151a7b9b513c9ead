"""Thousands of changed answers through what reads answers on the controller: one odd node, and a good one beside it."""

from __future__ import annotations

import copy
import json
import random
import re
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import pytest

from ansible_collections.gaudi3.scale.plugins.action.gaudi_doctor_info import read as doctor_answer
from ansible_collections.gaudi3.scale.plugins.filter.call_answer import call_answer
from ansible_collections.gaudi3.scale.plugins.filter.ended_jobs import ended_jobs
from ansible_collections.gaudi3.scale.plugins.filter.exact_texts import exact_texts
from ansible_collections.gaudi3.scale.plugins.filter.health_report import health_report
from ansible_collections.gaudi3.scale.plugins.filter.job_answers import job_answers
from ansible_collections.gaudi3.scale.plugins.filter.site_summary import site_summary
from ansible_collections.gaudi3.scale.plugins.module_utils._cards.answer import bus_answers
from ansible_collections.gaudi3.scale.plugins.module_utils._host.answers import loopbacks
from ansible_collections.gaudi3.scale.plugins.module_utils._host.facts import Gathered
from ansible_collections.gaudi3.scale.plugins.module_utils._host.service_state import is_unchanged
from ansible_collections.gaudi3.scale.plugins.module_utils._jobs import problems
from ansible_collections.gaudi3.scale.plugins.module_utils._jobs.card_choice import job_modules
from ansible_collections.gaudi3.scale.plugins.module_utils._plan import job_progress, tuning
from ansible_collections.gaudi3.scale.plugins.module_utils._refusal import Refusal
from tests.plays.answers import CHANGES, values, written

GOOD, ODD = "good-1", "odd-1"
NUMBER = 400
RAW = re.compile(r"[\x00-\x1f\x7f-\x9f\u202e\u2028\ud800-\udfff]")

GATHERED: dict[str, Any] = {
    "ansible_facts": {
        "ansible_distribution": "Ubuntu", "ansible_distribution_version": "24.04",
        "ansible_distribution_major_version": "24", "ansible_os_family": "Debian", "ansible_kernel": "6.8.0-71-generic",
        "ansible_effective_user_id": 0, "ansible_user_id": "root",
    },
    "changed": False,
}  # fmt: skip
CARD = {"bus_id": "0000:19:00.0", "iommu": "identity", "generation": "gaudi3", "numa_node": 0}
BUS = {"card_count": 1, "generation": "gaudi3", "iommu_problem": None, "cards": [CARD], "holders": []}
CARDS = {"card_count": 8, "driver_version": "1.23.0", "firmware": {"spi": "1.23.0"}, "hl_smi_version": "1.23"}
JOB = {
    "name": "demo", "state": "finished", "unit": "gaudi-train-demo.service", "log": ["the end"],
    "status": {
        "state": "finished", "step": 20, "max_steps": 20, "loss": 2.5, "first_loss": 5.5, "tokens_per_second": 5120.0,
        "device": "hpu", "hardware_name": "GAUDI3", "world_size": 8, "software": {"torch": "2.9.0"},
        "batch": {"micro_batch_size": 12, "samples_per_step": 192, "how": "given"},
        "cost": {"spent": 1.0, "currency": "EUR", "price_per_hour": 20.0, "price_source": "ours",
                 "price_date": "2026-11-01"},
    },
}  # fmt: skip
OFFER = {"processes": 2, "cards": 8, "modules": [0, 1, 2, 3, 4, 5, 6, 7], "held": [], "uid": 990, "shares": ""}
NODE = {"interface": "eth0", "groups": [], "unknown_groups": [], "closed": [], "missing": [], "script": None,
        "modules": [0, 1], "offer": OFFER}  # fmt: skip
VERDICT = {"component": "accel0", "kind": "hardware", "severity": "warning", "action": "none", "message": "it is warm",
           "check": "temperature", "evidence": "90"}  # fmt: skip
UNCHANGED = {"changed": False, "done": [], "diff": [{"before": "", "after": ""}]}
HEALTH = {"verdicts": [VERDICT], "suspects": [], "errors": [], "versions": {"board": "HL-325L"}, "cards": 8,
          "figures": {"bandwidth": 1.5}, "idle": True, "fence": None}  # fmt: skip


def gathered_facts(answers: dict[str, Any]) -> dict[str, Any]:
    return asdict(Gathered.of(answers))


def node_remarks(answers: dict[str, Any]) -> list[str]:
    """What role tuning tells of all hosts, by what each registered."""
    hosts = {name: {"_tuning_settings": {"remarks": said}} for name, said in answers.items()}
    return tuning.remarks_of_all({"ansible_play_hosts": list(answers), "hostvars": hosts}.get)


def waiting(answer: Any) -> Any:
    given = {"tuning_kernel_command_line": ["iommu=pt"], "tuning_cstates": "unmanaged", "_tuning_settings": answer}
    try:
        return tuning.waiting({**given, "inventory_hostname": ODD, "ansible_facts": {"kernel": "6.8.0"}}.get)
    except Refusal as error:
        return str(error)


def job_node_problems(answer: Any) -> list[str]:
    asked = problems.Asked.of({"nodes": [ODD, GOOD], "cards": 8, "asker": GOOD})
    return problems.node_problems(asked, ODD, answer, OFFER)


def driver(answer: Any) -> str:
    given = {"_trainer_node": answer, "trainer_cards": 8, "pytorch_release": "1.23.0-695", "inventory_hostname": ODD}
    return "".join(job_progress.driver_problems(given.get))


def both(odd: Any, good: Any) -> dict[str, Any]:
    return {GOOD: good, ODD: odd}


def lines_of(name: str, answer: dict[str, list[str]]) -> list[str]:
    """Without what is said of the other node alone; of a line that both share, the good node's part."""
    lines = [line for part in answer.values() for line in part if not line.startswith(f"{name}: ")]
    return [line.replace(f"{GOOD}, {name}: ", f"{GOOD}: ", 1) for line in lines]


#: By what is read: a true answer, and what the controller makes of one for the good node and for all.
READERS: dict[str, tuple[Any, Callable[[Any, Any], Any]]] = {
    "the facts": (GATHERED, lambda odd, true: {
        key: [host for host in hosts if host != ODD]
        for key, hosts in gathered_facts(both(odd, true)).items() if key not in ("why", "user")}),
    "the cards on the bus": (BUS, lambda odd, true: {
        key: [node for node in nodes if node != ODD]
        for key, nodes in bus_answers(both(odd, true)).items() if key != "why"}),
    "the cards": (CARDS, lambda odd, true: lines_of(ODD, site_summary(
        both(odd, true), both([], [JOB]), [], GOOD, True))),
    "the jobs": ([JOB], lambda odd, true: lines_of(ODD, site_summary(
        both(CARDS, CARDS), both(odd, true), [{"name": "demo", "nodes": [GOOD], "head": GOOD}], GOOD, True))),
    "the jobs that ended": (["demo"], lambda odd, true: {
        name: GOOD in nodes for name, nodes in ended_jobs(both(odd, true)).items() if nodes != [ODD]}),
    "the images": ({"id": "sha256:1"}, lambda odd, true: exact_texts([true, odd], "id")[0]),
    "the tarballs": ({"tarball": "a", "sha256": "b"},
                     lambda odd, true: exact_texts([true, odd], "tarball", "sha256")[0]),
    "the remarks": (["no governor"], lambda odd, true: node_remarks(both(odd, true))[0].split(", ")[0].split(": ")[0]),
    "the names": ("10.0.0.1 STREAM odd-1",
                  lambda odd, true: [host for host in loopbacks(both(odd, true)) if host != ODD]),
    "a report": (HEALTH, lambda _odd, true: health_report(true)["cards"]),
    "a job's nodes": (OFFER, lambda odd, true: type(job_modules(both(odd, true))["problem"])),
}  # fmt: skip
#: By what is read: a true answer, and what one node's own tasks make of it.
ALONE: dict[str, tuple[Any, Callable[[Any], Any]]] = {
    "the facts": (GATHERED, lambda odd: gathered_facts({ODD: odd})),
    "the cards on the bus": (BUS, lambda odd: bus_answers({ODD: odd})),
    "the cards": (CARDS, lambda odd: site_summary({ODD: odd}, {ODD: []}, [], "", False)),
    "the jobs": ([JOB], lambda odd: site_summary({ODD: CARDS}, {ODD: odd}, [], ODD, True)),
    "the jobs as such": ([JOB], job_answers),
    "the jobs that ended": (["demo"], lambda odd: ended_jobs({ODD: odd})),
    "the images": ({"id": "sha256:1"}, lambda odd: exact_texts([odd], "id")),
    "the remarks": (["no governor"], lambda odd: node_remarks({ODD: odd})),
    "a report": (HEALTH, health_report),
    "a call": ({"rc": 0, "stdout": "passed", "stderr": "", "finished": 1}, lambda odd: call_answer(odd)["rc"]),
    "a module's answer in a dry run": (UNCHANGED, is_unchanged),
    "a job's node": (NODE, job_node_problems),
    "a node's driver": ({**NODE, "driver": "1.23.0"}, driver),
    "what waits for a reboot": ({"command_line": [{"missing": ["iommu=pt"], "reboot_needed": True}]}, waiting),
    "a job's nodes": (OFFER, lambda odd: job_modules({ODD: odd, GOOD: OFFER})),
}  # fmt: skip


def changed(true: Any, seed: str) -> Any:
    """A true answer with one to four changes, as Ansible would read it from JSON."""
    rng = random.Random(seed)
    kept = {"answer": copy.deepcopy(true)}
    for _ in range(rng.choice([1, 1, 2, 4])):
        inside = kept["answer"] if isinstance(kept.get("answer"), dict) and rng.random() < 0.8 else kept
        rng.choice(CHANGES)(rng, inside, lambda: values(rng, "/nowhere", [GOOD]))
    return json.loads(written(kept.get("answer")))


@pytest.mark.parametrize("name", READERS)
def test_an_odd_answer_changes_nothing_for_a_good_node(name: str) -> None:
    true, read = READERS[name]
    expected = read(true, true)
    for number in range(NUMBER):
        odd = changed(true, f"{name}-{number}")
        assert read(odd, true) == expected, json.dumps(odd)[:2000]


@pytest.mark.parametrize("name", ALONE)
def test_what_is_made_of_an_odd_answer_can_be_shown_and_sent(name: str) -> None:
    """To a terminal, and to the next module, which takes neither NaN nor lone surrogates."""
    true, read = ALONE[name]
    for number in range(NUMBER):
        odd = changed(true, f"{name}-{number}")
        made = json.dumps(read(odd), allow_nan=False)
        texts = json.loads(made)
        json.dumps(texts, ensure_ascii=False).encode()
        assert not RAW.search("".join(_texts(texts))), json.dumps(odd)[:2000]


def _texts(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [text for key, each in value.items() for text in [str(key), *_texts(each)]]
    if isinstance(value, list):
        return [text for each in value for text in _texts(each)]
    return [value] if isinstance(value, str) else []


def test_an_examination_without_a_report_is_refused_in_a_sentence_with_the_nodes_name() -> None:
    true = {"changed": False, "report": {"format": 1}, "summary": "8 cards"}
    assert doctor_answer(true, ODD) is true
    for lacking in ("report", "summary"):
        refused = doctor_answer({**true, lacking: 5, "ansible_facts": {"x": 1}}, ODD)
        assert refused["failed"] is True and set(refused) == {"changed", "failed", "msg"}
        assert refused["msg"].startswith(f"odd-1 answers without a {lacking}, ")
    for number in range(NUMBER):
        odd = changed(true, f"doctor-{number}")
        if isinstance(odd, dict):
            found = doctor_answer(odd, ODD)
            assert found["failed"] if found is not odd else isinstance(found["report"], dict)


def test_odd_answers_are_named() -> None:
    told = gathered_facts({ODD: {"ansible_facts": {**GATHERED["ansible_facts"], "ansible_distribution": None}}})
    assert (told["mute"], told["why"]) == ((ODD,), "ansible_distribution is missing")
    told = gathered_facts(
        {ODD: {"failed": True, "failed_modules": {"x": {"msg": "no\nroom"}}}, GOOD: {"unreachable": True}}
    )
    assert (told["mute"], told["why"], told["silent"]) == ((ODD,), "no room", (GOOD,))
    told = gathered_facts(both({"ansible_facts": {**GATHERED["ansible_facts"], "ansible_effective_user_id": 1000,
                                                  "ansible_user_id": "me\x1b"}}, GATHERED))  # fmt: skip
    assert (told["powerless"], told["user"]) == ((ODD,), "me\\x1b")
    for odd, why in (
        (5, "gaudi_pci is 5"), ({}, "gaudi_pci is missing"),
        ({**BUS, "card_count": "x"}, "gaudi_pci.card_count is 'x'"),
        ({key: value for key, value in BUS.items() if key != "iommu_problem"}, "gaudi_pci.iommu_problem is missing"),
        ({**BUS, "cards": [5]}, "gaudi_pci.cards is [5]"),
    ):  # fmt: skip
        assert bus_answers(both(odd, BUS)) == {"bare": [], "odd": [ODD], "why": why}
    lines = site_summary(both({"card_count": "x"}, CARDS), both(5, []), [], GOOD, True)["lines"]
    assert lines[:3] == [
        "good-1: 8 cards, driver 1.23.0, firmware 1.23.0, hl-smi 1.23",
        "odd-1: its answer about its cards cannot be read (card_count = x)",
        "odd-1: its answer about its jobs cannot be read (jobs = 5)",
    ]
