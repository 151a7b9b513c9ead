# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""What the variables of role trainer come to on one node: the job, its environment and its container."""

from __future__ import annotations

import hashlib
import json
import os.path
from collections.abc import Mapping, Sequence
from typing import Any

from .._host.address import cluster_address
from .._jobs import image as images
from .._jobs.config_paths import config_paths
from .._jobs.rules import number
from .given import demand_facts, entries, host, listed, merged, truth
from .model import Values
from .run import Run

#: Where the certificate of the page of metrics is.
TLS = "/etc/gaudi3-scale/trainer"
RELEASE = "1.23.0-695"
#: States of a job with which nodes have the trainer.
INSTALLED = ("started", "finished")
#: What a job of trainer_jobs can say for itself, in place of the variables of these names behind trainer_.
KEYS = (
    *("nodes", "head", "state", "config", "command", "chdir", "dataset", "data_sets", "node_config"),
    *(
        "environment",
        "environment_files",
        "cards",
        "processes_per_node",
        "threads",
        "max_restarts",
        "spares",
        "min_nodes",
    ),
    *("rdzv_port", "timeout", "interruption", "start_at_boot", "resume_stopped"),
)


def installs(values: Values) -> bool:
    """Whether nodes have the trainer."""
    return values("trainer_state") in INSTALLED


def builds(values: Values) -> bool:
    """Whether any host of the play has the trainer: the first asks, which may be the one that has not."""
    own = host(values, str(values("inventory_hostname"))).get("trainer_state")
    if installs(values) or own != values("trainer_state"):
        # What the inventory does not say, the play says, of all hosts the same.
        return installs(values)
    others = [host(values, name).get("trainer_state", "finished") for name in listed(values("ansible_play_hosts_all"))]
    return any(state in INSTALLED for state in others)


def runs(values: Values) -> bool:
    """Whether a job runs, and is not stopped or removed."""
    return installs(values) and bool(values("trainer_job_name"))


def counts(values: Values) -> bool:
    """Whether jobs follow from this node's cards."""
    return installs(values) and bool(values("trainer_job_name") or values("trainer_jobs"))


def contained(values: Values) -> bool:
    """Whether jobs run in a container."""
    return bool(values("trainer_runtime") == "container")


def on_slurm(values: Values) -> bool:
    """Whether Slurm carries the jobs, in place of units."""
    return bool(values("trainer_launcher") == "slurm")


def submits(values: Values) -> str:
    """The host that asks for the job and, under Slurm, submits it."""
    return str((on_slurm(values) and values("trainer_slurm_host")) or values("trainer_head") or "")


def run_of(values: Values) -> Run:
    """The tags of the run."""
    return Run.of(values("ansible_run_tags") or (), values("ansible_skip_tags") or ())


def _cards(values: Values) -> int:
    return number(values("trainer_cards"))


def on_cards(values: Values) -> bool:
    """Whether the job uses this node's cards; one that is told to train on processors needs nothing of them."""
    return _cards(values) > 0 and entries(values("trainer_config")).get("device", "hpu") in ("auto", "hpu")


def config(values: Values) -> dict[str, Any]:
    """The job's configuration. A node with cards trains on them or fails, unless the user names a device."""
    dataset, interruption = values("trainer_dataset"), values("trainer_interruption")
    return merged(
        {"device": "hpu"} if _cards(values) > 0 else {},
        entries(values("trainer_config")),
        {"data": {"source": dataset}} if dataset else {},
        {"data": {"directory": str(values("trainer_data_dir"))}} if values("trainer_data_sets") else {},
        {"interruption": interruption} if interruption else {},
    )


def whole_config(values: Values) -> dict[str, Any]:
    """What the job reads on this node."""
    return merged(config(values), entries(values("trainer_node_config")))


def node_config(values: Values) -> dict[str, Any]:
    """What of the configuration is this node's own."""
    files = {
        "certificate": f"{TLS}/metrics.crt",
        "key": f"{TLS}/metrics.key",
        "client_authority": f"{TLS}/ca.crt",
    }
    own = {"metrics": files} if truth(values, "trainer_tls") else {}
    return merged(own, entries(values("trainer_node_config")))


def data_sets(values: Values) -> list[str]:
    """Folders of the job's sets of training data on the node."""
    folder = str(values("trainer_data_dir"))
    return [os.path.join(folder, str(name)) for name in listed(values("trainer_data_sets"))]


def script(values: Values) -> str:
    """The script of a command of the user's; empty for the trainer's own jobs."""
    command = listed(values("trainer_command"))
    return os.path.join(str(values("trainer_chdir") or ""), str(command[0])) if command else ""


def environment(values: Values) -> dict[str, Any]:
    """Variables of the job; what the user sets takes precedence."""
    interruption = values("trainer_interruption")
    accepts = truth(values, "trainer_accept_translated_iommu")
    tells = bool(values("trainer_command")) and bool(interruption)
    return {
        **({"GAUDI3_ACCEPT_TRANSLATED_IOMMU": "1"} if accepts else {}),
        **({"GAUDI3_INTERRUPTION": json.dumps(interruption)} if tells else {}),
        **entries(values("trainer_environment")),
    }


def release(values: Values) -> str:
    """The driver's release, of which a container's image has to be."""
    return str(values("synapseai_release") or RELEASE)


def image(values: Values) -> images.Chosen:
    """The container's image."""
    names = ("image", "system", "registry", "digest")
    return images.chosen(release(values), *(str(values(f"trainer_container_{name}") or "") for name in names))


def root(values: Values) -> str:
    """Where the trainer is installed. Each image has an environment of its own, as its Python is another."""
    folder = str(values("trainer_root"))
    if not contained(values):
        return folder
    return f"{folder}/container/{hashlib.sha256(image(values).name.encode()).hexdigest()[:12]}"


def torch_release(values: Values) -> str:
    """Release of PyTorch, which works with a driver of its own release alone; empty where nothing tells it."""
    if contained(values):
        return release(values)
    if not _has_pytorch(values):
        return ""
    return str(values("pytorch_release") or values("synapseai_release") or "")


def _has_pytorch(values: Values) -> bool:
    """Whether role pytorch installs it."""
    return (values("pytorch_state") or "present") == "present"


def asker(values: Values) -> str:
    """The node that asks for its job how far that is: the head, or another where the play leaves the head out."""
    head, there = values("trainer_head"), listed(values("ansible_play_hosts"))
    if head in there:
        return str(head)
    return next((str(node) for node in listed(values("trainer_nodes")) if node in there), "")


def asks_image(values: Values) -> bool:
    """Whether a registry is asked before the first change.

    Not where only other phases run: a node that cannot train can have its driver and be monitored.
    """
    run = run_of(values)
    trains = ("train", "trainer", "trainer_preflight", "trainer_install", "trainer_job")
    return (
        installs(values)
        and contained(values)
        and values("inventory_hostname") in listed(values("trainer_nodes"))
        and ((run.only_preflight and "train" not in run.skipped) or run.has(*trains))
    )


def asks_more(values: Values) -> bool:
    """Whether there is more to look at before the first change than the node itself."""
    return asks_image(values) or bool(values("trainer_jobs"))


def list_problems(values: Values) -> list[str]:
    """What keeps the jobs of the list from running, each in one sentence."""
    jobs, name = listed(values("trainer_jobs")), values("trainer_job_name")
    names = [str(job["name"]) for job in jobs]
    named = [node for job in jobs for node in job.get("nodes") or ()]
    outside = [node for node in dict.fromkeys(named) if node not in listed(values("trainer_nodes"))]
    found = []
    if name and jobs:
        found.append(f"trainer_job_name is {name} and trainer_jobs has {', '.join(names)}: keep one of the two.")
    if len(set(names)) != len(names):
        found.append(f"trainer_jobs has {', '.join(names)}: give each job a name of its own.")
    if outside:
        found.append(
            f"trainer_jobs has the nodes {', '.join(outside)}, which are not in trainer_nodes, where the trainer is "
            "installed: add them there, or take them out of the job."
        )
    return found


def whole_list(values: Values) -> list[dict[str, Any]]:
    """The jobs of the list: what one does not say is as the role's variable of that name says."""
    shared = {key: values(f"trainer_{key}") for key in KEYS}
    found = []
    for job in listed(values("trainer_jobs")):
        whole = {**shared, **job}
        if "head" not in job and shared["head"] not in whole["nodes"]:
            whole["head"] = next(iter(whole["nodes"]), "")
        found.append(whole)
    return found


def others(values: Values) -> Sequence[str]:
    """The other nodes of the job, the head first."""
    nodes, head, own = listed(values("trainer_nodes")), values("trainer_head"), values("inventory_hostname")
    first = [head] if head in nodes and head != own else []
    return [*first, *(node for node in nodes if node not in (head, own))]


def peers(values: Values) -> list[str]:
    """Where two others of the job are, as far as the inventory knows. The way to one tells the interface."""
    names = others(values)[:2]
    hosts = [host(values, name) for name in names]
    given = [each.get(name) for name in ("gaudi_cluster_address", "ansible_host") for each in hosts]
    return list(dict.fromkeys(str(each) for each in [*given, *names] if each))


def head_address(values: Values) -> Any:
    """Where the nodes of the job meet."""
    head = values("trainer_head")
    return cluster_address(head, host(values, head))


def decide(values: Values) -> Mapping[str, Any]:
    """What role trainer does on this node, as its own variables say."""
    if counts(values) and values("trainer_cards") in (None, ""):
        demand_facts(values)
    inside, dataset = contained(values), values("trainer_dataset")
    found: dict[str, Any] = {
        "installs": installs(values),
        "runs": runs(values),
        "counts": counts(values),
        "asker": asker(values),
        "on_slurm": on_slurm(values),
        "submits": submits(values),
        "contained": inside,
        "on_cards": on_cards(values),
        "script": script(values),
        "data_sets": data_sets(values),
        "root": root(values),
        "executable": values("trainer_container_python") if inside else values("trainer_python"),
        "imports": ["torch", "habana_frameworks.torch"] if on_cards(values) else ["torch"],
        # PyTorch may not be there yet; its own role, or the preflight of the image, looked whether it can come.
        "allow_missing": bool(values("ansible_check_mode")) and (inside or _has_pytorch(values)),
        "asks_image": asks_image(values),
        "asks_more": asks_more(values),
        "list_problem": next(iter(list_problems(values)), ""),
        # An image may have files of its own.
        "readable": [*([dataset] if dataset else []), *([] if inside else _paths(values))],
        "special": inside
        or values("trainer_dependencies") == "index"
        or values("trainer_gid") is not None
        or truth(values, "trainer_tls"),
    }
    if inside:
        found["image"] = image(values).name
        found["image_environment"] = {
            "engine": values("trainer_container_engine"),
            "image": image(values).name,
            "release": release(values) if on_cards(values) else None,
            "requirements": values("trainer_container_requirements"),
        }
    return found


def _paths(values: Values) -> list[str]:
    return list(dict.fromkeys(config_paths(whole_config(values)).values()))


def container(values: Values) -> dict[str, Any]:
    """The container of the job."""
    dataset, folders = values("trainer_dataset"), listed(values("trainer_container_folders"))
    return {
        "engine": values("trainer_container_engine"),
        "image": image(values).name,
        "folders": [
            *folders,
            *([dataset] if dataset else []),
            *data_sets(values),
            *([TLS] if truth(values, "trainer_tls") else []),
        ],
        "cards": on_cards(values),
    }
