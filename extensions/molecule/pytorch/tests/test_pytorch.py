"""What the role pytorch leaves on a node."""

from __future__ import annotations

import json
from typing import Any

testinfra_hosts = ["ansible://gaudi"]

ROOT = "/opt/gaudi3-scale"
RELEASE = "1.23.0-695"
SAY = "import torch, habana_frameworks.torch, importlib.metadata as has; print(has.version('habana-torch-plugin'))"


def test_anybody_imports_the_plugin_of_the_release(host: Any) -> None:
    said = host.check_output(
        f'cd / && runuser -u nobody -- env HOME=/tmp HABANA_LOGS=/tmp/nobody-logs {ROOT}/torch/bin/python -c "{SAY}"'
    )
    assert said.splitlines()[-1].startswith(RELEASE.replace("-", "."))


def test_the_link_leads_to_the_release(host: Any) -> None:
    assert host.file(f"{ROOT}/torch").linked_to == f"{ROOT}/torch-{RELEASE}"


def test_the_record_names_the_tarball_and_its_digest(host: Any) -> None:
    record = json.loads(host.file(f"{ROOT}/torch-{RELEASE}/gaudi3-scale-pytorch.json").content_string)
    assert record["release"] == RELEASE and len(record["sha256"]) == 64
    assert record["tarball"].startswith("1.23.0/695/pytorch/") and record["tarball"].endswith("_1.23.0_695.tgz")


def test_the_systems_python_has_none(host: Any) -> None:
    assert host.run("/usr/bin/python3 -c 'import torch'").rc == 1
