"""The units of logs, as systemd itself reads them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._logs import units

TEXTS = {
    "gaudi-logs-collector.service": units.collector("/usr/local/lib/gaudi-logs", "10.0.0.5", 19532),
    "gaudi-logs-retention.service": units.retention("/usr/local/lib/gaudi-logs", 2592000, 20 * 1024**3),
    "gaudi-logs-retention.timer": units.retention_timer(),
    "gaudi-logs-upload.service": units.upload("https://[fd00::5]:19532"),
    "gaudi-logs-vendor.service": units.vendor("/usr/local/lib/gaudi-logs", "/var/log/habana_logs", "/jobs"),
}


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd-analyze is not on this machine")
@pytest.mark.parametrize("name", TEXTS)
def test_systemd_understands_every_line(name: str, tmp_path: Path) -> None:
    for each, text in TEXTS.items():
        (tmp_path / each).write_text(text)
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(tmp_path / name)], capture_output=True, text=True, check=False
    )
    said = [line for line in done.stderr.splitlines() if name in line and "is not executable" not in line]
    assert said == []


def test_both_sides_show_certificates_that_only_their_units_read() -> None:
    for option, file in (("key", "key"), ("cert", "certificate"), ("trust", "authority")):
        assert f"--{option}=${{CREDENTIALS_DIRECTORY}}/{file}" in TEXTS["gaudi-logs-upload.service"]
        for name in ("gaudi-logs-collector.service", "gaudi-logs-upload.service"):
            assert f"LoadCredential={file}:/etc/gaudi3-scale/logs/" in TEXTS[name]


def test_the_journal_outlives_a_boot() -> None:
    assert units.kept_journal("").splitlines()[1:] == ["[Journal]", "Storage=persistent"]
    assert "SystemMaxUse=4G" in units.kept_journal("4G")
