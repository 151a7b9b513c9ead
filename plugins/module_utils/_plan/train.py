# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Train: what a job needs of its nodes, and what keeps it from running on them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from .._host.address import cluster_address
from .._jobs import problems
from .._jobs.answers import Offer
from .._jobs.card_choice import job_modules
from . import job as of_role
from . import pytorch, slurm_job
from .given import part, truth
from .model import Answers, Phase, Question, Values, mapping
from .run import Run

NODE = "Look at what the node offers the job"
USER = "Create the user of the jobs"
WHEEL = "Install the trainer"


def _asks(run: Run, values: Values) -> bool:
    return run.has_jobs and of_role.runs(values)


def _installs(run: Run, values: Values) -> bool:
    return run.has("train", "trainer", "preflight") and of_role.installs(values)


def _plainly(values: Values) -> bool:
    """Whether nothing is done but to make the user and to install the wheel."""
    return (
        bool(part(values("_trainer_built"), "path"))
        and not of_role.contained(values)
        and not truth(values, "trainer_tls")
        and values("trainer_gid") is None
        and values("trainer_dependencies") == "preinstalled"
    )


def _installed(values: Values, answers: Answers) -> bool:
    """The user and the wheel are there, and the PyTorch below them stays."""
    return (
        mapping(answers, "account").get("changed") is False
        and mapping(answers, "trainer").get("changed") is False
        and pytorch.PHASE.unchanged(values, answers)
    )


INSTALL = Phase(
    "trainer",
    [],
    _installs,
    _installed,
    details=[
        Question("account", "trainer", USER, applies=_plainly, tolerated=True),
        Question("trainer", "trainer", WHEEL, applies=_plainly, tolerated=True),
    ],
)
# What the phase itself asks of the head decides.
PHASE = Phase("train", [Question("node", "trainer", NODE)], _asks, lambda _values, _answers: False)


def asked(values: Values, run: Run) -> problems.Asked:
    """What the variables of a node ask of the job."""
    contained, slurm = of_role.contained(values), of_role.on_slurm(values)
    numbers = {name: values(f"trainer_{name}") for name in problems.NUMBERS}
    return problems.Asked.of(
        {
            **numbers,
            # Slurm carries none of these, which is a sentence of its own.
            **({"spares": 0, "min_nodes": None} if slurm else {}),
            "environment_files": () if slurm else values("trainer_environment_files"),
            "head_address": "" if slurm else _own_address(values),
            "root": values("trainer_root"),
            "user": values("trainer_user"),
            "name": values("trainer_job_name"),
            "nodes": values("trainer_nodes"),
            "head": values("trainer_head"),
            "cards": values("trainer_cards"),
            "processes": values("trainer_processes_per_node"),
            "config": values("trainer_config"),
            "node_config": values("trainer_node_config"),
            "command": values("trainer_command"),
            "chdir": values("trainer_chdir"),
            "script": of_role.script(values),
            "dataset": values("trainer_dataset"),
            "environment": values("trainer_environment"),
            "digest": values("trainer_container_digest") if contained else "",
            "image_problem": of_role.image(values).problem if contained else "",
            "run_tags": sorted(run.tags),
            "skip_tags": sorted(run.skipped),
        }
    )


def _own_address(values: Values) -> str:
    """Where the others meet this node; empty where it is not the head."""
    if values("inventory_hostname") != values("trainer_head"):
        return ""
    given = {name: values(name) for name in ("gaudi_cluster_address", "ansible_host")}
    return str(cluster_address(str(values("trainer_head")), given))


def asked_of_node(values: Values, run: Run) -> problems.Asked:
    """What they ask of the node itself, which reads the job's configuration with its own part."""
    return replace(
        asked(values, run),
        config=of_role.whole_config(values),
        jobs_dir=values("trainer_jobs_dir"),
        address=values("trainer_address"),
    )


def problem(host: str, values: Values, run: Run, answers: Answers) -> str:
    """Why a node cannot run the job, whatever the others have; the first of the reasons, empty where there is none."""
    job = asked(values, run)
    if job.nodes and host not in job.nodes:
        return ""
    node = mapping(answers, "node")
    found = problems.job_problems(job, host, node)
    if not found:
        found = problems.node_problems(asked_of_node(values, run), host, node, {})
    return next(iter(found or slurm_job.problems(values)), "")


def shares(values: Values) -> dict[str, Any]:
    """What is compared with the other nodes of the job."""
    return {
        "nodes": list(values("trainer_nodes")),
        "head": values("trainer_head"),
        "user": values("trainer_user"),
        "jobs_dir": values("trainer_jobs_dir"),
        "partial": truth(values, "trainer_allow_partial_nodes"),
        # Of Slurm and of a list more is asked.
        "settled": not of_role.on_slurm(values) and not values("trainer_jobs"),
    }


def offer(answers: Answers) -> Mapping[str, Any]:
    """What a node brings to the job; empty where that is not known."""
    found = mapping(answers, "node").get("offer")
    return found if isinstance(found, Mapping) else {}


def choose(job: Mapping[str, Any], answers: Mapping[str, Answers]) -> dict[str, Any]:
    """The cards of all nodes of the job, and why they cannot run it together."""
    return job_modules({node: offer(answers.get(node, {})) for node in job["nodes"]}, job["partial"])


def problem_with_others(host: str, job: Mapping[str, Any], answers: Mapping[str, Answers], modules_problem: str) -> str:
    """Why a node cannot run the job with the others. All are compared with the head, or the first that was asked."""
    if job["nodes"] and host not in job["nodes"]:
        return ""
    if modules_problem:
        return modules_problem
    own = Offer.of(offer(answers[host]))
    asker = job["head"] if job["head"] in answers else next((each for each in job["nodes"] if each in answers), "")
    compared = problems.Asked.of({"user": job["user"], "jobs_dir": job["jobs_dir"], "asker": asker})
    theirs = Offer.of(offer(answers.get(asker, {})))
    found = [] if own is None else problems.shared_problems(compared, host, own, theirs)
    return found[0] if found else ""
