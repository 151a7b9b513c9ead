"""A job of the module as the launcher of Slurm takes it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from ansible_collections.gaudi3.scale.plugins.module_utils._module_bodies import train, train_slurm
from ansible_collections.gaudi3.scale.plugins.module_utils._slurm import described
from gaudi3_scale.slurm.slurm_options import FILE, SlurmOptions

DEFAULTS = {name: each.get("default") for name, each in train.ARGUMENT_SPEC.items()}
GIVEN: dict[str, Any] = {
    **DEFAULTS,
    "name": "demo",
    "nodes": ["a", "b"],
    "config": {"train": {"max_steps": 20}},
    "jobs_dir": "/shared/jobs",
    "slurm": dict.fromkeys(train_slurm.OPTIONS) | {"time": "24:00:00", "cpu": 128},
}
#: Options that change nothing of a job, or say where the task finds it.
OTHER = {
    "state", "launcher", "head_address", "is_head", "address", "interface", "cards", "passports", "secret",
    "secrets_dir", "trace_parent", "ended_on", "purge", "keep_archives", "peers", "poll_interval", "timeout",
    "lines", "unit_dir", "systemctl_executable", "journalctl_executable", "resume_stopped", "slurm",
}  # fmt: skip
CHANGED: dict[str, Any] = {
    "name": "other", "config": {"train": {"max_steps": 21}}, "nodes": ["a"], "rdzv_port": 30000,
    "processes_per_node": 8, "max_restarts": 2, "threads": 4, "environment": {"A": 1}, "user": "me", "venv": "/v",
    "stop_timeout": 300, "trainer_version": "2", "jobs_dir": "/other", "command": ["/srv/x"], "chdir": "/srv",
}  # fmt: skip


def test_every_option_of_a_job_changes_what_is_submitted_or_is_refused_by_its_name() -> None:
    before = described.SlurmSpec.of(GIVEN)
    assert set(GIVEN) == OTHER | set(CHANGED) | set(described.NOT_CARRIED), "an option that nobody thought of"
    for option, value in CHANGED.items():
        changed = {**GIVEN, option: value}
        if option in ("command", "chdir"):
            changed |= {"config": None, "command": ["/srv/x"]}
        after = described.SlurmSpec.of(changed)
        assert after.sha256 != before.sha256, option
        if option not in ("user", "trainer_version"):
            assert (after.cluster, after.job_text) != (before.cluster, before.job_text), option


def test_the_launcher_knows_every_key_that_is_given_to_it() -> None:
    assert set(train_slurm.OPTIONS) < set(SlurmOptions.model_fields)
    slurm = {"time": "24:00:00", "cpu": 128, "partition": "gaudi", "requeue": False, "setup": ["module load x"]}
    given = {
        **GIVEN,
        "slurm": slurm,
        "threads": 4,
        "rdzv_port": 30000,
        "command": ["/srv/x"],
        "chdir": "/srv",
        "config": {},
    }
    options = FILE.checked(json.loads(described.SlurmSpec.of(given).cluster_text))
    assert (options.partition, options.requeue, options.rdzv_port, options.nodes) == ("gaudi", False, 30000, 2)
    known = {*train_slurm.OPTIONS, "name", "nodes", "processes_per_node", "folder", "venv", "max_restarts", "threads",
             "stop_timeout", "environment", "command", "chdir", "rdzv_port"}  # fmt: skip
    assert set(SlurmOptions.model_fields) == known, "a key that the module cannot give"


def test_the_same_training_is_the_same_under_units() -> None:
    spec = described.SlurmSpec.of(GIVEN)
    unit = train.JobSpec.from_params({**GIVEN, "head_address": "10.0.0.1"})
    assert spec.config_sha256 == unit.config_sha256 and spec.sha256 != unit.sha256


def test_variables_of_the_job_precede_those_of_the_vendors_files(tmp_path: Path) -> None:
    file = tmp_path / "runtime.env"
    file.write_text('GC_KERNEL_PATH="/usr/lib/a $b"\nOTHER=1\n')
    line = described.SETUP.replace("/etc/gaudi3-scale/runtime.env", str(file))
    script = f"export OTHER=mine\n{line}\nenv"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    assert {"GC_KERNEL_PATH=/usr/lib/a ", "OTHER=mine"} <= set(done.stdout.splitlines())
    gone = line.replace(str(file), f"{file}.not")
    assert subprocess.run(["bash", "-euc", gone], capture_output=True, check=True).stderr == b""


def test_a_folder_that_each_node_has_for_itself_is_refused_unless_it_is_mounted() -> None:
    assert described.folder_problem("/shared/jobs", mounted=False) == ""
    assert described.folder_problem("/var/lib/gaudi3-scale/jobs/", mounted=True) == ""
    assert described.folder_problem("/var/lib/gaudi3-scale/jobs/", mounted=False).startswith("jobs_dir is /var/lib/")
