"""What is decided for all hosts at once: the first of what is wrong, and who is left out of which phase."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._plan.site import Site, decide

FACTS = {
    "ansible_distribution": "Ubuntu",
    "ansible_distribution_version": "22.04",
    "ansible_distribution_major_version": "22",
    "ansible_os_family": "Debian",
    "ansible_kernel": "5.15.0",
    "ansible_effective_user_id": 0,
}
CARDS = {"card_count": 8, "generation": "gaudi3", "iommu_problem": None, "cards": []}
OFFER = {"processes": 8, "cards": 8, "modules": list(range(8)), "held": [], "uid": 900, "shares": None}
NODES = frozenset({"gaudi-1", "gaudi-2"})


def plan(**changes: Any) -> dict[str, Any]:
    return {
        "ansible_facts": FACTS, "cards": CARDS, "found": {}, "leave": [], "problem": "", "name": None,
        **changes,
    }  # fmt: skip


def site(first: Any = None, second: Any = None, needs_cards: bool = True) -> Site:
    return decide({"gaudi-1": first or plan(), "gaudi-2": second or plan()}, NODES, needs_cards)


def job(**changes: Any) -> dict[str, Any]:
    asked = {"nodes": ["gaudi-1", "gaudi-2"], "head": "gaudi-1", "user": "train", "jobs_dir": "/jobs", "partial": False}
    return {"job": {**asked, **changes.pop("job", {})}, "found": {"node": {"offer": {**OFFER, **changes}}}}


def test_nothing_is_wrong() -> None:
    found = site(plan(leave=["drivers"]), plan(leave=["drivers", "fabric"]))
    assert (found.problem, found.refusals) == ("", {})
    assert found.leave["drivers"] == ["gaudi-1", "gaudi-2"] and found.leave["fabric"] == ["gaudi-2"]
    assert found.leave["tuning"] == []


@pytest.mark.parametrize(
    ("first", "second", "said"),
    [
        (
            {"unreachable": True},
            {"failed": True, "msg": "no Python"},
            "1 of 2 hosts do not answer over ssh (gaudi-1): repair them, or leave them out with --limit '!gaudi-1'.",
        ),
        (
            {"unreachable": True},
            {"unreachable": True},
            "2 of 2 hosts do not answer over ssh (gaudi-1, gaudi-2): repair the way to them.",
        ),
        (
            {"failed": True, "msg": "no Python"},
            plan(ansible_facts={**FACTS, "ansible_effective_user_id": 1000}),
            "The facts of gaudi-1 cannot be read (no Python): repair that, or leave them out with --limit '!gaudi-1'.",
        ),
        (
            plan(ansible_facts={**FACTS, "ansible_effective_user_id": 1000, "ansible_user_id": "me"}),
            plan(name="127.0.1.1 STREAM gaudi-2"),
            "On gaudi-1 tasks run as me, who may change neither packages nor services: set ansible_become=true for the "
            "groups gaudi and monitoring (or run with --become), or log in as root.",
        ),
        (
            plan(cards={}),
            plan(name="127.0.1.1 STREAM gaudi-2"),
            "The inventory knows gaudi-2 by name alone, which on the host itself is a loopback address, where no other "
            "host reaches it: set ansible_host or gaudi_cluster_address to the address on the cluster network.",
        ),
        (
            plan(cards={**CARDS, "card_count": 0}),
            plan(cards={**CARDS, "card_count": "many"}),
            "What gaudi-2 answers about the cards on the PCI bus cannot be read (gaudi_pci.card_count is 'many'): "
            "repair what answers there (Python, the collection's modules), or take it out with --limit '!gaudi-2'.",
        ),
        (
            plan(cards={**CARDS, "card_count": 0}),
            plan(problem="gaudi-2: something else"),
            "gaudi-1 has no Gaudi card on its PCI bus: take it out of group gaudi, or look at its hardware with "
            "'lspci -d 1da3:'.",
        ),
    ],
)
def test_the_first_of_what_is_wrong_for_the_whole_run_is_said(first: Any, second: Any, said: str) -> None:
    assert site(first, second).problem == said


@pytest.mark.parametrize("odd", [None, [], "yes", 7])
def test_a_host_that_registered_something_else_is_named(odd: Any) -> None:
    found = decide({"gaudi-1": odd, "gaudi-2": plan()}, NODES, True)
    assert found.problem.startswith("The facts of gaudi-1 cannot be read")


def test_hosts_without_cards_are_monitored() -> None:
    bare = plan(cards={**CARDS, "card_count": 0})
    assert site(bare, needs_cards=False).problem == ""
    assert decide({"mon": plan(cards=None), "gaudi-1": plan()}, NODES, True).problem == ""


def test_what_is_wrong_with_a_host_is_its_own() -> None:
    found = site(plan(**job()), plan(problem="gaudi-2: the kernel"))
    assert (found.problem, found.refusals) == ("", {"gaudi-2": "gaudi-2: the kernel"})


def test_the_cards_of_a_job_are_chosen_for_all_of_its_nodes() -> None:
    found = site(plan(**job()), plan(**job()))
    nodes = ["gaudi-1", "gaudi-2"]
    assert found.refusals == {} and found.choices == [{"nodes": nodes, "modules": list(range(8)), "problem": ""}]
    assert found.asked == []
    settled = {"job": {"settled": True}}
    assert site(plan(**job(**settled)), plan(**job(**settled))).asked == ["gaudi-1", "gaudi-2"]


def test_nodes_that_cannot_train_together_are_all_refused() -> None:
    found = site(plan(**job()), plan(**job(cards=7)))
    assert found.refusals.keys() == {"gaudi-1", "gaudi-2"}
    assert found.refusals["gaudi-1"].startswith("The nodes of the job have different numbers of cards")


def test_each_list_of_nodes_has_its_own_cards() -> None:
    """Each cluster of an inventory has its own job: what one uses or lacks is nothing to the other."""
    few, all_cards = {"processes": 2}, {"processes": 8}
    first, second = ({"job": {"nodes": [name], "head": name}} for name in ("gaudi-1", "gaudi-2"))
    others = {"gaudi-3": plan(**job(**few, job={"nodes": ["gaudi-3", "gaudi-4"], "head": "gaudi-3"}))}
    others["gaudi-4"] = others["gaudi-3"]
    alone = {"gaudi-1": plan(**job(**first, **all_cards)), "gaudi-2": plan(**job(**second, **all_cards, cards=7))}
    names = frozenset({*others, *alone})
    found = decide({**others, **alone}, names, True)
    assert found.refusals == {}
    chosen = {tuple(each["nodes"]): each["modules"] for each in found.choices}
    assert len(chosen[("gaudi-3", "gaudi-4")]) == 2 and chosen[("gaudi-1",)] == list(range(8))
    lost = plan(**job(**few, cards=7, job={"nodes": ["gaudi-3", "gaudi-4"], "head": "gaudi-3"}))
    refused = decide({**others, **alone, "gaudi-4": lost}, names, True).refusals
    assert refused.keys() == {"gaudi-3", "gaudi-4"}


def test_a_user_with_another_number_on_a_shared_folder_is_refused_on_its_node() -> None:
    found = site(plan(**job(shares="nfs:/jobs")), plan(**job(shares="nfs:/jobs", uid=901)))
    assert found.refusals.keys() == {"gaudi-2"}
    assert found.refusals["gaudi-2"].startswith("train has uid 901 on gaudi-2 and 900 on gaudi-1, which share /jobs")


def test_a_node_that_is_not_of_the_job_is_not_compared() -> None:
    alone = {"nodes": ["gaudi-1"]}
    found = site(plan(**job(job=alone, shares="nfs:/jobs")), plan(**job(job=alone, shares="nfs:/jobs", uid=901)))
    assert found.refusals == {}


def test_nodes_have_the_same_file_under_one_name() -> None:
    def having(sha256: str) -> dict[str, Any]:
        found = {"pytorch": {"tarball": "pytorch.tgz", "sha256": sha256}}
        return plan(found=found, pytorch={"root": "/opt/gaudi3-scale", "release": "1.23.0-695"})

    assert site(having("a"), having("a")).problem == ""
    assert site(having("a"), having("b")).problem == (
        "Nodes have different files under the name of one tarball (pytorch.tgz with SHA-256 a, pytorch.tgz with "
        "SHA-256 b): find out which is right, set pytorch_sha256 to it, and remove "
        "/opt/gaudi3-scale/torch-1.23.0-695 on the nodes that have another."
    )


def test_what_keeps_a_host_from_being_asked_for_its_cards_is_said_in_place_of_their_want() -> None:
    stopped = plan(problem="trainer_head cannot be evaluated")
    del stopped["cards"]
    assert site(second=stopped).refusals == {"gaudi-2": "trainer_head cannot be evaluated"}
