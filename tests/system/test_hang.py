"""A job that hangs on booted nodes: launcher, module, metric of the node and alert have one sentence."""

from __future__ import annotations

import base64
import json
import ssl
import urllib.parse
import urllib.request
from typing import Any

from .conftest import ROOT, SMALL, Site, reached, run, wait_for

#: Of half a second, of which a few are made.
STEPS = 240


def prometheus(site: Site, query: str) -> list[dict[str, Any]]:
    """The labels of the series that the cluster's Prometheus has for a query."""
    folder = ROOT / ".cache/simulator/clusters" / site.name
    inventory = json.loads(run("inventories/simulated/nodes", "--list", given=site.environment()).stdout)
    address = inventory["_meta"]["hostvars"]["monitor-1"]["ansible_host"]
    password = (folder / "secrets/prometheus_password").read_text().strip()
    request = urllib.request.Request(
        f"https://{address}:9090/api/v1/query?{urllib.parse.urlencode({'query': query})}",
        headers={"Authorization": "Basic " + base64.b64encode(f"prometheus:{password}".encode()).decode()},
    )
    trusted = ssl.create_default_context(cafile=str(folder / "secrets/ca.crt"))
    with urllib.request.urlopen(request, context=trusted, timeout=10) as answer:
        return [series["metric"] for series in json.load(answer)["data"]["result"]]


def test_the_stopped_process_is_named_by_all_who_tell_of_it(trained: Site) -> None:
    timer = trained.play(playbook="playbooks/health_timer.yml")
    assert timer.returncode == 0, timer.messages()
    config = {
        "model": SMALL,
        "train": {"mode": "eager", "max_steps": STEPS, "log_every": 5, "threads": 1, "collective_timeout": 10},
    }
    job = {"trainer_state": "started", "trainer_job_name": "hung", "trainer_config": config}
    started = trained.play(
        "--tags", "train", "-e", json.dumps({**job, "trainer_processes_per_node": 1, **trained.pace(0.5)})
    )
    assert started.returncode == 0, started.messages()
    reached(trained, "hung", lambda status: (status.get("step") or 0) >= 5, "five steps")
    assert trained.ssh("gaudi-2", "pkill -STOP -x gaudi3-train").returncode == 0

    status = reached(trained, "hung", lambda found: bool(found.get("hang")), "the sentence of the hang", 120)
    hang = status["hang"]
    assert (hang["kind"], hang["certain"], hang["nodes"]) == ("stopped", True, ["gaudi-2"])
    sentence = hang["sentence"]
    assert sentence.startswith("Rank 1 on gaudi-2 did not enter ") and sentence in status["error"], status

    # The other launcher ends its own part of the job, and says the same.
    wait_for(
        lambda: (trained.status("gaudi-2", "hung").get("hang") or {}).get("sentence") == sentence,
        "the sentence on the node that it names",
    )
    question = ("gaudi-2", "-o", "-m", "gaudi3.scale.gaudi_train_info", "-a", "name=hung")
    assert sentence in run("ansible", *question, given=trained.environment()).stdout

    def alerted() -> bool:
        firing = prometheus(trained, 'ALERTS{alertname="TrainingHung", alertstate="firing"}')
        return [(one["name"], one["kind"], one["sentence"]) for one in firing] == [
            ("gaudi-train-hung.service", "stopped", sentence)
        ]

    wait_for(alerted, "the alert with the sentence", 120)
    wait_for(lambda: trained.ssh("gaudi-2", "pgrep -x gaudi3-train").returncode == 1, "the stopped process to be gone")
    removed = trained.play("--tags", "train", "-e", json.dumps({"trainer_state": "absent", "trainer_job_name": "hung"}))
    assert removed.returncode == 0, removed.messages()
    # The tests after this one look at a history of their own.
    role = "name=gaudi3.scale.node_health tasks_from=remove"
    timer_gone = run("ansible", "gaudi", "-m", "ansible.builtin.include_role", "-a", role, given=trained.environment())
    assert timer_gone.returncode == 0, timer_gone.stdout
    forget = "systemctl stop gaudi-node-health.service; rm -rf /var/lib/gaudi3-scale/health"
    for node in ("gaudi-1", "gaudi-2"):
        assert trained.ssh(node, forget).returncode == 0
