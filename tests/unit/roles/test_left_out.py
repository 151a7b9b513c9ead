"""When a site's run leaves a node out of a phase: only where the preflight saw that all is as it is to be."""

from __future__ import annotations

from typing import Any

import pytest

from ..playbooks.jinja import evaluate, load

SEEN = {"done": [], "diff": []}
FINISHED = {"changed": False, "pending": False, "job": {"state": "finished"}}


def unchanged(role: str, name: str, **seen: Any) -> bool:
    variables = {**load(f"roles/{role}/defaults/main.yml"), **load(f"roles/{role}/vars/main.yml")}
    own = {"inventory_hostname": "gaudi-1", "ansible_check_mode": False, "ansible_facts": {"os_family": "Debian"}}
    return bool(evaluate(variables[name], **{**variables, **own, **seen}))


@pytest.mark.parametrize(
    ("preflight", "answer", "holds"),
    [
        (SEEN, {"state": "started"}, True),
        (None, {"state": "started"}, False),
        ({"skipped": True}, {"skipped": True}, False),
        ({**SEEN, "done": ["start"]}, {"state": "started"}, False),
        ({**SEEN, "diff": [{"after": "other arguments"}]}, {"state": "started"}, False),
        ({"failed": True, "msg": "systemctl is missing"}, {"state": "started"}, False),
        (SEEN, {"failed": True, "msg": "Timeout when waiting for 10.0.0.1:9100"}, False),
        (SEEN, None, False),
    ],
)
def test_node_exporter(preflight: Any, answer: Any, holds: bool) -> None:
    seen = {"_node_exporter_preflight": preflight, "_node_exporter_answer": answer}
    given = {name: value for name, value in seen.items() if value is not None}
    assert unchanged("node_exporter", "_node_exporter_unchanged", **given) is holds


@pytest.mark.parametrize(
    ("preflight", "status", "files", "holds"),
    [
        (SEEN, 200, ["/usr/bin/hl-smi"], True),
        (SEEN, 503, ["/usr/bin/hl-smi"], False),
        (SEEN, -1, ["/usr/bin/hl-smi"], False),
        (SEEN, 200, [], False),
        ({**SEEN, "done": ["daemon-reload", "restart"]}, 200, ["/usr/bin/hl-smi"], False),
        ({"failed": True}, 200, ["/usr/bin/hl-smi"], False),
        (None, None, None, False),
    ],
)
def test_hpu_exporter(preflight: Any, status: int | None, files: list[str] | None, holds: bool) -> None:
    given: dict[str, Any] = {}
    if preflight is not None:
        given = {
            "_hpu_exporter_preflight": preflight,
            "_hpu_exporter_answer": {"status": status},
            "_hpu_exporter_devices": {"files": [{"path": path} for path in files or []]},
        }
    assert unchanged("hpu_exporter", "_hpu_exporter_unchanged", **given) is holds


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
