"""A job between its nodes: who is compared with whom, when a node is looked at again, and what is left to do."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._plan import job_progress

OFFER = {"processes": 8, "cards": 8, "modules": list(range(8)), "held": [], "uid": 900, "shares": "nas:/jobs"}
NODE: dict[str, Any] = {"interface": "eth0", "groups": ["render"], "driver": "1.23.0", "offer": OFFER}
FINISHED = {"pending": False, "job": {"state": "finished"}}
USUAL: dict[str, Any] = {
    "inventory_hostname": "b",
    "trainer_nodes": ["a", "b"],
    "trainer_head": "a",
    "trainer_state": "finished",
    "trainer_job_name": "demo",
    "trainer_user": "train",
    "trainer_jobs_dir": "/jobs",
    "trainer_cards": 8,
    "trainer_processes_per_node": 8,
    "trainer_root": "/opt",
    "pytorch_release": "1.23.0-695",
    "ansible_play_hosts": ["a", "b"],
    "ansible_play_hosts_all": ["a", "b"],
    "ansible_play_batch": ["a", "b"],
    "ansible_run_tags": ["all"],
    "_trainer_node": NODE,
    "_gaudi_nodes_known": True,
}


def values(head: dict[str, Any] | None = None, **given: Any) -> Any:
    hosts = {"a": {"_trainer_node": NODE, "ansible_host": "10.0.0.1", **(head or {})}, "b": {"_trainer_node": NODE}}
    return {**USUAL, "hostvars": hosts, **given}.get


def test_a_node_that_offers_what_the_head_does_lacks_nothing() -> None:
    assert job_progress.lacks(values()) == [] and job_progress.refusal(values()) == ""


def test_all_are_compared_with_the_one_that_asks() -> None:
    other = {**NODE, "offer": {**OFFER, "uid": 901}}
    (said,) = job_progress.lacks(values({"_trainer_node": other}))
    assert said.startswith("train has uid 900 on b and 901 on a, which share /jobs (nas:/jobs)")
    # Where only the preflight has asked the head, too.
    seen = {"_trainer_node": None, "_gaudi_plan": {"found": {"node": other}}}
    assert job_progress.lacks(values(seen)) == [said] == [job_progress.refusal(values(seen))]
    assert job_progress.lacks(values({"_trainer_choice": {"problem": "No cards are left."}})) == ["No cards are left."]


def test_the_preflights_answer_counts_until_the_role_asks_itself() -> None:
    plan = {"found": {"node": {"driver": "x"}}}
    assert job_progress.seen(values(_trainer_node=None, _gaudi_plan=plan)) == {"driver": "x"}
    assert job_progress.seen(values(_gaudi_plan=plan)) == NODE
    for odd in (None, {}, {"found": {}}, {"found": {"node": "odd"}}, []):
        assert job_progress.seen(values(_trainer_node=None, _gaudi_plan=odd)) is None


@pytest.mark.parametrize(
    ("given", "refused"),
    [
        ({"trainer_job_name": "Demo"}, True),
        ({"trainer_job_name": "Demo", "trainer_state": "stopped"}, False),
        ({"trainer_job_name": "Demo", "inventory_hostname": "c"}, False),
        ({"trainer_nodes": []}, True),
    ],
)
def test_only_nodes_of_a_job_that_runs_are_refused(given: dict[str, Any], refused: bool) -> None:
    assert bool(job_progress.refusal(values(**given))) is refused


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"trainer_spares": "1", "trainer_max_restarts": 0}, "Job demo is to go on without a node that is lost"),
        ({"trainer_rdzv_port": "80"}, "trainer_rdzv_port is 80, but must be from 1024 to 65535."),
        ({"trainer_environment_files": ["x"]}, "trainer_environment_files is 'x', which cannot be written"),
        ({"trainer_root": "opt"}, "trainer_root is 'opt', which cannot be written into a unit"),
        # The head says where the others meet it.
        ({"gaudi_cluster_address": "10.0.0.1/24"}, ""),
        ({"gaudi_cluster_address": "10.0.0.1/24", "inventory_hostname": "a"}, "Head address '10.0.0.1/24' is not"),
        ({"ansible_host": "10.0.0.1", "inventory_hostname": "a"}, ""),
        # Another sentence says that Slurm has none of these.
        ({"trainer_launcher": "slurm", "trainer_spares": 5}, "trainer_spares is set, and launcher slurm does not"),
    ],
)
def test_what_the_jobs_module_would_refuse_at_its_end(given: dict[str, Any], said: str) -> None:
    found = job_progress.refusal(values(**given))
    assert found.startswith(said) if said else found == ""


def test_settings_with_which_a_node_could_say_what_is_built_are_refused_first() -> None:
    assert job_progress.refusal(values(gaudi_settings_problem="inject", trainer_job_name="Demo")) == "inject"
    assert job_progress.refusal(values(gaudi_settings_problem="inject", trainer_state="stopped")) == ""


@pytest.mark.parametrize("odd", [["1.23.0"], {"a": 1}, 5, "1.22.0\x1b"])
def test_a_driver_that_a_node_tells_oddly_is_another_one(odd: Any) -> None:
    said = job_progress.refusal_at_start(values(_trainer_node={**NODE, "driver": odd}))
    assert said.startswith("b has driver ") and said.isprintable()


@pytest.mark.parametrize(
    ("given", "again"),
    [
        ({}, False),
        ({"trainer_jobs": [{"name": "one"}]}, True),
        ({"_trainer_node": None}, True),
        ({"_trainer_account": {"changed": True}}, True),
        ({"_trainer_account": {"changed": False}}, False),
        ({"_trainer_node": {**NODE, "driver": "1.22.0"}}, True),
        ({"_trainer_node": {**NODE, "driver": "1.22.0"}, "trainer_state": "stopped"}, False),
        ({"_trainer_node": {**NODE, "interface": None}}, False),
        ({"_trainer_node": {**NODE, "interface": None}, "_gaudi_nodes_known": False}, True),
        ({"_gaudi_nodes_known": False}, False),
        ({"_trainer_node": None, "_gaudi_plan": {"found": {"node": NODE}}, "_gaudi_nodes_known": True}, False),
        ({"_trainer_node": None, "_gaudi_plan": {"found": {"node": NODE}}, "_gaudi_nodes_known": False}, True),
    ],
)
def test_a_node_is_looked_at_again_where_something_may_have_changed(given: dict[str, Any], again: bool) -> None:
    assert job_progress.again(values(**given)) is again


@pytest.mark.parametrize("missing", ["_gaudi_plan", "found", "node", "offer"])
def test_nodes_are_known_where_the_preflight_asked_all_and_nothing_was_installed_since(missing: str) -> None:
    plan: Any = OFFER
    for name in ("offer", "node", "found", "_gaudi_plan"):
        plan = {} if name == missing else {name: plan}
    known = {"_gaudi_plan": {"found": {"node": {"offer": OFFER}}}}
    assert job_progress.known(values(hostvars={"a": known, "b": known})) is True
    assert job_progress.known(values(hostvars={"a": known, "b": plan})) is False
    assert job_progress.known(values(hostvars={"a": known})) is False
    assert job_progress.known(values(hostvars={"a": known, "b": {**known, "_pytorch_installed": {}}})) is False
    left = {**known, "_pytorch_installed": {"skipped": True}}
    assert job_progress.known(values(hostvars={"a": known, "b": left})) is True


def test_nodes_need_not_be_asked_before_the_trainer_comes_where_the_preflight_did() -> None:
    known = {"_gaudi_plan": {"found": {"node": {"offer": OFFER}}}}
    asked = {"_gaudi_site": {"asked": ["a", "b"]}}
    assert job_progress.asked_before(values(hostvars={"a": known, "b": known})) is True
    assert job_progress.asked_before(values(hostvars={"a": asked, "b": asked})) is True
    assert job_progress.asked_before(values(hostvars={"a": asked, "b": {}})) is False
    assert job_progress.asked_before(values(hostvars={"a": asked, "b": {"_gaudi_site": {"asked": ["a"]}}})) is False
    assert job_progress.asked_before(values(hostvars={"a": {"_gaudi_site": None}, "b": asked})) is False


@pytest.mark.parametrize(
    ("answer", "given", "done", "finished", "awaits"),
    [
        (FINISHED, {}, True, True, False),
        ({"pending": False, "job": {"state": "stopped"}}, {}, True, False, False),
        ({"pending": False, "job": {"state": "running"}}, {}, False, False, True),
        ({"pending": True, "job": {"state": "finished"}}, {}, False, False, True),
        ({"job": {"state": "finished"}}, {}, False, False, True),
        ({"pending": False, "job": "finished"}, {}, False, False, True),
        (None, {}, False, False, True),
        (FINISHED, {"trainer_state": "started"}, True, True, False),
        (None, {"trainer_state": "started"}, False, False, False),
        (None, {"ansible_check_mode": True, "_trainer_job": {"changed": True}}, False, False, False),
        (None, {"ansible_check_mode": True, "_trainer_job": {"changed": False}}, False, False, True),
    ],
)
def test_how_far_a_job_is(answer: Any, given: dict[str, Any], done: bool, finished: bool, awaits: bool) -> None:
    found = job_progress.progress(values({"_trainer_answer": answer}, **given))
    assert (found["done"], found["finished"], found["awaits"], found["waits"]) == (done, finished, awaits, awaits)


def test_of_several_jobs_all_are_started_before_one_is_waited_for() -> None:
    several = {"trainer_jobs": [{"name": "demo"}]}
    assert job_progress.progress(values(**several))["waits"] is False
    assert job_progress.awaited(values(**several, _trainer_awaited=["other", "demo"])) == ["other", "demo"]
    assert job_progress.awaited(values({"_trainer_answer": FINISHED}, _trainer_awaited=["demo"])) == []
    assert job_progress.progress(values(**several, _trainer_awaited=["demo"]))["waits"] is True


def test_nodes_that_the_play_leaves_out_are_missing() -> None:
    assert job_progress.progress(values(ansible_play_batch=["b"]))["missing"] == ["a"]


def test_the_cards_are_the_same_on_all_nodes() -> None:
    assert job_progress.choose(values()) == {"modules": list(range(8)), "problem": ""}
    assert job_progress.modules(values({"_trainer_choice": {"modules": [1]}, "_gaudi_site": {"choices": []}})) == [1]
    site = {"choices": [{"nodes": ["c", "d"], "modules": [3]}, {"nodes": ["a", "b"], "modules": [2]}, {}]}
    assert job_progress.modules(values({"_gaudi_site": site})) == [2]
    assert job_progress.modules(values({"_gaudi_site": {"choices": site["choices"][:1]}})) == []
    assert job_progress.modules(values({"_gaudi_site": {"asked": []}})) == []


def test_where_the_others_are_is_told_to_the_head() -> None:
    assert job_progress.places(values()) == {"b": ["", "", "b"]}


def test_what_nobody_gave_is_left_to_the_module() -> None:
    made = job_progress.options(values(trainer_job_secret="", trainer_threads=None, trainer_min_nodes=2))
    assert (made["min_nodes"], made["is_head"], made["head_address"]) == (2, False, "10.0.0.1")
    assert (made["groups"], made["interface"], made["cards"]) == (["render"], "eth0", 8)
    assert made["venv"] == "/opt/venv"
    assert made.keys().isdisjoint(
        {"threads", "secret", "secrets_dir", "command", "chdir", "container", "keep_archives"}
    )
    counted = {"ansible_facts": {"gaudi_pci": {}}}
    plain = job_progress.options(values(trainer_cards=None, _trainer_node=None, trainer_command=["/srv/x"], **counted))
    assert plain["groups"] == [] and plain.keys().isdisjoint({"cards", "interface", "config", "node_config"})


SLURM: dict[str, Any] = {
    "trainer_launcher": "slurm",
    "trainer_slurm": {"time": "24:00:00", "cpu": 128},
    "trainer_environment_files": ["/etc/gaudi3-scale/fabric.env"],
    "trainer_address": "10.0.0.2",
    "trainer_node_config": {"metrics": {"address": "10.0.0.2"}},
    "trainer_jobs_dir": "/shared/jobs",
    "trainer_config": {"train": {"max_steps": 30}},
}


def test_a_job_of_slurm_gets_what_slurm_carries_alone() -> None:
    made = job_progress.options(values(**SLURM, trainer_threads=4))
    assert made["launcher"] == "slurm" and made["slurm"] == {"time": "24:00:00", "cpu": 128}
    assert (made["nodes"], made["venv"], made["threads"]) == (["a", "b"], "/opt/venv", 4)
    assert made["config"] == {"device": "hpu", "train": {"max_steps": 30}}
    assert not set(made) & {
        "head_address",
        "is_head",
        "modules",
        "groups",
        "node_config",
        "environment_files",
        "spares",
    }
    assert "slurm" not in job_progress.options(values(**SLURM, trainer_state="stopped"))
    assert job_progress.refusal(values(**SLURM)) == ""


@pytest.mark.parametrize("state", ["running", "queued", "unknown"])
def test_a_job_that_slurm_has_is_not_done(state: str) -> None:
    answer = {"_trainer_answer": {"pending": False, "job": {"state": state}}}
    found = job_progress.progress(values(answer))
    assert (found["done"], found["awaits"]) == (False, True)


def test_a_data_set_that_went_since_the_preflight_is_missed_before_the_start() -> None:
    gone = {**NODE, "missing": ["/data"]}
    said = job_progress.refusal_at_start(values(trainer_dataset="/data", _trainer_node=gone))
    assert said.startswith("The dataset /data does not exist on b: copy it to every node")
    assert job_progress.refusal_at_start(values(trainer_dataset="/data", _trainer_node=NODE)) == ""


@pytest.mark.parametrize(
    ("node", "asked"),
    [({"closed": []}, True), ({"closed": [{"path": "/dev/accel/accel0"}]}, False), ({}, False), (None, False)],
)
def test_a_node_whose_cards_the_job_could_open_is_not_asked_again(node: Any, asked: bool) -> None:
    assert job_progress.asked_by_job(values(_trainer_node=node)) is asked
