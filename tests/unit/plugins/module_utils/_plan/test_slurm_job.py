"""What Slurm does not carry of a job, said before anything changes and by the role."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._plan import job_progress, slurm_job, train
from ansible_collections.gaudi3.scale.plugins.module_utils._plan.run import Run

from .test_job_progress import NODE, SLURM, values


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"trainer_spares": 1}, "trainer_spares is set, and launcher slurm does not carry it: Slurm gives a job"),
        ({"trainer_min_nodes": 1}, "trainer_min_nodes is set, and launcher slurm does not carry it"),
        ({"trainer_start_at_boot": True}, "trainer_start_at_boot is set, and launcher slurm does not carry it"),
        ({"trainer_environment_files": ["/etc/x"]}, "trainer_environment_files is set, and launcher slurm does not"),
        ({"trainer_node_config": {"seed": 1}}, "trainer_node_config is set, and launcher slurm does not carry it"),
        ({"trainer_tls": True}, "trainer_node_config is set, and launcher slurm does not carry it"),
        (
            {"trainer_runtime": "container", "trainer_container_image": "vault.example/torch:1"},
            "trainer_runtime=container is set, and launcher slurm does not carry it",
        ),
        ({"trainer_slurm": {}}, "trainer_launcher is slurm, and trainer_slurm is empty: set time and cpu in it."),
        ({"trainer_jobs_dir": "/var/lib/gaudi3-scale/jobs"}, "trainer_jobs_dir is /var/lib/gaudi3-scale/jobs, which"),
    ],
)
def test_what_slurm_does_not_carry_is_said_by_its_variable(given: dict[str, Any], said: str) -> None:
    asked = values(**{**SLURM, **given})
    (found,) = slurm_job.problems(asked)
    assert found.startswith(said)
    # Before anything changes, and by the role on a node that is as it is to be.
    answers = {"node": NODE}
    assert train.problem("b", asked, Run.of([], []), answers) == job_progress.refusal(asked) == found
    assert train.problem("c", asked, Run.of([], []), answers) == ""


def test_what_says_nothing_on_the_command_line_is_not_set() -> None:
    assert slurm_job.problems(values(**SLURM, trainer_spares="0", trainer_start_at_boot="false")) == []
    assert slurm_job.problems(values(trainer_spares=1)) == [], "units carry it"
