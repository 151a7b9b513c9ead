"""Hostile nodes beside good ones, through the playbooks that read their answers: the good ones have nothing of it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from importlib.metadata import version
from typing import Any

import pytest

from tests.suite.proof import Proof, in_turn

from .answers import answer
from .answers import variables as names_of_variables
from .cluster import Cluster
from .host import RELEASE, program
from .hostile import GOOD, Seen, Site
from .test_health import fault

OWN = ".".join(version("ansible-core").split(".")[:2])
CORES = ("2.17", "2.19", "2.21")
#: Hostile nodes of one run; each of them gives one changed answer or more.
HOSTILE = 25
#: The same in `make test`.
SAMPLE = 5
UNIT = "gaudi-train-demo.service"


def doctor(site: Site) -> dict[str, Any]:
    return {"doctor_quick": True, "doctor_directory": f"{site.cluster.folder}/reports", "trainer_root": "/nowhere",
            "trainer_python": "/nowhere/python3"}  # fmt: skip


def health(site: Site) -> dict[str, Any]:
    return {"health_directory": f"{site.cluster.folder}/health", "health_expected_cards": 1}


def heal(site: Site) -> dict[str, Any]:
    return {**health(site), "health_mode": "enforce", "health_share": 1, "health_reboot_timeout": 1}


def preflight(site: Site) -> dict[str, Any]:
    # The vendor's host cannot be reached from a test.
    return {"firewall_enabled": True, "arguments": ["--skip-tags", "pytorch,train"]}


def firewall(site: Site) -> dict[str, Any]:
    return {"firewall_enabled": True}


def verify(site: Site) -> dict[str, Any]:
    return {key: value for key, value in train(site).items() if key != "arguments"}


def train(site: Site) -> dict[str, Any]:
    site.cluster.all.pop("trainer_job_name", None)
    hostile = {"name": "other", "nodes": site.bad, "head": site.bad[0], "rdzv_port": 29500}
    return {
        "trainer_jobs": [{"name": "demo", "nodes": list(GOOD), "head": GOOD[0]}, hostile],
        "trainer_poll_interval": 0.1, "trainer_user": "nobody", "trainer_cards": 1,
        "arguments": ["--skip-tags", "trainer_install"],
    }  # fmt: skip


#: The variables of each playbook, and how many blocks of hostile nodes play it in the proof.
PLAYBOOKS: dict[str, tuple[Callable[[Site], dict[str, Any]], int]] = {
    "doctor": (doctor, 3), "health": (health, 3), "heal": (heal, 1), "preflight": (preflight, 4),
    "firewall": (firewall, 4), "verify": (verify, 3), "train": (train, 3),
}  # fmt: skip


def prepared(cluster: Cluster, playbook: str, hostile: int = HOSTILE) -> Site:
    """A site on which a playbook has something to do."""
    site = Site(cluster, hostile)
    for host in site.good.values():
        program(host, "dmesg", "dmesg", "main")
        program(host, "modinfo", "kmod_tools", "modinfo")
        # One that brings no port up would have each step of the healing wait a minute for the links.
        program(host, "manage_network_ifs.sh", "manage_network_ifs", "main")
        script = (host.folder / "bin/manage_network_ifs.sh").read_text()
        script = script.replace("main(sys.argv[1:])", f'main(sys.argv[1:], release="{RELEASE}")')
        host.write("/opt/habanalabs/qual/gaudi3/bin/manage_network_ifs.sh", script, 0o755)
        host.give(courses={UNIT: ["running", "finished"]})
        host.give(packages={**json.loads((host.folder / "packages.json").read_text()), "nftables": "1.0.6-2+deb12u2"})
        host.path("/usr/sbin").mkdir(parents=True, exist_ok=True)
        host.path("/usr/sbin/nft").symlink_to(host.folder / "bin/nft")
    if playbook in ("health", "heal"):
        fault(site.good["good-2"], "needs-reset", "--card", "0")
    if playbook == "verify":
        before = site.play("train.yml", alone=True, **train(site))
        assert before.run.returncode == 0, before.run.messages()
    site.record()
    site.keep()
    return site


#: Playbooks of which `make test` plays a block, another one with each commit: those that cost the least. What reads the
#: answers gets thousands of them in tests/unit/plugins/test_changed_answers.py.
SAMPLED = in_turn(("preflight", "health", "firewall"), 1)
BLOCKS = {
    f"{core}-{playbook}-{block}": (playbook, block)
    for core in CORES
    for playbook, (_variables, blocks) in PLAYBOOKS.items()
    for block in range(1, blocks + 1)
}
PROOF = Proof(
    "node-answers",
    {core: [case for case in BLOCKS if case.startswith(f"{core}-")] for core in CORES},
    sample=[f"{OWN}-{playbook}-1" for playbook in SAMPLED if OWN in CORES],
)  # fmt: skip
TEXT = f"""
Each case plays a playbook on two good nodes, of which one may be faulty, and on {HOSTILE} hostile ones. Their answers
are true answers with changes drawn by the seed: other types, missing and added keys, huge numbers, templates, escapes,
facts with the names of variables, keys that Ansible reads itself, and what is no JSON. The good nodes' results,
variables and files, and what the controller keeps of them, are compared with a run on them alone. A case holds where
none of it differs, nothing was evaluated, and the play ended for them. The preflight stops for all nodes where one
cannot be asked; it is then played without that node, as its message demands.
Times are not compared, nor rounds of a healing in which only hostile nodes have something to do. What ansible-core
2.17 itself writes of an answer into its warnings is left out.
"""


@pytest.fixture(autouse=True)
def table() -> Iterator[None]:
    yield
    PROOF.write_table("Changed answers of hostile nodes", TEXT, ["changed answers", "by kind"])


@pytest.fixture(scope="module")
def sites(new_cluster: Callable[[], Cluster]) -> Callable[[str], tuple[Site, dict[str, Any], Seen]]:
    """The site of a playbook, its variables, and what its good nodes had of a run alone: made once for all blocks."""
    made: dict[str, tuple[Site, dict[str, Any], Seen]] = {}

    def site(playbook: str) -> tuple[Site, dict[str, Any], Seen]:
        if playbook not in made:
            of = prepared(new_cluster(), playbook, HOSTILE if PROOF.is_running else SAMPLE)
            variables = PLAYBOOKS[playbook][0](of)
            alone = of.play(f"{playbook}.yml", alone=True, **variables)
            assert alone.ended and alone.run.returncode == 0, (alone.run.messages(), alone.run.output[-2000:])
            assert of.complaints(alone) == []
            made[playbook] = (of, variables, alone)
        return made[playbook]

    return site


@pytest.mark.parametrize("case", PROOF.parameters({case: case for case in PROOF.cases}))
def test_good_nodes_have_nothing_of_what_hostile_ones_answer(
    case: str, sites: Callable[[str], tuple[Site, dict[str, Any], Seen]]
) -> None:
    if not case.startswith(f"{OWN}-"):
        pytest.skip(f"played by the environment of ansible-core {case.split('-')[0]}")
    PROOF.skip_if_held(case)
    playbook, block = BLOCKS[case]
    site, variables, alone = sites(playbook)
    seed = f"{PROOF.seed}-{playbook}-{block}"
    beside, complaints = site.played(f"{playbook}.yml", seed, **variables)
    found = complaints + site.differences(alone, beside)
    changes = site.arm(seed)
    assert not found, "\n".join([*found[:50], json.dumps(changes, indent=1), beside.run.output[-3000:]])
    kinds = Counter(
        change.split(" ")[0]
        for each in changes.values()
        for line in each
        for change in line.split(": ", 1)[1].split(", ")
    )
    told = ", ".join(f"{number} {kind.rstrip(':')}" for kind, number in sorted(kinds.items()))
    PROOF.note(case, {"changed answers": sum(map(len, changes.values())), "by kind": told})


def test_answers_are_the_same_for_the_same_seed() -> None:
    true = {"changed": False, "report": {"cards": [{"name": "accel0"}]}, "ansible_facts": {"gaudi": {}}}
    first, again = ([answer(true, f"seed-{number}", "marker", GOOD) for number in range(200)] for _ in range(2))
    assert first == again
    kinds = {change.split(" ")[0] for each in first for change in each.changes}
    assert {"replace", "drop", "add", "swap", "facts", "control", "printed:"} <= kinds
    assert "health_mode" in names_of_variables() and "gaudi_cluster_address" in names_of_variables()
