# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Where the nodes of a job meet: the rendezvous of torchrun, at the head's address."""

from __future__ import annotations

from typing import Optional

from .spec import JobSpec


def endpoint(spec: JobSpec) -> str:
    """The address and port at which the head listens, as torchrun takes them."""
    head = f"[{spec.head_address}]" if ":" in spec.head_address else spec.head_address
    return f"{head}:{spec.rdzv_port}"


def rendezvous_options(spec: JobSpec, is_head: Optional[bool]) -> list[str]:
    """The options of torchrun for the rendezvous; without ``is_head`` it finds out by itself which node is the head."""
    options = ["--rdzv-backend=c10d", f"--rdzv-endpoint={endpoint(spec)}", f"--rdzv-id={spec.rdzv_id}"]
    if is_head is not None:
        # torchrun compares the endpoint with what the node's own name resolves to, which fails on the many
        # systems that resolve it to a loopback address.
        options.append("--rdzv-conf=is_host={0}".format("true" if is_head else "false"))
    return options
