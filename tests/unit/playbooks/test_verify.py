"""What verify.yml sums up and what it refuses, for the statuses that jobs leave."""

from __future__ import annotations

from typing import Any

import pytest

from .jinja import evaluate, load, render

FINISHED: dict[str, Any] = {
    "schema": 1,
    "state": "finished",
    "step": 200,
    "max_steps": 200,
    "loss": 2.31,
    "first_loss": 5.55,
    "baseline_loss": 3.1,
    "tokens_per_second": 13467.2,
    "world_size": 16,
    "device": "hpu",
    "hardware_name": "GAUDI3",
    "simulated": False,
    "software": {"python": "3.12.3", "torch": "2.9.0a0+git1", "lightning": "2.6.0", "plugin": "1.23.0.695"},
    "checkpoint": "/var/lib/gaudi3-scale/jobs/demo/checkpoints/step-200",
    "updated_at": 1767225660.5,
}
SPARE: dict[str, Any] = {"schema": 1, "state": "spare", "updated_at": 1767225660.5}
CAVEAT = ", which says nothing about a real Gaudi"


def site(**statuses: dict[str, Any] | None) -> dict[str, Any]:
    """Variables of a play on nodes gaudi_1, gaudi_2, ... whose jobs have these statuses; the last one is the head."""
    gaudi = {
        "card_count": 8,
        "driver_version": "1.23.0-2eae87a",
        "firmware": {"spi": "1.23.0"},
        "hl_smi_version": "1.23",
    }
    nodes = sorted(statuses)
    hostvars = {
        node: {
            "ansible_facts": {"gaudi": gaudi},
            "_verify_job": {
                "jobs": [{"name": "demo", "state": (status or {"state": "absent"})["state"], "status": status}]
            },
        }
        for node, status in statuses.items()
    }
    groups = {"gaudi": nodes, "gaudi_head": [nodes[-1]]}
    return {"ansible_play_hosts": nodes, "hostvars": hostvars, "groups": groups, "inventory_hostname": nodes[0]}


def summary(**statuses: dict[str, Any] | None) -> str:
    return render("playbooks/templates/summary.j2", **site(**statuses))


def test_the_summary_of_a_job_on_cards() -> None:
    text = summary(gaudi_1=FINISHED, gaudi_2=FINISHED)
    assert text.splitlines() == [
        "gaudi_1, gaudi_2: 8 cards, driver 1.23.0-2eae87a, firmware 1.23.0, hl-smi 1.23",
        "training job demo: finished, step 200 of 200, 16 processes on GAUDI3",
        "loss: 5.550 at first, 2.310 at last (byte-frequency baseline 3.100)",
        "speed: 13,467 tokens/s on GAUDI3",
        "checkpoint: /var/lib/gaudi3-scale/jobs/demo/checkpoints/step-200 (on every node of the job)",
        "software: Intel's plugin 1.23.0.695, PyTorch 2.9.0a0+git1, Lightning 2.6.0, Python 3.12.3",
        "device: GAUDI3",
    ]


@pytest.mark.parametrize("simulated", [{}, {"simulated": True}])
def test_a_device_without_a_hardware_name_is_called_simulated(simulated: dict[str, bool]) -> None:
    status = {key: value for key, value in FINISHED.items() if key != "simulated"}
    text = summary(gaudi_1={**status, "hardware_name": None, **simulated})
    assert "16 processes on hpu\n" in text
    assert f"speed: 13,467 tokens/s on hpu{CAVEAT}\n" in text
    assert text.splitlines()[-1] == "device: hpu, simulated on processors"
    assert text.count("simulated") == 1


def test_the_speed_of_processors_is_not_one_of_gaudi() -> None:
    text = summary(gaudi_1={**FINISHED, "device": "cpu", "hardware_name": None, "simulated": False})
    assert f"speed: 13,467 tokens/s on cpu{CAVEAT}\n" in text


def test_a_device_that_is_not_known_yet_is_not_called_simulated() -> None:
    text = summary(gaudi_1={**FINISHED, "state": "starting", "step": 0, "hardware_name": None, "simulated": None})
    assert "simulated" not in text


def test_a_job_of_a_trainer_that_wrote_no_names() -> None:
    status = {key: value for key, value in FINISHED.items() if key not in ("hardware_name", "simulated")}
    text = summary(gaudi_1=status)
    assert "16 processes on hpu\n" in text
    assert f"speed: 13,467 tokens/s on hpu{CAVEAT}\n" in text


def test_a_spare_that_comes_first_by_name_does_not_hide_the_job() -> None:
    text = summary(gaudi_1=SPARE, gaudi_2=FINISHED)
    assert "training job demo: finished, step 200 of 200, 16 processes on GAUDI3\n" in text
    assert "spare nodes that were not needed: gaudi_1\n" in text


def test_without_the_head_any_node_that_trained_is_shown() -> None:
    variables = site(gaudi_1=SPARE, gaudi_2=FINISHED, gaudi_3=FINISHED)
    variables["ansible_play_hosts"] = ["gaudi_1", "gaudi_2"]
    assert "training job demo: finished, step 200 of 200" in render("playbooks/templates/summary.j2", **variables)


def test_a_head_that_was_named_goes_before_the_group() -> None:
    variables = site(gaudi_1=FINISHED, gaudi_2={**FINISHED, "step": 150, "state": "interrupted"})
    assert "interrupted, step 150" in render("playbooks/templates/summary.j2", **variables)
    assert "finished, step 200" in render("playbooks/templates/summary.j2", **variables, trainer_head="gaudi_1")


BATCH = {"micro_batch_size": 12, "samples_per_step": 192, "how": "predicted and tried"}
COST = {
    "spent": 1.234,
    "currency": "EUR",
    "price_per_hour": 20.0,
    "price_source": "our contract",
    "price_date": "2026-11-01",
    "per_million_tokens": None,
}


def test_a_batch_that_was_found_and_the_bill_are_shown() -> None:
    text = summary(gaudi_1={**FINISHED, "batch": BATCH, "cost": {**COST, "per_million_tokens": 0.5}})
    assert "batch: 12 samples per process and pass (predicted and tried), 192 per step\n" in text
    assert (
        "cost: 1.23 EUR, 0.50 per million tokens, at 20.00 per hour for all nodes (our contract, 2026-11-01)\n" in text
    )


def test_the_bill_of_a_simulated_job_is_no_gaudis() -> None:
    text = summary(gaudi_1={**FINISHED, "hardware_name": None, "cost": COST, "batch": None})
    bill = "cost: 1.23 EUR, at 20.00 per hour for all nodes (our contract, 2026-11-01)"
    assert f"{bill}: the hours are those of this machine, not of Gaudi\n" in text and "batch:" not in text


@pytest.mark.parametrize("missing", [key for key in FINISHED if key not in ("schema", "state")])
def test_what_a_status_lacks_is_left_out(missing: str) -> None:
    text = summary(gaudi_1={key: value for key, value in FINISHED.items() if key != missing})
    assert "training job demo: finished" in text


@pytest.mark.parametrize(
    ("status", "line"),
    [
        (SPARE, "training job demo: spare"),
        (None, "training job demo: absent"),
        ({**SPARE, "state": "starting"}, "training job demo: starting"),
    ],
)
def test_a_job_that_never_trained(status: dict[str, Any] | None, line: str) -> None:
    assert line in summary(gaudi_1=status).splitlines()


def test_each_job_of_a_list_is_summed_up_as_its_head_has_it() -> None:
    variables = site(gaudi_1=FINISHED, gaudi_2={**FINISHED, "step": 150, "state": "interrupted", "hardware_name": None})
    own = variables["hostvars"]["gaudi_2"]["_verify_job"]["jobs"]
    own[0]["name"] = "other"
    own.insert(0, {"name": "left-over", "state": "failed", "status": None})
    jobs = [{"name": "demo", "nodes": ["gaudi_1"]}, {"name": "other", "nodes": ["gaudi_2"]}, {"name": "third"}]
    lines = render("playbooks/templates/summary.j2", **variables, trainer_jobs=jobs).splitlines()
    told = [line.partition(",")[0] for line in lines if line.startswith(("training job", "device"))]
    assert told == [
        "training job demo: finished",
        "training job other: interrupted",
        "training job third: absent",
        "device of demo: GAUDI3",
        "device of other: hpu",
    ]


def refused(status: dict[str, Any] | None, cards: int = 8, **chosen: Any) -> str | None:
    """The message with which the play ends for this status, or None."""
    tasks = [task for play in load("playbooks/verify.yml") for task in play.get("tasks", [])]
    (task,) = (task for task in tasks if task["name"] == "Require that the job trained on the cards")
    own = site(gaudi_1=status)
    own["_verify_job"] = own["hostvars"]["gaudi_1"]["_verify_job"]
    own["ansible_facts"] = {"gaudi": {"card_count": cards}}
    own["trainer_job_name"] = "demo"
    (play,) = (play for play in load("playbooks/verify.yml") if task in play.get("tasks", []))
    (leaving,) = (each for each in play["tasks"] if each["name"] == "Leave out nodes on whose cards the job trained")
    variables = {**own, **play["vars"], **leaving["vars"], **chosen}
    if evaluate(leaving["vars"]["_verify_holds"], **variables):
        return None
    return str(evaluate(task["ansible.builtin.fail"]["msg"], **variables))


ON_CPU = {**FINISHED, "device": "cpu", "hardware_name": None}


def test_a_job_that_left_the_cards_idle_is_refused() -> None:
    assert refused(ON_CPU) == (
        "Job demo trained on cpu, but gaudi_1 has 8 Gaudi cards: look into its log (journalctl -u gaudi-train-demo) "
        "and train under another trainer_job_name, or set device in trainer_config to cpu if processors are meant."
    )


@pytest.mark.parametrize("status", [FINISHED, SPARE, None, {**FINISHED, "device": "auto", "state": "failed"}])
def test_a_job_on_the_cards_and_one_that_never_trained_are_not_refused(status: dict[str, Any] | None) -> None:
    assert refused(status) is None


@pytest.mark.parametrize("device", ["cpu", "auto"])
def test_another_device_that_was_asked_for_is_not_refused(device: str) -> None:
    assert refused(ON_CPU, trainer_config={"device": device}) is None


def test_a_job_of_a_list_is_refused_by_its_own_configuration() -> None:
    chosen: dict[str, Any] = {"trainer_job_name": "", "trainer_config": {"device": "cpu"}}
    assert refused(ON_CPU, **chosen, trainer_jobs=[{"name": "demo"}, {"name": "other", "config": {}}]) is None
    assert refused(ON_CPU, **chosen, trainer_jobs=[{"name": "demo", "config": {"device": "cpu"}}]) is None
    for config in ({}, {"device": "hpu"}):
        assert refused(ON_CPU, **chosen, trainer_jobs=[{"name": "demo", "config": config}]) is not None


def test_nodes_without_cards_or_whose_cards_do_not_count_are_not_refused() -> None:
    assert refused(ON_CPU, cards=0) is None
    assert refused(ON_CPU, trainer_cards=None) is None
    assert refused(ON_CPU, cards=0, trainer_cards=8) is not None
