"""What a result says of the machine: enough to understand its times, and nothing that names the machine."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from gaudi3_benchmark.result import Environment
from gaudi3_scale.hpu.device import Device, driver_version, identity
from gaudi3_scale.throughput.peaks import matmul_dtype, peak_flops


def describe(device: Device, precisions: Iterable[str]) -> Environment:
    """Of this process on this device."""
    import torch

    from gaudi3_scale.hpu.environment import FLAGS, PREFIXES

    said = identity(device.torch_device())
    tf32 = device.type == "cuda" and torch.get_float32_matmul_precision() != "highest"
    peaks = {name: peak_flops(said["hardware_name"], matmul_dtype(name, tf32)) for name in precisions}
    ours = {name: value for name, value in os.environ.items() if name.startswith(PREFIXES) or name in FLAGS}
    whole: dict[str, Any] = {
        **said,
        "driver": driver_version(device.type),
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)),
        "variables": dict(sorted(ours.items())),
        "peak_flops": {name: peak for name, peak in peaks.items() if peak is not None},
    }
    return Environment.model_validate(scrubbed(whole))


def scrubbed(value: Any) -> Any:
    """The same without names, addresses and secrets of this machine."""
    from gaudi3_doctor.host import Host
    from gaudi3_doctor.scrub import scrub, scrubber

    return scrub(value, scrubber(Host()))


def _processor() -> str | None:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), None)
