# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""A job of role trainer between its nodes: what they lack for it, how far it is, and the options of its module."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Optional

from .._jobs import problems
from .._printable import printable
from .._refusal import Refusal
from .._slurm.queue import QUEUED, UNKNOWN
from . import job, slurm_job, train
from .given import entries, facts, host, listed, part, truth
from .model import Values


def seen(values: Values) -> Optional[Mapping[str, Any]]:
    """What this node offers the job, as the role itself has asked or the preflight; None where nobody has."""
    return _seen_of({name: values(name) for name in ("_trainer_node", "_gaudi_plan")})


def _seen_of(variables: Mapping[str, Any]) -> Optional[Mapping[str, Any]]:
    own = variables.get("_trainer_node")
    found = own if own is not None else part(variables.get("_gaudi_plan"), "found", "node")
    return found if isinstance(found, Mapping) else None


def choose(values: Values) -> dict[str, Any]:
    """The cards of all nodes, and what keeps the nodes from running the job together.

    Once for all nodes: each of them reading what all have would take the square of their number.
    """
    nodes = listed(values("trainer_nodes"))
    offers = {node: {"node": part(host(values, node), "_trainer_node")} for node in nodes}
    return train.choose({"nodes": nodes, "partial": truth(values, "trainer_allow_partial_nodes")}, offers)


def lacks(values: Values) -> list[str]:
    """What this node lacks, each in one sentence. All are compared with the one that asks for the job."""
    name = job.asker(values)
    there = host(values, name)
    theirs = part(_seen_of({each: there.get(each) for each in ("_trainer_node", "_gaudi_plan")}), "offer")
    asked = train.asked_of_node(values, job.run_of(values))
    return problems.node_problems(
        problems.with_others(asked, str(part(there, "_trainer_choice", "problem") or ""), name),
        values("inventory_hostname"),
        seen(values) or {},
        entries(theirs),
    )


def driver_problems(values: Values) -> list[str]:
    """Why PyTorch does not work with the driver. Asked when the job starts, as phases before may change the driver."""
    driver, wanted = part(seen(values), "driver") or "", job.torch_release(values)
    if not job.on_cards(values) or values("ansible_check_mode") or not wanted:
        return []
    if driver in ("", wanted.partition("-")[0]):
        return []
    torch = "the container image" if job.contained(values) else "PyTorch"
    return [
        f"{values('inventory_hostname')} has driver {printable(driver)} loaded, but {torch} is of release {wanted}, "
        "and both have to be the same: run the phase drivers, or set synapseai_release to the release of the driver."
    ]


def refusal(values: Values) -> str:
    """The first of what cannot work; empty where nothing is wrong, or no job of this node is to run."""
    name, nodes = values("inventory_hostname"), listed(values("trainer_nodes"))
    if not job.runs(values) or (nodes and name not in nodes):
        return ""
    # The controller builds what the variables of a node say.
    unsafe = values("gaudi_settings_problem")
    if unsafe:
        return str(unsafe)
    found = problems.job_problems(train.asked(values, job.run_of(values)), name, seen(values) or {})
    return next(iter(found or lacks(values) or slurm_job.problems(values)), "")


def refusal_at_start(values: Values) -> str:
    """The first of what the node lacks when the job is about to start."""
    if not job.runs(values):
        return ""
    asked = train.asked(values, job.run_of(values))
    gone = problems.missing_problems(asked, values("inventory_hostname"), seen(values) or {})
    return next(iter(gone + lacks(values) + driver_problems(values)), "")


def again(values: Values) -> bool:
    """Whether the node is looked at again before its job: something may have been changed since."""
    if values("trainer_jobs") or seen(values) is None or part(values("_trainer_account"), "changed"):
        return True
    if not job.runs(values):
        return False
    if values("_trainer_node") is None and values("_gaudi_nodes_known") is not True:
        return True
    return bool(driver_problems(values)) or (values("_gaudi_nodes_known") is not True and bool(lacks(values)))


def asked_by_job(values: Values) -> bool:
    """Whether the job has asked the node in this run, and its user can open all cards."""
    return part(values("_trainer_node"), "closed") in ([], ())


def known(values: Values) -> bool:
    """Whether all nodes of the play are as the preflight found them, which has asked them for the job."""
    nodes = [host(values, name) for name in values("ansible_play_hosts_all")]
    return all(
        part(node, "_gaudi_plan", "found", "node", "offer") is not None
        and ("_pytorch_installed" not in node or part(node, "_pytorch_installed", "skipped") is True)
        for node in nodes
    )


def asked_before(values: Values) -> bool:
    """Whether this run's preflight has asked all nodes all that is asked before the trainer is installed."""
    nodes = listed(values("ansible_play_hosts_all"))
    return known(values) or all(name in listed(part(host(values, name), "_gaudi_site", "asked")) for name in nodes)


def _answer(values: Values, node: str) -> Mapping[str, Any]:
    return entries(host(values, node).get("_trainer_answer"))


def _state(answer: Mapping[str, Any]) -> Any:
    return part(answer, "job", "state")


def _done(values: Values, answer: Mapping[str, Any]) -> bool:
    """Whether nothing is left to do, as the head has it, also for nodes that came to the inventory since.

    The job is finished, or was stopped by somebody who has not said that it goes on.
    """
    left = answer.get("pending", True) is not False or not isinstance(answer.get("job"), Mapping)
    return job.runs(values) and not left and _state(answer) not in ("running", QUEUED, UNKNOWN)


def is_over(values: Values) -> bool:
    """Whether a node needs no more: its job is finished, as the head has said, and nothing was changed since."""
    # Also where the head was left out before: it has been asked.
    answer = _answer(values, values("trainer_head"))
    return _done(values, answer) and _state(answer) == "finished" and not again(values)


def progress(values: Values) -> Mapping[str, Any]:
    """How far the job is, and what is left to do on this node."""
    answer = _answer(values, job.asker(values))
    done = _done(values, answer)
    predicted = bool(values("ansible_check_mode")) and bool(part(values("_trainer_job"), "changed"))
    awaits = values("trainer_state") == "finished" and not done and not predicted
    listed_job = bool(values("trainer_jobs"))
    here = listed(values("ansible_play_batch"))
    return {
        "done": done,
        "finished": done and _state(answer) == "finished",
        "awaits": awaits,
        # Of several jobs all are started before one is waited for.
        "waits": values("trainer_job_name") in listed(values("_trainer_awaited")) if listed_job else awaits,
        "missing": [node for node in listed(values("trainer_nodes")) if node not in here],
    }


def awaited(values: Values) -> list[str]:
    """The jobs of the list that are waited for, this one among them where it is."""
    name = values("trainer_job_name")
    waited = [each for each in listed(values("_trainer_awaited")) if each != name]
    return [*waited, name] if progress(values)["awaits"] else waited


def places(values: Values) -> dict[str, list[Any]]:
    """Under which addresses the other nodes of the job are in the inventory: the first that is given counts."""
    names = [name for name in listed(values("trainer_nodes")) if name != values("trainer_head")]
    hosts = {name: host(values, name) for name in names}
    return {
        name: [each.get("gaudi_cluster_address", ""), each.get("ansible_host", ""), name]
        for name, each in hosts.items()
    }


def modules(values: Values) -> list[int]:
    """The cards that were chosen for all nodes of the job."""
    there, nodes = host(values, job.asker(values)), list(listed(values("trainer_nodes")))
    # The preflight has chosen for each list of nodes, of whichever job it is.
    chosen = listed(part(there, "_gaudi_site", "choices"))
    found = (each for each in chosen if list(listed(part(each, "nodes"))) == nodes)
    choice = there.get("_trainer_choice") or next(found, None)
    return list(part(choice, "modules") or ())


#: Options of gaudi_train that are variables of these names behind trainer_.
SAME = (
    *("nodes", "address", "rdzv_port", "processes_per_node", "max_restarts", "spares", "user", "environment_files"),
    *("stop_timeout", "poll_interval", "timeout", "jobs_dir", "purge", "resume_stopped", "start_at_boot"),
)
#: Those that are left out where they are empty.
GIVEN = {
    **{name: f"trainer_{name}" for name in ("chdir", "command", "min_nodes", "threads")},
    "secret": "trainer_job_secret",
    "secrets_dir": "gaudi_secrets_dir",
}


def options(values: Values) -> dict[str, Any]:
    """What the module of jobs gets about this one; ``Refusal`` where nobody counted the cards: it would be another."""
    uncounted = part(facts(values), "gaudi_pci") is None and values("trainer_cards") in (None, "")
    if uncounted and job.runs(values):
        raise Refusal(
            f"The cards of {values('inventory_hostname')} were not counted, from which its job follows: run "
            "without --start-at-task and without --skip-tags trainer_preflight, or set trainer_cards."
        )
    if job.on_slurm(values):
        return _slurm_options(values)
    node = seen(values) or {}
    found: dict[str, Any] = {name: values(f"trainer_{name}") for name in SAME}
    found.update({option: given for option, name in GIVEN.items() if (given := values(name))})
    if not values("trainer_command"):
        found.update(config=job.config(values), node_config=job.node_config(values))
    if node.get("interface"):
        found["interface"] = node["interface"]
    if values("trainer_cards") not in (None, ""):
        found["cards"] = values("trainer_cards")
    if job.contained(values):
        found["container"] = job.container(values)
    if sets := job.data_sets(values):
        found["data_sets"] = sets
    if values("trainer_keep_archives") is not None:
        found["keep_archives"] = values("trainer_keep_archives")
    return {
        **found,
        "name": values("trainer_job_name"),
        "lines": values("trainer_log_lines"),
        "environment": job.environment(values),
        "groups": node.get("groups", []) if job.on_cards(values) else [],
        "head_address": job.head_address(values),
        "is_head": values("inventory_hostname") == values("trainer_head"),
        "modules": modules(values),
        "venv": f"{job.root(values)}/venv",
    }


#: Options of gaudi_train about a job of Slurm that are variables of these names behind trainer_.
SLURM_SAME = (
    *("nodes", "rdzv_port", "processes_per_node", "max_restarts", "user", "stop_timeout", "poll_interval", "timeout"),
    *("jobs_dir", "purge", "resume_stopped", "slurm"),
)


def _slurm_options(values: Values) -> dict[str, Any]:
    """The same for a job of Slurm, which chooses the nodes and their cards."""
    found: dict[str, Any] = {name: values(f"trainer_{name}") for name in SLURM_SAME}
    optional = ("chdir", "command", "threads")
    found.update({option: given for option in optional if (given := values(f"trainer_{option}"))})
    if not values("trainer_command"):
        found["config"] = job.config(values)
    if values("trainer_keep_archives") is not None:
        found["keep_archives"] = values("trainer_keep_archives")
    if not job.runs(values):
        del found["slurm"]
    return {
        **found,
        "launcher": "slurm",
        "name": values("trainer_job_name"),
        "lines": values("trainer_log_lines"),
        "environment": job.environment(values),
        "venv": f"{job.root(values)}/venv",
    }
