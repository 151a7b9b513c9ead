# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""The environment variables which Gaudi's collective library reads, and the file that carries them.

Many names that circulate do nothing. A name which is not in these tables is refused, and the nearest one suggested.
"""

from __future__ import annotations

import re

from .._refusal import Refusal

# Public variables of the library's own registry.
PUBLIC = frozenset({
    "HCCL_OVER_OFI", "HCCL_GAUDI_DIRECT", "HCCL_PEER_DIRECT", "HCCL_SOCKET_IFNAME", "HCCL_COMM_ID",
    "HCCL_PRIM_COLLECTIVE_MASK", "HCL_COLLECTIVE_LOG", "OP_DRIFT_THRESHOLD_MS", "SCALE_OUT_PORTS_MASK",
    "LOGICAL_SCALE_OUT_PORTS_MASK", "HCL_PORT_MAPPING_CONFIG", "HCL_MAC_INFO_FILE",
    "HCL_GAUDINET_CONFIG_FILE",
    "BOX_TYPE", "HABANA_WEAK_ORDER", "HABANA_PROFILE", "HCL_DEBUG_STATS_LEVEL", "HCL_DEBUG_STATS_FILE",
    "USE_CPU_AFFINITY", "HCL_HNIC_VERBS_EXCLUDE_IF", "HCL_FAULT_TOLERANCE_ENABLE",
    "HCL_FAULT_TOLERANCE_FAILBACK_DELAY", "LOOPBACK_COMMUNICATOR_SIZE", "LOOPBACK_SCALEUP_GROUP_SIZE",
    "LOOPBACK_DISABLED_NICS",
})  # fmt: skip

# Variables of libfabric and RDMA libraries: they act on scale-out over host NICs and nowhere else.
HOST_NIC = frozenset({"RDMAV_FORK_SAFE", "FI_EFA_USE_DEVICE_RDMA", "MLX5_SCATTER_TO_CQE"})

# In the registry, and ignored unless experimental settings are enabled, which no source tells how to do.
PRIVATE = frozenset({
    "HCCL_TRIALS", "HCCL_ASYNC_EXCHANGE", "HCL_IMB_SIZE", "HCL_SLICE_SIZE", "HCL_GDR_SLICE_SIZE", "MTU_SIZE",
    "HCL_MAX_RANKS", "HCL_HNIC_TCP_EXCLUDE_IF", "HCL_HNIC_IPV6", "CONGESTION_CONTROL_ENABLE",
})  # fmt: skip

_OLD = {
    "HCL_COMM_ID": "is the old name of HCCL_COMM_ID: use that",
    "HCCL_OVER_TCP": "is from old releases and does nothing now: leave it out, or see HCCL_OVER_OFI",
}

# What the vendor documents for direct transfers between card and host NIC, and for those through host memory over TCP.
DEFAULTS = {
    "efa": {"RDMAV_FORK_SAFE": "1", "FI_EFA_USE_DEVICE_RDMA": "1"},
    "host_nic": {"RDMAV_FORK_SAFE": "1", "MLX5_SCATTER_TO_CQE": "0"},
    "host_tcp": {"HCCL_OVER_OFI": "1"},
}

HEADER = "# Written by Ansible (gaudi3.scale.gaudi_fabric): changes made here are lost.\n"


def check(environment: dict[str, str]) -> None:
    """Refuse the first variable which the library does not read, or whose value cannot stand in the file."""
    for name, value in sorted(environment.items()):
        if name not in PUBLIC and name not in HOST_NIC:
            raise Refusal(f"environment variable {name} {_complaint(name)}")
        if re.search(r"[\n\"\\$`]", value):
            raise Refusal(
                f"environment variable {name} cannot be {value!r}: write one line without quotes, $ and backslash"
            )


def _complaint(name: str) -> str:
    if name in _OLD:
        return _OLD[name]
    if name in PRIVATE:
        return "is private to HCL, which ignores it outside of experiments: leave it out"
    if name.startswith("NCCL_"):
        return "does nothing for HCCL, Gaudi's collective library: leave it out"
    import difflib  # only where something is wrong

    nearest = difflib.get_close_matches(name, sorted(PUBLIC | HOST_NIC), n=1, cutoff=0.0)[0]
    return f"is not one that HCCL or its network libraries read: the nearest is {nearest}"


def without_effect(environment: dict[str, str], kind: str) -> list[str]:
    """The variables which do nothing on this kind of fabric."""
    return [] if kind in ("efa", "host_nic") else sorted(name for name in environment if name in HOST_NIC)


def file_text(environment: dict[str, str]) -> str:
    """The file for EnvironmentFile= of a unit, which a shell can read as well."""
    lines = [
        f'{name}="{value}"\n' if re.search(r"[^\w.,:/=@+-]", value) else f"{name}={value}\n"
        for name, value in sorted(environment.items())
    ]
    return HEADER + "".join(lines)
