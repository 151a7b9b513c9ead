"""When a site's run leaves a node out of its job: only where that is finished, and nothing was changed since."""

from __future__ import annotations

from typing import Any

import pytest

from ..playbooks.jinja import evaluate, load

FINISHED = {"changed": False, "pending": False, "job": {"state": "finished"}}


def unchanged(role: str, name: str, **seen: Any) -> bool:
    variables = {**load(f"roles/{role}/defaults/main.yml"), **load(f"roles/{role}/vars/main.yml")}
    own = {"inventory_hostname": "gaudi-1", "ansible_check_mode": False, "ansible_facts": {"os_family": "Debian"}}
    return bool(evaluate(variables[name], **{**variables, **own, **seen}))


@pytest.mark.parametrize(
    ("answer", "more", "holds"),
    [
        (FINISHED, {}, True),
        (None, {}, False),
        ({**FINISHED, "pending": True}, {}, False),
        ({**FINISHED, "pending": "no"}, {}, False),
        ({"changed": False, "job": {"state": "finished"}}, {}, False),
        ({**FINISHED, "job": {"state": "stopped"}}, {}, False),
        ({**FINISHED, "job": {"state": "running"}}, {}, False),
        ({"skipped": True, "changed": False}, {}, False),
        # The account was made in this run, or the driver is another than PyTorch's.
        (FINISHED, {"_trainer_account": {"changed": True}}, False),
        (FINISHED, {"_trainer_driver_problems": ["another driver"]}, False),
        (FINISHED, {"trainer_jobs": [{"name": "one"}]}, False),
        (FINISHED, {"trainer_state": "stopped"}, False),
    ],
)
def test_job(answer: Any, more: dict[str, Any], holds: bool) -> None:
    site = {
        "trainer_job_name": "demo",
        "trainer_head": "gaudi-1",
        "trainer_nodes": ["gaudi-1", "gaudi-2"],
        "ansible_play_hosts": ["gaudi-1", "gaudi-2"],
        "hostvars": {"gaudi-1": {} if answer is None else {"_trainer_answer": answer}},
        "_trainer_known": True,
        "_trainer_node": {},
        "_trainer_driver_problems": [],
    }
    assert unchanged("trainer", "_trainer_finished", **{**site, **more}) is holds
