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
    assert needed <= {*shipped.health_sources(), *slurm.SOURCES}


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
    program = tmp_path / "gaudi_slurm.py"
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "plugins/module_utils", tmp_path / "engine", ignore=ignored)
    text = (ROOT / "roles/slurm/files/gaudi_slurm.py").read_text()
    # Two seconds of the program are none here.
    assert text.count("time.sleep(2)") == 1 and text.count("time.monotonic() + AGAIN") == 1
    program.write_text(
        text.replace("time.sleep(2)", "tries.append(1)")
        .replace("deadline = time.monotonic() + AGAIN", "tries = []")
        .replace("time.monotonic() >= deadline", "len(tries) == 4")
    )
    for name, body in (("scontrol", SCONTROL), ("scancel", '#!/bin/sh\necho "scancel $*" >>"$LOG"\n')):
        (tmp_path / name).write_text(body)
        (tmp_path / name).chmod(0o755)
    (tmp_path / "fence.json").write_text(json.dumps({"reason": "accel1 is gone"}))
    environment = {
        "PATH": f"{tmp_path}:{os.environ['PATH']}", "LOG": str(tmp_path / "log"), "SILENT": str(silent), "SAYS": says,
        "SLURM_JOB_ID": "7", "SLURMD_NODENAME": "n1",
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-s", program, "prolog", "--fence", tmp_path], env=environment, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = [line for line in (tmp_path / "log").read_text().splitlines() if "update" not in line]
    assert found == calls, done.stderr
