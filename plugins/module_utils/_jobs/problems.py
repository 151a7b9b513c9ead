# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""What keeps a job from running on a node, each in one sentence: what was asked for, and what the node lacks."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Optional

from . import rules
from .answers import NodeAnswer, Offer
from .config_paths import config_paths
from .secrets import OF_THE_ROLE, secret_problem

#: Options whose rules compare numbers, which the command line gives as texts.
NUMBERS = ("spares", "min_nodes", "max_restarts", "rdzv_port", "stop_timeout", "threads")
INTERFACES = ("GLOO_SOCKET_IFNAME", "HCCL_SOCKET_IFNAME")


@dataclass(frozen=True)
class Asked:
    """What is asked for, as the variables of role trainer of these names say."""

    name: str = ""
    nodes: Sequence[str] = ()
    head: str = ""
    cards: Optional[int] = None
    processes: int = 0
    config: Mapping[str, Any] = field(default_factory=dict)
    command: Sequence[str] = ()
    chdir: str = ""
    script: str = ""
    dataset: str = ""
    digest: str = ""
    """Of the container's image; empty where the job runs in none."""
    image_problem: str = ""
    run_tags: Sequence[str] = ()
    skip_tags: Sequence[str] = ()
    spares: int = 0
    min_nodes: Optional[int] = None
    max_restarts: Optional[int] = None
    rdzv_port: Optional[int] = None
    stop_timeout: Optional[int] = None
    threads: Optional[int] = None
    environment_files: Sequence[str] = ()
    root: str = ""
    head_address: str = ""
    """Where the nodes meet; empty where another node is the head, which says it."""
    user: str = ""
    jobs_dir: str = ""
    address: str = ""
    environment: Mapping[str, Any] = field(default_factory=dict)
    node_config: Mapping[str, Any] = field(default_factory=dict)
    modules_problem: str = ""
    asker: str = ""

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Asked:
        """From a mapping, as a template hands it over; null says nothing, as "", its like in core 2.17, does."""
        said = {each.name: given.get(each.name) for each in fields(cls)}
        return cls(**{name: value for name, value in said.items() if value is not None and value != ""})

    @property
    def on_cards(self) -> bool:
        """Whether the job uses this node's cards; one that is told to train on processors needs nothing of them."""
        return rules.number(self.cards) > 0 and self.config.get("device", "hpu") in ("auto", "hpu")

    @property
    def left_out(self) -> list[str]:
        """Phases that a run of a site which trains leaves out before the job; a play of one's own has none."""
        phases, tags = ("drivers", "pytorch"), [tag for tag in self.run_tags if tag not in self.skip_tags]
        if "train" in self.skip_tags or not {"all", "train"} & set(self.run_tags):
            return []
        if "all" in self.run_tags:
            return [phase for phase in phases if phase in self.skip_tags]
        return [phase for phase in phases if phase not in tags]


def with_others(asked: Asked, modules_problem: str, asker: str) -> Asked:
    """The same compared with the node that asks for the job, with what keeps all of them from running it together."""
    return replace(asked, modules_problem=modules_problem, asker=asker)


def job_problems(asked: Asked, host: str, node: Mapping[str, Any]) -> list[str]:
    """Why this host cannot run the job, whatever its user may open there; ``node`` is what was seen of it."""
    return [
        sentence
        for sentence in (
            *_rules(asked, host),
            _head(asked),
            _dataset(asked),
            *_image(asked),
            *missing_problems(asked, host, node),
            _secret(asked),
        )
        if sentence
    ]


def _rules(asked: Asked, host: str) -> list[str]:
    job = {
        "name": str(asked.name),
        "nodes": list(asked.nodes),
        "host": host,
        "cards": asked.cards,
        "processes_per_node": asked.processes,
        "config": asked.config,
        "command": [str(word) for word in asked.command],
        "chdir": asked.chdir or None,
        "environment": {str(key): value for key, value in asked.environment.items()},
        "environment_files": [str(path) for path in asked.environment_files],
        "user": asked.user or None,
        "venv": asked.root or None,
        "head_address": asked.head_address or None,
        **{name: None if (value := getattr(asked, name)) is None else rules.number(value) for name in NUMBERS},
    }
    return list(rules.problems(job, rules.ROLE))


def _head(asked: Asked) -> Optional[str]:
    if not asked.head:
        return (
            "There is no head node where the nodes of the job can meet: put the first into group gaudi_head, or set "
            "trainer_head."
        )
    if asked.nodes and asked.head not in asked.nodes:
        return (
            f"The head node {asked.head} is not one of the nodes of the job ({', '.join(asked.nodes)}): set "
            "trainer_head to one of them."
        )
    return None


def _dataset(asked: Asked) -> Optional[str]:
    if asked.command and asked.dataset:
        return (
            "trainer_command and trainer_dataset are both set: give the data to your script in trainer_command's "
            "arguments."
        )
    return None


def _image(asked: Asked) -> list[str]:
    found = []
    if asked.digest and not re.search(r"^sha256:[0-9a-f]{64}$", asked.digest):
        found.append(
            f"trainer_container_digest is {asked.digest}: give sha256: and 64 hexadecimal digits, or leave it empty."
        )
    return [*found, asked.image_problem]


def _secret(asked: Asked) -> Optional[str]:
    configs = {"trainer_config": asked.config, "trainer_node_config": asked.node_config}
    return secret_problem(asked.environment, asked.command, configs, OF_THE_ROLE)


def missing_problems(asked: Asked, host: str, answer: Mapping[str, Any]) -> list[str]:
    """What has to be on the host and is not, as its ``answer`` says, each in one sentence."""
    node = NodeAnswer.of(answer)
    missing, found = node.missing, []
    if asked.dataset and asked.dataset in missing:
        found.append(
            f"The dataset {asked.dataset} does not exist on {host}: copy it to every node, or set trainer_dataset to a "
            "file or folder that is there."
        )
    if "drivers" in asked.left_out and asked.on_cards and node.driverless:
        found.append(
            f"No driver runs the cards of {host}, and this run leaves out the phase drivers, which would load it: run "
            "that phase first, or leave training out with --skip-tags train."
        )
    # Besides the dataset, role trainer asks for nothing but the Python of jobs.
    python = next((path for path in missing if path != asked.dataset), None)
    if "pytorch" in asked.left_out and python is not None:
        found.append(
            f"{host} has no {python} to train with, and this run leaves out the phase pytorch, which would install it: "
            "run that phase first, or leave training out with --skip-tags train."
        )
    return found


def _unreadable(asked: Asked, host: str, node: NodeAnswer) -> list[str]:
    """What of the data set and of the configuration's files and folders the job's user cannot read."""
    closed, found = dict(node.unreadable), []
    named = {f"{key} of trainer_config": path for key, path in config_paths(asked.config).items()}
    named = {name: path for name, path in named.items() if path != asked.dataset}
    for name, path in {"trainer_dataset": asked.dataset, **named}.items():
        if closed.get(path):
            found.append(
                f"{asked.user} cannot read {closed[path]} on {host}, which {name} needs: open it to that user, or copy "
                "what is in it to a folder that is open to all, such as /srv."
            )
        elif path in closed and path != asked.dataset:
            found.append(
                f"{name} is {path}, which does not exist on {host}: copy it to every node of the job, or correct the "
                "path."
            )
    return found


def node_problems(asked: Asked, host: str, node: Mapping[str, Any], theirs: Mapping[str, Any]) -> list[str]:
    """What the host lacks for the job; ``theirs`` is what the host ``asker``, with which all compare, brings to it."""
    seen = NodeAnswer.of(node)
    if seen.odd:
        return [
            f"{host} answers the question what it offers the job with {seen.odd}, which cannot be read: look at what "
            "answers for it (the collection's modules, Python), or take it out of the job."
        ]
    found = [
        *_closed(asked, host, seen),
        *_unreadable(asked, host, seen),
        asked.modules_problem,
        *shared_problems(asked, host, seen.offer, Offer.of(theirs)),
    ]
    if len(asked.nodes) > 1 and not seen.interface and set(INTERFACES) - set(asked.environment):
        found.append(
            f"No interface of {host} has the address {asked.address} or leads to the other nodes of the job: set "
            "gaudi_cluster_address to its address on the cluster network, or GLOO_SOCKET_IFNAME and HCCL_SOCKET_IFNAME "
            "in trainer_environment."
        )
    return [sentence for sentence in found if sentence]


def _closed(asked: Asked, host: str, node: NodeAnswer) -> list[str]:
    found = []
    if asked.on_cards and node.unknown_groups:
        found.append(
            f"Group {', '.join(node.unknown_groups)} of trainer_groups does not exist on {host}: create it there, or "
            "take it out of trainer_groups."
        )
    if asked.on_cards and node.closed:
        file = node.closed[0]
        found.append(
            f"{asked.user} cannot open {file.path} on {host} (owner {file.owner}, group {file.group}, mode "
            f"{file.mode}), which a job on its cards needs: add the group to trainer_groups, or give the file to "
            "another group by a udev rule and add that."
        )
    if node.script_missing:
        found.append(
            f"{asked.script}, the script of trainer_command, is not a file on {host}: copy it to every node of the job."
        )
    if node.script_closed:
        found.append(
            f"{asked.user} cannot read {node.script_closed} on {host}, which the script of trainer_command needs: open "
            "it to that user, or copy the script to a folder that is open to all, such as /srv."
        )
    return found


def shared_problems(asked: Asked, host: str, own: Offer, theirs: Optional[Offer]) -> list[str]:
    """Whether the jobs' user is another one on a node that shares the jobs' folder with the host ``asker``."""
    if theirs is None or not own.shares or own.shares != theirs.shares:
        return []
    if None in (own.uid, theirs.uid) or own.uid == theirs.uid:
        return []
    return [
        f"{asked.user} has uid {own.uid} on {host} and {theirs.uid} on {asked.asker}, which share {asked.jobs_dir} "
        f"({own.shares}): set trainer_uid and trainer_gid to numbers that are free on all nodes."
    ]
