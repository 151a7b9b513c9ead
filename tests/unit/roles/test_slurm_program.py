"""The program of role slurm brings all that it imports, and ends no job because Slurm was busy."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._plan import shipped, slurm

from .programs import ROOT, sources_of


def test_every_import_of_the_program_is_brought_along() -> None:
    needed = set(sources_of(ROOT / "roles/slurm/files/gaudi_slurm.py"))
    assert set(slurm.SOURCES) <= needed, "a file that nothing imports"
    assert needed <= {*shipped.HEALTH_SOURCES, *slurm.SOURCES}


#: A controller that does not answer so often to a requeue, and then as it says.
SCONTROL = """#!/bin/sh
echo "scontrol $*" >>"$LOG"
[ "$1" = requeue ] || exit 0
if [ "$(grep -c requeue "$LOG")" -le "$SILENT" ]; then
  echo "Unable to contact slurm controller (connect failure)" >&2
  exit 1
fi
[ -z "$SAYS" ] || { echo "$SAYS" >&2; exit 1; }
"""


@pytest.mark.parametrize(
    ("silent", "says", "calls"),
    [
        (0, "", ["scontrol requeue 7"]),
        (2, "", ["scontrol requeue 7"] * 3),
        (0, "Only batch jobs are accepted or processed for job 7", ["scontrol requeue 7", "scancel 7"]),
        (1, "Requested operation is presently disabled for job 7", ["scontrol requeue 7"] * 2 + ["scancel 7"]),
        (99, "", ["scontrol requeue 7"] * 5),
    ],
)
def test_a_job_is_sent_back_when_the_controller_answers_again_and_ended_only_where_it_cannot_wait(
    tmp_path: Path, silent: int, says: str, calls: list[str]
) -> None:
    # Two seconds of the program are none here.
    quick = {
        "time.sleep(2)": "tries.append(1)",
        "deadline = time.monotonic() + AGAIN": "tries = []",
        "time.monotonic() >= deadline": "len(tries) == 4",
    }
    path = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "SILENT": str(silent), "SAYS": says}
    found = [call for call in prolog_of_a_fenced_node(tmp_path, quick, path) if "update" not in call]
    assert found == calls


@pytest.mark.skipif(shutil.which("scontrol") is not None, reason="this machine has a Slurm, which would be found first")
def test_a_slurm_of_the_sites_own_is_found_without_a_path(tmp_path: Path) -> None:
    """slurmd calls its programs with no PATH."""
    found = prolog_of_a_fenced_node(tmp_path, {"/opt/slurm/bin": str(tmp_path)}, {"SILENT": "0", "SAYS": ""})
    assert found[0].startswith("scontrol update NodeName=n1 State=DRAIN Reason=gaudi3.scale: accel1 is gone")
    assert found[-1] == "scontrol requeue 7"


def prolog_of_a_fenced_node(folder: Path, changes: dict[str, str], environment: dict[str, str]) -> list[str]:
    """The calls of Slurm's commands by the program with these changes."""
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "plugins/module_utils", folder / "engine", ignore=ignored)
    text = (ROOT / "roles/slurm/files/gaudi_slurm.py").read_text()
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    (folder / "gaudi_slurm.py").write_text(text)
    for name, body in (("scontrol", SCONTROL), ("scancel", '#!/bin/sh\necho "scancel $*" >>"$LOG"\n')):
        (folder / name).write_text(body)
        (folder / name).chmod(0o755)
    (folder / "fence.json").write_text(json.dumps({"reason": "accel1 is gone"}))
    known = {"LOG": str(folder / "log"), "SLURM_JOB_ID": "7", "SLURMD_NODENAME": "n1"}
    done = subprocess.run(
        [sys.executable, "-s", folder / "gaudi_slurm.py", "prolog", "--fence", folder], env={**known, **environment},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert (folder / "log").exists(), done.stderr
    return (folder / "log").read_text().splitlines()
