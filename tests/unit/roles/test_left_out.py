"""When a site's run leaves a node out of its job: only where that is finished, and nothing was changed since."""

from __future__ import annotations

from typing import Any

import pytest

from .decided import decided

FINISHED = {"changed": False, "pending": False, "job": {"state": "finished"}}


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
        (FINISHED, {"_trainer_node": {"driver": "1.22.0", "interface": "eth0"}}, False),
        (FINISHED, {"trainer_jobs": [{"name": "one"}]}, False),
        (FINISHED, {"trainer_state": "stopped"}, False),
    ],
)
def test_job(answer: Any, more: dict[str, Any], holds: bool) -> None:
    site = {
        "trainer_job_name": "demo",
        "trainer_head": "gaudi-1",
        "trainer_nodes": ["gaudi-1", "gaudi-2"],
        "trainer_cards": 8,
        "ansible_play_hosts": ["gaudi-1", "gaudi-2"],
        "hostvars": {"gaudi-1": {} if answer is None else {"_trainer_answer": answer}},
        "_gaudi_nodes_known": True,
        "_trainer_node": {"driver": "1.23.0"},
    }
    assert decided("job_is_over", **{**site, **more}) is holds
