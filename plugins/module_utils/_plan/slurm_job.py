# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""A job of role trainer that Slurm carries: what it cannot have there."""

from __future__ import annotations

from .._jobs.rules import number
from .._slurm import described
from .given import entries, truth
from .job import contained, node_config, on_slurm
from .model import Values


def problems(values: Values) -> list[str]:
    """What Slurm does not carry of the job, each in one sentence."""
    if not on_slurm(values):
        return []
    given = {name: values(f"trainer_{name}") for name in ("min_nodes", "environment_files")}
    # The command line gives texts.
    given |= {"spares": number(values("trainer_spares")), "start_at_boot": truth(values, "trainer_start_at_boot")}
    if contained(values):
        given["container"] = values("trainer_runtime")
    # The address at which a node serves metrics is none where Slurm chooses the nodes.
    if node_config(values) != {"metrics": {"address": values("trainer_address")}}:
        given["node_config"] = node_config(values)
    names = {**{name: f"trainer_{name}" for name in given}, "container": "trainer_runtime=container"}
    found = list(described.not_carried(given, names))
    if not entries(values("trainer_slurm")):
        found.append("trainer_launcher is slurm, and trainer_slurm is empty: set time and cpu in it.")
    found.append(described.folder_problem(str(values("trainer_jobs_dir")), mounted=False, name="trainer_jobs_dir"))
    return [sentence for sentence in found if sentence]
