"""In which order a host is asked, what of it fails the host, and what the run's tags leave out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._plan.host import Host
from ansible_collections.gaudi3.scale.plugins.module_utils._plan.model import Question
from ansible_collections.gaudi3.scale.plugins.module_utils._plan.phases import BY_NAME
from ansible_collections.gaudi3.scale.plugins.module_utils._plan.run import Run
from ansible_collections.gaudi3.scale.plugins.module_utils._refusal import Refusal

from .test_phases import CONVERGED, VALUES

FACTS = {
    "distribution": "Ubuntu",
    "distribution_version": "22.04",
    "distribution_major_version": "22",
    "os_family": "Debian",
    "kernel": "5.15.0",
}
CARDS = {"card_count": 8, "generation": "gaudi3", "iommu_problem": None, "cards": []}
JOB = {
    "trainer_job_name": "", "trainer_state": "finished", "_trainer_built": {"path": "w.whl"},
    "trainer_runtime": "venv", "trainer_tls": False, "trainer_gid": None, "trainer_dependencies": "preinstalled",
}  # fmt: skip
USUAL: dict[str, Any] = {
    **VALUES,
    **JOB,
    "ansible_host": "10.0.0.1",
    "synapseai_release": "1.23.0-695",
    "ansible_facts": FACTS,
    "node_exporter_service": "prometheus-node-exporter",
    "tuning_kernel_command_line": ["iommu=pt"],
    "tuning_kernel_command_line_state": "reported",
    "pytorch_root": "/opt/gaudi3-scale",
    "pytorch_release": "1.23.0-695",
}

HELD = {"holds": {"changed": False}}
DRIVERS = ["driver", "packages", "holds"]


class Node:
    """A host that answers what it is told to, and remembers what it was asked."""

    def __init__(self, values: Mapping[str, Any], answers: Mapping[str, Any], modules: Mapping[str, Any]) -> None:
        self.values = {**USUAL, **values}
        self.answers = {**CONVERGED, **answers}
        self.modules = modules
        self.known: dict[str, Any] = dict(FACTS)
        self.asked: list[list[str]] = []
        self.secrets: list[str] = []
        self.wrong: list[str] = []

    def value(self, name: str) -> Any:
        return self.values.get(name)

    def facts(self) -> Mapping[str, Any]:
        return self.known

    def learn(self, facts: Mapping[str, Any], found: Mapping[str, Any]) -> None:
        self.known.update(facts)

    def module(self, name: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        if name in self.modules:
            self.asked.append([name])
            return self.modules[name]
        if name == "gaudi_pci_facts":
            return {"ansible_facts": {"gaudi_pci": CARDS}}
        assert name == "gaudi_node_look"
        self.secrets += arguments["secrets"]
        names = [part["name"] for part in arguments["parts"]]
        self.asked.append(names)
        found = {each: self.answers.get(each, {"changed": False}) for each in names}
        failed = [part for part in arguments["parts"] if found[part["name"]].get("failed") and not part["tolerated"]]
        ended = {"failed": True, "msg": "\n".join(found[part["name"]]["msg"] for part in failed)} if failed else {}
        return {"found": found, **ended}

    def options(self, question: Question) -> tuple[str, Mapping[str, Any]]:
        return question.module or "a module", question.options(self.value) if question.options else {}

    def faults(self, roles: Sequence[str]) -> Sequence[str]:
        return self.wrong


def node(values: dict[str, Any] | None = None, answers: dict[str, Any] | None = None, **modules: Any) -> Node:
    return Node(values or {}, answers or {}, modules)


def plan(access: Node, tags: str = "all", skipped: str = "", trains: bool = True) -> dict[str, Any]:
    run = Run.of(tags.split(","), filter(None, skipped.split(",")))
    return Host(access, "gaudi-1", run, trains).plan()


FIRST = [
    "driver", "packages", "holds", "fabric", "tuning", "pytorch", "firewall", "node_exporter_claim",
    "node_exporter_listener", "hpu_exporter_files", "hpu_exporter_listener",
]  # fmt: skip
THEN = [
    "boot", "ports", "account", "trainer", "firewall_boot", "node_exporter", "node_exporter_port", "hpu_exporter",
    "hpu_exporter_page",
]  # fmt: skip


def test_a_host_that_is_as_wanted_is_asked_twice_and_left_out_of_all() -> None:
    access = node()
    found = plan(access)
    assert access.asked == [FIRST, THEN]
    assert found["problem"] == ""
    assert sorted(found["leave"]) == sorted(BY_NAME.keys() - {"train"})
    assert found["pytorch"] == {"root": "/opt/gaudi3-scale", "release": "1.23.0-695"}


@pytest.mark.parametrize("built", [None, {}, {"skipped": True, "changed": False}])
def test_no_node_is_asked_for_a_trainer_that_was_not_built(built: dict[str, Any] | None) -> None:
    access = node({"_trainer_built": built})
    assert plan(access)["problem"] == ""
    assert not {"account", "trainer"} & {name for asked in access.asked for name in asked}


def test_no_details_are_asked_where_the_driver_has_to_be_changed() -> None:
    access = node(answers={"driver": {"loaded": ["habanalabs"]}})
    assert plan(access)["leave"] == ["tuning", "pytorch"]
    assert access.asked == [FIRST]


@pytest.mark.parametrize(
    ("tags", "skipped", "asked"),
    [
        ("drivers", "", [["driver", "packages", "holds", "fabric"]]),
        ("tuning", "", [["driver", "packages", "holds", "fabric", "tuning"]]),
        ("firewall", "", [["firewall"]]),
        ("monitoring", "", []),
        (
            "all",
            "monitoring,pytorch,firewall,train",
            [["driver", "packages", "holds", "fabric", "tuning"], ["boot", "ports"]],
        ),
        ("preflight", "", [["driver", "packages", "holds", "fabric", "tuning", "pytorch", "firewall"]]),
    ],
)
def test_only_what_the_run_has_is_asked(tags: str, skipped: str, asked: list[list[str]]) -> None:
    access = node()
    assert plan(access, tags, skipped)["problem"] == ""
    assert access.asked == asked


TRAINING = {
    "trainer_job_name": "demo", "trainer_nodes": ["gaudi-1"], "trainer_head": "gaudi-1", "trainer_dataset": "/data",
    "trainer_cards": 8, "trainer_processes_per_node": 8, "trainer_config": {}, "trainer_user": "train",
    "trainer_jobs_dir": "/jobs",
}  # fmt: skip


@pytest.mark.parametrize(
    ("tags", "skipped", "trains"),
    [
        ("all", "", True),
        ("train", "", True),
        ("preflight", "", True),
        ("all", "train", False),
        ("all", "trainer_job", False),
        ("tuning,drivers,fabric,pytorch", "", False),
        ("preflight", "train", False),
    ],
)
def test_a_run_without_training_is_not_refused_for_its_job(tags: str, skipped: str, trains: bool) -> None:
    access = node(TRAINING, {"node": {"missing": ["/data"], "interface": "eth0"}})
    found = plan(access, tags, skipped)
    assert found["problem"].startswith("The dataset /data does not exist on gaudi-1: copy it") is trains
    assert any("node" in asked for asked in access.asked) is trains
    assert "job" not in found
    jobs = plan(node({"trainer_jobs": [{"name": "one"}], "trainer_nodes": ["gaudi-1"]}), tags, skipped)
    assert jobs["more"] == (["train"] if trains else [])


def test_a_host_without_cards_is_asked_for_what_every_host_has() -> None:
    access = node()
    assert plan(access, trains=False)["leave"] == ["firewall", "node_exporter"]
    assert access.asked == [
        ["firewall", "node_exporter_claim", "node_exporter_listener"],
        ["firewall_boot", "node_exporter", "node_exporter_port"],
    ]


def test_what_cannot_be_refuses_the_host() -> None:
    refusing = node(answers={"driver": {"failed": True, "msg": "Secure Boot is on."}})
    assert plan(refusing)["problem"] == "Secure Boot is on."
    access = node()
    access.wrong = ["value of fabric_mode must be one of: l2, l3"]
    assert plan(access)["problem"] == "These variables cannot be used:\nvalue of fabric_mode must be one of: l2, l3."
    assert access.asked == [], "nothing is asked behind it"
    old = plan(node(values={"synapseai_release": "1.12.0-480"}))
    assert "1.12.0-480" in old["problem"]
    assert plan(node(gaudi_pci_facts={"failed": True, "msg": "no sysfs"}))["problem"] == "no sysfs."


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"hpu_exporter_interval": 1}, "hpu_exporter_interval is 1 and hpu_exporter_details_interval is 30: give 5"),
        ({"hpu_exporter_key": "/key"}, "hpu_exporter_certificate, hpu_exporter_key and hpu_exporter_client_authority"),
        ({"node_exporter_extra_arguments": ["--a b"]}, "The argument '--a b' has white space, a quotation mark or a"),
    ],
)
def test_settings_of_the_exporters_are_judged_before_anything_is_asked(given: dict[str, Any], said: str) -> None:
    for tags in ("all", "monitoring", "preflight"):
        access = node(given)
        assert plan(access, tags)["problem"].startswith(said)
        assert access.asked == []
    for tags, skipped in (("all", "monitoring"), ("drivers", "")):
        assert plan(node(given), tags, skipped)["problem"] == ""
    assert bool(plan(node(given), trains=False)["problem"]) is ("node_exporter_extra_arguments" in given)
    missing = node({"_hpu_exporter_devices": {"files": []}})
    assert plan(missing)["problem"] == "", "the program may come with the driver"


def test_a_host_whose_node_exporter_is_too_old_for_a_filter_is_refused_before_it_comes() -> None:
    given = {
        "ansible_facts": {"distribution": "Debian", "distribution_version": "11.11"},
        "node_exporter_package": "prometheus-node-exporter",
        "node_exporter_ethtool_interfaces": "^ens",
    }
    for tags in ("all", "monitoring", "preflight"):
        access = node(given, {"node_exporter_version": {"candidate": "1.1.2-1"}})
        said = plan(access, tags, trains=False)["problem"]
        assert said.startswith('node_exporter_ethtool_interfaces is "^ens", and node_exporter 1.1.2 has no such filter')
        assert access.asked == [["node_exporter_version"]]
    assert plan(node(given, {"node_exporter_version": {"version": "1.5.0"}}), trains=False)["problem"] == ""
    assert plan(node(given), "all", "monitoring", trains=False)["problem"] == ""


def test_what_is_tolerated_refuses_nobody_and_is_not_left_out() -> None:
    found = plan(node(answers={"node_exporter": {"failed": True, "msg": "no systemctl"}}))
    assert found["problem"] == "" and "node_exporter" not in found["leave"]


def test_translated_cards_are_refused_before_anything_else_is_asked() -> None:
    cards = {"ansible_facts": {"gaudi_pci": {**CARDS, "iommu_problem": "The IOMMU translates"}}}
    access = node(gaudi_pci_facts=cards, kernel_command_line={"missing": ["iommu=pt"]})
    assert plan(access)["problem"].startswith("gaudi-1: The IOMMU translates: start the kernel with iommu=pt")
    assert access.asked == [["gaudi_pci_facts"], ["kernel_command_line"]]
    accepted = node({"tuning_accept_translated_iommu": "true"}, gaudi_pci_facts=cards)
    assert plan(accepted)["problem"] == ""
    assert plan(node(gaudi_pci_facts=cards), "monitoring")["problem"] == "", "it is monitored"


@pytest.mark.parametrize("cards", [{}, None, {**CARDS, "card_count": 0}, {**CARDS, "cards": "many"}])
def test_cards_that_cannot_be_read_are_left_to_the_plan_of_the_site(cards: Any) -> None:
    access = node(gaudi_pci_facts={"ansible_facts": {"gaudi_pci": cards}})
    found = plan(access)
    assert (found["problem"], found["cards"]) == ("", cards)
    assert access.asked == [["gaudi_pci_facts"], ["firewall", "node_exporter_claim", "node_exporter_listener"]]


def test_odd_facts_are_left_to_the_plan_of_the_site() -> None:
    access = node()
    access.known = {**FACTS, "kernel": ["5.15"]}
    assert plan(access)["leave"] == [] and access.asked == []


def test_a_name_is_asked_for_where_there_is_no_address() -> None:
    printed = {"name": {"printed": "127.0.1.1 STREAM gaudi-1"}}
    access = node({"ansible_host": "gaudi-1.example"}, printed)
    assert plan(access)["name"] == "127.0.1.1 STREAM gaudi-1"
    assert access.asked[0] == ["name"]
    for values in ({"ansible_host": "fd00::1"}, {"ansible_host": "x", "gaudi_cluster_address": "10.1.0.1"}):
        assert plan(node(values))["name"] is None
    assert plan(node({"ansible_host": "gaudi-1.example"}), "drivers")["name"] is None


def test_the_address_of_an_index_is_a_secret() -> None:
    access = node({"pytorch_pip_index_url": "https://me:pass@index.example"})
    plan(access)
    assert set(access.secrets) == {"https://me:pass@index.example"}


def test_a_role_alone_asks_its_own_phase_and_fails_itself() -> None:
    access = node()
    Host(access, "gaudi-1", Run.of(["all"], []), True).require([BY_NAME["drivers"]], {})
    assert access.asked == [DRIVERS]
    refusing = node(answers={"driver": {"failed": True, "msg": "Secure Boot is on."}})
    with pytest.raises(Refusal, match="Secure Boot"):
        Host(refusing, "gaudi-1", Run.of(["all"], []), True).require([BY_NAME["drivers"]], {})


@pytest.mark.parametrize(
    ("known", "asked"),
    [
        ({"driver": {"changed": True, "loaded": ["habanalabs"]}, "packages": {"changed": True}, **HELD}, []),
        ({"driver": {"changed": True}, "packages": {"changed": False}, **HELD}, []),
        # Nothing was to be done then: what is so now is asked.
        ({"driver": {"changed": False}, "packages": {"changed": False}, **HELD}, [DRIVERS]),
        ({"driver": {"changed": True}, **HELD}, [DRIVERS]),
        ({"driver": {"changed": True, "failed": True}, "packages": {"changed": True}, **HELD}, [DRIVERS]),
        ({"driver": "odd", "packages": {"changed": True}, **HELD}, [DRIVERS]),
        ({"driver": {"changed": False}, "packages": {"changed": False}, "holds": {"changed": True}}, []),
    ],
)
def test_a_role_takes_what_the_preflight_found_to_be_done(known: dict[str, Any], asked: list[list[str]]) -> None:
    access = node()
    host = Host(access, "gaudi-1", Run.of(["all"], []), True)
    host.require([BY_NAME["drivers"]], known)
    assert access.asked == asked
    assert host.found.keys() >= {"driver", "packages"}
