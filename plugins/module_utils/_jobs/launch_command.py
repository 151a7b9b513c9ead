# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""The command that launches a job on one node: torchrun with the job's options, and the program that it starts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Optional

from .files import SECRET, TRACE
from .rendezvous import rendezvous_options
from .spec import CONFIG, JobSpec, control_folder


@dataclass(frozen=True)
class NodeShare:
    """What of a job differs from node to node."""

    directory: str
    #: This node's own address on the cluster's network; None lets torchrun ask the resolver.
    address: Optional[str] = None
    #: Whether this node hosts the rendezvous; None lets torchrun find out from the head's address.
    is_head: Optional[bool] = None
    #: Merged over the job's configuration, on this node only.
    config: Optional[Mapping[str, Any]] = None
    #: The interface on which the nodes meet; None lets gloo and HCCL ask the resolver, which may name the loopback one.
    interface: Optional[str] = None
    #: Groups that open the cards' device files.
    groups: tuple[str, ...] = ()
    #: Module ids of the cards for the job's processes, in their order; empty for any.
    modules: tuple[int, ...] = ()
    #: For a job in a container: variables of the environment files, the node's folders of device files, and the files
    #: of its fabric.
    file_variables: Mapping[str, str] = field(default_factory=dict)
    devices: tuple[str, ...] = ()
    files: tuple[str, ...] = ()


def launch_argv(spec: JobSpec, share: NodeShare) -> list[str]:
    """The command which runs the node's share of the job."""
    argv = [
        spec.venv + "/bin/python",
        "-m",
        "gaudi3_scale.launch",
        "--status=" + share.directory + "/status.json",
        *(["--say-ending"] if spec.command else []),
        f"--secret-file={control_folder(share.directory)}/{SECRET}",
        *([f"--trace-parent={control_folder(share.directory)}/{TRACE}"] if spec.is_traced else []),
        *(["--replace"] if spec.replaces else []),
        f"--nnodes={spec.nnodes}",
        f"--nproc-per-node={spec.processes_per_node}",
        *rendezvous_options(spec, share.is_head),
    ]
    if share.address is not None:
        argv.append(f"--local-addr={share.address}")
    return [*argv, f"--max-restarts={spec.max_restarts}", "--no-python", *_program(spec, share)]


def _program(spec: JobSpec, share: NodeShare) -> list[str]:
    """What each process runs: the user's script, or the trainer with the job's configuration."""
    if spec.script is None:
        config = control_folder(share.directory) + "/" + CONFIG
        return [spec.venv + "/bin/gaudi3-train", "fit", "--config", config]
    python = [spec.venv + "/bin/python"] if spec.script.endswith(".py") else []
    return [*python, spec.script, *spec.command[1:]]
