"""The pair search as rounds of hccl_demo: what each node calls, and what its answers are taken for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._health.pair_jobs import findings, job_results
from ansible_collections.gaudi3.scale.plugins.module_utils._health.pairs import Job, SearchResult
from ansible_collections.gaudi3.scale.plugins.modules import gaudi_pair_search

Run = Callable[..., dict[str, Any]]

NODES = [f"n{number}" for number in range(1, 7)]
GIVEN: dict[str, Any] = {
    "nodes": NODES,
    "addresses": {node: f"10.0.0.{node[1:]}" for node in NODES},
    "cards": 8,
    "floors": {"all2all": 20.0, "send_recv": 20.0},
}


def answer(figure: float) -> dict[str, Any]:
    return {"rc": 0, "stdout": f"[BENCHMARK]     NW Bandwidth   : {figure:.6f} GB/s\n"}


def searched(run_module: Run, bad: set[str], links: set[frozenset[str]], **given: Any) -> dict[str, Any]:
    """The whole search among nodes of which these are slow."""
    found = run_module(gaudi_pair_search, **{**GIVEN, **given})
    while not found["done"]:
        jobs: dict[str, list[str]] = {}
        for node, call in found["calls"].items():
            jobs.setdefault(call["meeting"], []).append(node)
        answers = {}
        for nodes in jobs.values():
            nodes.sort(key=lambda node: int(found["calls"][node]["argv"][10]))
            argv = found["calls"][nodes[0]]["argv"]
            used = {frozenset((one, other)) for one in nodes for other in nodes if one != other}
            if "--ranks_list" in argv:
                ranks = [int(rank) // 8 for rank in argv[-1].split(",")]
                used = {
                    frozenset((nodes[one], nodes[other])) for one, other in zip(ranks[::2], ranks[1::2], strict=True)
                }
            slow = bad & set(nodes) or used & links
            answers.update({node: {"rc": 0, "stdout": ""} for node in nodes})
            answers[nodes[0]] = answer(2 if slow else 30)
        found = run_module(gaudi_pair_search, **{**GIVEN, **given}, passed=found["passed"], answers=answers)
    return found


def test_each_node_of_a_pair_is_called_as_the_programs_page_says(run_module: Run) -> None:
    found = run_module(gaudi_pair_search, **GIVEN)
    assert (found["done"], found["round"], found["bound"]) == (False, 1, 4 + 1 + 2 * 2 * 3 - 1)
    assert found["calls"]["n4"] == {
        "argv": ["timeout", "--kill-after=10", "300", "python3", "run_hccl_demo.py", "--nranks", "16",
                 "--ranks_per_node", "8", "--node_id", "1", "--test", "all2all", "--size", "32m", "--loop", "1000"],
        "meeting": "10.0.0.3:5556",
    }  # fmt: skip
    assert sorted(call["meeting"] for call in found["calls"].values()) == [
        "10.0.0.1:5555", "10.0.0.1:5555", "10.0.0.3:5556", "10.0.0.3:5556", "10.0.0.5:5557", "10.0.0.5:5557",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("bad", "links"),
    [
        (set(), set()),
        ({"n4"}, set()),
        (set(), {frozenset(("n2", "n5"))}),
        ({"n1"}, {frozenset(("n3", "n6"))}),
        (set(), {frozenset(("n1", "n2")), frozenset(("n1", "n6"))}),
    ],
    ids=["none", "a node", "a link", "both", "two links of a node"],
)
def test_what_is_slow_is_named_within_the_bound(bad: set[str], links: set[frozenset[str]], run_module: Run) -> None:
    found = searched(run_module, bad, links)
    assert found["nodes"] == sorted(bad)
    assert {frozenset(link) for link in found["links"]} == links
    assert len(found["passed"]) == found["round"] <= found["bound"]
    assert found["calls"] == {}


@pytest.mark.parametrize(
    ("answers", "why"),
    [
        ({"a": {"rc": 0, "stdout": ""}}, "b gave no answer"),
        ({"a": {"rc": 124, "stdout": ""}, "b": {"rc": 0}}, "a was not done after 300 s"),
        ({"a": {"rc": 0}, "b": {"rc": 1, "stdout": "x\nsynStatus 26\n"}}, "exit code 1 on b: synStatus 26"),
        (
            {"a": answer(30), "b": {"rc": 0, "stdout": "Output Buffer [1 2] which is bad.\n"}},
            "b computed a wrong result",
        ),
        ({"a": {"rc": 0, "stdout": ""}, "b": {"rc": 0}}, "a printed no bandwidth"),
        ({"a": answer(19.5), "b": {"rc": 0}}, "19.5 GB/s is below the floor of 20"),
        ({"a": answer(20), "b": {"rc": 0}}, ""),
    ],
    ids=["none", "timeout", "exit code", "wrong", "no figure", "slow", "passed"],
)
def test_how_a_job_ends(answers: dict[str, dict[str, Any]], why: str) -> None:
    result = job_results([Job(("a", "b"))], answers, {"all2all": 20.0}, 300)[0]
    assert result.why == why
    assert result.as_line == ("a b: passed (20 GB/s)" if not why else f"a b: {why}")


def test_without_a_floor_a_job_stands_apart_from_eight_of_its_kind(run_module: Run) -> None:
    jobs = [Job((f"a{number}", f"b{number}")) for number in range(9)]
    answers = {node: answer(30 - 15 * (node == "a4")) for job in jobs for node in job.nodes}
    whys = [result.why for result in job_results(jobs, answers, {}, 300)]
    assert [number for number, why in enumerate(whys) if why] == [4]
    assert whys[4] == "stands apart with 15 where the median of 9 is 30 (MAD 0) GB/s"
    assert not any(result.why for result in job_results(jobs[:7], answers, {}, 300))


def test_a_bad_link_is_neither_nodes_fault() -> None:
    said = findings(SearchResult(["c"], [("a", "b")]))
    assert {node: [(each.component, each.drains) for each in found] for node, found in said.items()} == {
        "c": [("node", True)], "a": [("link to b", False)], "b": [("link to a", False)],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (
            {"addresses": {}},
            "addresses has none of n1, n2, n3, n4, n5, n6: give each node's address on the cluster network.",
        ),
        ({"cards": 0}, "cards is 0: give 1 or more."),
        ({"nodes": ["n1"]}, "1 nodes were given for the pair search: give two or more, each once."),
        (
            {"answers": {node: {"rc": 1, "stdout": "no such device"} for node in NODES}},
            "No pair of nodes passed, so none is known to be good. Look at the fabric and at hccl_demo itself. The "
            "first of them said: n1 n2: exit code 1 on n1: no such device.",
        ),
    ],
)
def test_what_cannot_be_searched_is_refused(given: dict[str, Any], sentence: str, run_module: Run) -> None:
    assert run_module(gaudi_pair_search, **{**GIVEN, **given})["msg"] == sentence


def test_a_list_of_ranks_that_no_argument_can_hold_is_refused(run_module: Run) -> None:
    nodes = [f"n{number}" for number in range(200)]
    given = {**GIVEN, "nodes": nodes, "addresses": dict.fromkeys(nodes, "10.0.0.1")}
    # Pairs pass, all of them together do not, and the first half with the second is one job.
    rounds = [[True] * 100, [False], [True, True]]
    said = run_module(gaudi_pair_search, **given, passed=rounds)["msg"]
    assert said.startswith("200 nodes are too many for one job of hccl_demo, whose list of ranks would have ")
    assert said.endswith(" characters: search fewer at a time, such as 32, with --limit.")
