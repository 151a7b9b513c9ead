"""What checkov says of the modules: nothing that is not explained where it stands."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from .conftest import ROOT, TREE

#: In an environment of its own (make terraform-test makes it): it pins libraries that the tests have otherwise.
OWN = ROOT / ".cache" / "checkov" / "bin" / "checkov"


def scanned(folder: Path) -> subprocess.CompletedProcess[str]:
    """Run checkov over a folder, without a word to the network."""
    found = str(OWN) if OWN.exists() else shutil.which("checkov")
    if found is None:
        pytest.skip(
            "checkov is neither in .cache/checkov nor on PATH: this was NOT checked (make .cache/checkov/ready)"
        )
    command = [found, "-d", str(folder), "--framework", "terraform", "--compact", "--quiet", "--skip-download"]
    clean = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    return subprocess.run(command, capture_output=True, text=True, timeout=240, env=clean, check=False)


def test_no_finding_is_left_unexplained() -> None:
    done = scanned(TREE / "modules")
    assert done.returncode == 0, done.stdout[-4000:]
    passed, failed, skipped = map(int, re.findall(r"(?:Passed|Failed|Skipped) checks: (\d+)", done.stdout))
    assert failed == 0
    assert passed > 150
    written = sum(text.count("#checkov:skip=") for text in (path.read_text() for path in TREE.rglob("*.tf")))
    assert skipped <= written + 6, "one written skip may hold for several machines, not for many"


def test_every_skip_has_a_reason() -> None:
    skips = [
        (path.name, line.strip())
        for path in TREE.rglob("*.tf")
        for line in path.read_text().splitlines()
        if "checkov:skip" in line
    ]
    assert skips
    for name, line in skips:
        assert re.fullmatch(r"#checkov:skip=CKV2?_[A-Z]+_\d+:[A-Za-z].{15,}", line), f"{name}: {line}"


def test_an_open_port_is_seen(tmp_path: Path) -> None:
    shutil.copytree(TREE / "modules" / "aws", tmp_path / "aws")
    rules = tmp_path / "aws" / "security.tf"
    rules.write_text(
        rules.read_text()
        + """
resource "aws_security_group_rule" "open" {
  type              = "ingress"
  security_group_id = aws_security_group.nodes.id
  cidr_blocks       = ["0.0.0.0/0"]
  protocol          = "tcp"
  from_port         = 22
  to_port           = 22
  description       = "open"
}
"""
    )
    done = scanned(tmp_path)
    assert done.returncode == 1
    assert "CKV_AWS_24" in done.stdout
