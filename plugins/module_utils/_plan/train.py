# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Train: what a job needs of its nodes, and what keeps it from running on them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ansible.module_utils.parsing.convert_bool import boolean

from .._jobs import problems
from .._jobs.answers import Offer
from .._jobs.card_choice import job_modules
from . import pytorch
from .model import Answers, Phase, Question, Values, mapping
from .run import Run

NODE = "Look at what the node offers the job"
USER = "Create the user of the jobs"
WHEEL = "Install the trainer"


def _asks(_run: Run, values: Values) -> bool:
    return bool(values("_trainer_runs"))


def _installs(run: Run, values: Values) -> bool:
    return run.has("train", "trainer", "preflight") and bool(values("_trainer_installs"))


def _plainly(values: Values) -> bool:
    """Whether nothing is done but to make the user and to install the wheel."""
    return (
        bool(values("_trainer_built"))
        and not values("_trainer_contained")
        and not boolean(values("trainer_tls"), strict=False)
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
    contained = bool(values("_trainer_contained"))
    return problems.Asked.of(
        {
            "name": values("trainer_job_name"),
            "nodes": values("trainer_nodes"),
            "head": values("trainer_head"),
            "cards": values("trainer_cards"),
            "processes": values("trainer_processes_per_node"),
            "config": values("trainer_config"),
            "node_config": values("trainer_node_config"),
            "command": values("trainer_command"),
            "chdir": values("trainer_chdir"),
            "script": values("_trainer_script"),
            "dataset": values("trainer_dataset"),
            "environment": values("trainer_environment"),
            "digest": values("trainer_container_digest") if contained else "",
            "image_problem": values("_trainer_image")["problem"] if contained else "",
            "run_tags": sorted(run.tags),
            "skip_tags": sorted(run.skipped),
        }
    )


def problem(host: str, values: Values, run: Run, answers: Answers) -> str:
    """Why a node cannot run the job, whatever the others have; the first of the reasons, empty where there is none."""
    job = asked(values, run)
    if job.nodes and host not in job.nodes:
        return ""
    node = mapping(answers, "node")
    found = problems.job_problems(job, host, node)
    if not found:
        there = replace(
            job,
            config=values("_trainer_whole_config"),
            user=values("trainer_user"),
            jobs_dir=values("trainer_jobs_dir"),
            address=values("trainer_address"),
        )
        found = problems.node_problems(there, host, node, {})
    return found[0] if found else ""


def shares(values: Values) -> dict[str, Any]:
    """What is compared with the other nodes of the job."""
    return {
        "nodes": list(values("trainer_nodes")),
        "head": values("trainer_head"),
        "user": values("trainer_user"),
        "jobs_dir": values("trainer_jobs_dir"),
        "partial": boolean(values("trainer_allow_partial_nodes"), strict=False),
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
