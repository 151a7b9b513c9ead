"""Accelerators that a plan is made for, with their memory; peaks are those of `throughput`, nodes of `cost`."""

from __future__ import annotations

from dataclasses import dataclass

from gaudi3_scale.cost.platforms import PLATFORMS
from gaudi3_scale.errors import ConfigError
from gaudi3_scale.throughput.peaks import PEAKS

GB = 10**9
GAUDI = "Intel's white paper of Gaudi 3 as cited in The Register"
MLPERF = "as NVIDIA describes {} in results of MLPerf Inference {}, read 2026-11-23"


@dataclass(frozen=True)
class Accelerator:
    """One kind of device."""

    name: str
    """As in `cost.platforms`."""
    label: str
    kind: str
    """The device type of the job: hpu or cuda."""
    memory_bytes: int
    """As it is sold, in GB of 10**9 bytes: what a driver offers may be some percent more or less."""
    source: str

    @property
    def per_node(self) -> int:
        """Devices of a node."""
        return PLATFORMS[self.name].devices_per_node

    @property
    def precisions(self) -> tuple[str, ...]:
        """Values of `train.precision` that it computes in."""
        return tuple(DTYPES)

    def has_peak(self, precision: str) -> bool:
        """Is its dense peak known?"""
        return DTYPES[precision] in PEAKS[PLATFORMS[self.name].device].flops


DTYPES = {"bf16-mixed": "bfloat16", "32-true": "float32"}
"""Type in whose products a precision of the job computes."""

ACCELERATORS = {
    each.name: each
    for each in (
        Accelerator("gaudi3", "Gaudi 3", "hpu", 128 * GB, f"HBM2e, {GAUDI}"),
        Accelerator("gaudi2", "Gaudi 2", "hpu", 96 * GB, f"HBM2E, {GAUDI}"),
        Accelerator("h100", "H100 SXM", "cuda", 80 * GB, "HBM3, " + MLPERF.format("DGX H100", "4.1")),
        Accelerator("h200", "H200 SXM", "cuda", 141 * GB, "HBM3e, " + MLPERF.format("its H200 system", "4.1")),
        Accelerator("a100", "A100 SXM", "cuda", 80 * GB, "HBM2e, " + MLPERF.format("DGX Station A100", "2.0")),
    )
}


def accelerator(name: str) -> Accelerator:
    """The one of this name; a ConfigError for another."""
    if name not in ACCELERATORS:
        raise ConfigError(f"The platform {name!r} is not known: give one of {', '.join(ACCELERATORS)}.")
    return ACCELERATORS[name]
