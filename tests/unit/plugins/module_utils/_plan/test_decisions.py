"""What roles and playbooks ask for is decided somewhere, and everything that is decided is asked for."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from ansible.errors import AnsibleError

from ansible_collections.gaudi3.scale.plugins.module_utils._plan import job, job_progress, shipped
from ansible_collections.gaudi3.scale.plugins.module_utils._plan.decisions import DECISIONS
from ansible_collections.gaudi3.scale.plugins.module_utils._refusal import Refusal
from ansible_collections.gaudi3.scale.plugins.plugin_utils.role_values import RoleValues
from ansible_collections.gaudi3.scale.plugins.plugin_utils.roles import trusted

ROOT = Path(__file__).resolve().parents[5]
ASKED = re.compile(r"lookup\('gaudi3\.scale\.plan', '(\w+)'\)")


def test_names_are_those_that_are_asked_for() -> None:
    pages = [path for folder in ("playbooks", "roles") for path in (ROOT / folder).rglob("*.yml")]
    found = {name for path in pages for name in ASKED.findall(path.read_text(encoding="utf-8"))}
    assert found == DECISIONS.keys()


def values(**given: str) -> RoleValues:
    return RoleValues(trusted(given), lambda value, _names: value)


def test_another_name_is_refused() -> None:
    with pytest.raises(AnsibleError, match="'fabrics' is nothing that is decided: give one of backup, data, fabric,"):
        values().decide("fabrics")


def test_what_follows_from_itself_is_refused() -> None:
    here = "{{ lookup('gaudi3.scale.plan', 'fabric') }}"
    round_about = values(fabric_kind="{{ _fabric_here }}", _fabric_here=here, ansible_facts={"kernel": "6.8.0"})
    with pytest.raises(AnsibleError, match="'fabric' follows from itself"):
        round_about.decide("fabric")


@pytest.mark.parametrize("role", ["tuning", "fabric", "synapseai"])
def test_nothing_is_decided_of_a_host_whose_facts_nobody_gathered(role: str) -> None:
    """It would be an old and unknown system, for which other settings are right."""
    with pytest.raises(Refusal, match="The facts of gaudi-1 were not gathered"):
        values(inventory_hostname="gaudi-1", ansible_facts={}).decide(role)


def test_no_job_is_decided_of_a_node_whose_cards_nobody_knows() -> None:
    """It would be another one, without the cards."""
    given: dict[str, Any] = {"inventory_hostname": "gaudi-1", "trainer_state": "finished", "trainer_job_name": "demo"}
    for state, cards in (("stopped", None), ("finished", 8)):
        job.decide({**given, "trainer_state": state, "trainer_cards": cards}.get)
    with pytest.raises(Refusal, match="The facts of gaudi-1 were not gathered"):
        job.decide(given.get)
    facts: dict[str, Any] = {"kernel": "6.8.0"}
    assert job.decide({**given, "ansible_facts": facts}.get)["runs"], "the task that counts them asks this first"
    several = {**given, "trainer_job_name": "", "trainer_jobs": [{"name": "one"}]}
    assert job.decide({**several, "ansible_facts": facts}.get)["counts"]
    with pytest.raises(Refusal, match="The facts of gaudi-1 were not gathered"):
        job.decide(several.get)
    for name in ("systemd", "slurm"):
        here = {**given, "trainer_launcher": name, "ansible_facts": facts}
        with pytest.raises(Refusal, match="The cards of gaudi-1 were not counted"):
            job_progress.options(here.get)
        facts_with_cards = {**facts, "gaudi_pci": {"card_count": 8}}
        options = job_progress.options({**here, "ansible_facts": facts_with_cards, "trainer_cards": 8}.get)
        assert options["config"]["device"] == "hpu"


def test_the_requirements_are_those_of_the_role() -> None:
    lines = shipped.requirements({}.get)
    assert lines == (ROOT / "roles/pytorch/files/requirements.txt").read_text(encoding="utf-8").splitlines()


def test_extras_bring_what_they_require_once() -> None:
    given: dict[str, list[str]] = {"pytorch_extras": ["wandb", "traces"]}
    lines = shipped.requirements(given.get)
    names = [line.partition("==")[0] for line in lines if not line.startswith("#")]
    assert {"wandb", "opentelemetry-exporter-otlp-proto-http", "lightning"} <= set(names)
    assert len(names) == len(set(names)) and "mlflow-skinny" not in names
    assert all("--hash=sha256:" in line for line in lines if not line.startswith("#"))


def test_the_examination_brings_its_engine_and_restarts_nothing() -> None:
    program, package, *engine = shipped.health_program({"_node_health_folder": "/opt/health"}.get)
    assert (program["path"], package["content"]) == ("/opt/health/gaudi_node_health.py", "")
    (pci,) = (each for each in engine if each["path"] == "/opt/health/engine/_cards/pci.py")
    assert pci["content"] == (ROOT / "plugins/module_utils/_cards/pci.py").read_text(encoding="utf-8")
    assert not any(each["restart"] for each in (program, package, *engine))
