"""That something answers is never taken for that ours does: every service that listens is asked for its own port."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
SERVICES = {
    "node_exporter": "_node_exporter_here.service", "hpu_exporter": "gaudi-hpu-exporter.service",
}  # fmt: skip
#: Tasks that ask an address for an answer, and why that is enough.
ASKED = {
    "hpu_exporter/tasks/verify.yml": "behind gaudi_service, which has waited for the unit's own port",
    "fabric/tasks/preflight-tcp.yml": "the web server of a download, no service of the collection",
    "logs/tasks/send.yml": "whether the way is open: who answers there is known by its certificate when it is sent to",
    "slurm/tasks/accounting.yml": "whether slurmdbd has made its tables: who answers has the cluster's munge key",
    "slurm/tasks/run.yml": "whether the way is open: who answers has the cluster's munge key",
}


def test_every_service_waits_for_its_own_port() -> None:
    for role, unit in SERVICES.items():
        text = "".join(path.read_text() for path in sorted((ROOT / "roles" / role).rglob("*.yml")))
        listens = re.search(rf'listens: "{{{{ _{role}(?:_here[.])?_?listens }}}}"', text)
        assert unit in text and listens, role
        decided = (ROOT / "plugins/module_utils/_plan/exporters.py").read_text()
        assert re.search(rf"""["']?variable["']?: ["']?{role}\b""", text + decided)


def test_every_task_that_asks_for_an_answer_is_known() -> None:
    found = {
        str(path.relative_to(ROOT / "roles"))
        for path in ROOT.glob("roles/*/tasks/*.yml")
        if re.search(r"builtin\.(?:wait_for|uri):", path.read_text())
    }
    assert found == set(ASKED)
