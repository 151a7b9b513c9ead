"""What is known of platforms, each figure with its source; no prices and no throughputs.

Prices change. A throughput, or a share of the peak, is one of a model on a number of devices: give your own
measurement, or use the break-even curve, which needs none. A power limit stands here only where its source was read.
"""

from __future__ import annotations

import datetime
from dataclasses import dataclass

from gaudi3_scale.cost.values import Given
from gaudi3_scale.errors import ConfigError
from gaudi3_scale.throughput.peaks import PEAKS

SEEN = datetime.date(2026, 11, 23)
TDP = "Intel Gaudi 3 white paper as cited in The Register"


@dataclass(frozen=True)
class Platform:
    """A node with accelerators of one kind."""

    device: str
    """As in `throughput.peaks.PEAKS`."""
    devices_per_node: int
    device_watts: Given | None = None
    """The limit by design, which an accelerator at work stays below; None where no source of it was read."""


def _watts(value: float, source: str) -> Given:
    return Given(value=(value, value), source=source, date=SEEN)


PLATFORMS = {
    "gaudi3": Platform("GAUDI3", 8, _watts(900, f"TDP of HL-325L with air cooling, {TDP}")),
    "gaudi2": Platform("GAUDI2", 8, _watts(600, f"TDP of HL-225, {TDP}")),
    "h100": Platform("NVIDIA H100 80GB HBM3", 8),
    "h200": Platform("NVIDIA H200", 8),
    "a100": Platform("NVIDIA A100-SXM4-80GB", 8),
}


def platform(name: str) -> Platform:
    """The platform of this name; a ConfigError for another."""
    try:
        return PLATFORMS[name]
    except KeyError:
        raise ConfigError(
            f"The platform {name!r} is not known: give one of {', '.join(PLATFORMS)}; several offers of one platform "
            "have names of their own and its name in `platform`."
        ) from None


def peak(name: str, precision: str) -> tuple[float, str]:
    """Dense peak of one device in FLOP/s, and its source; a ConfigError where it is not known for this precision."""
    known = PEAKS[platform(name).device]
    if precision not in known.flops:
        raise ConfigError(
            f"No confirmed dense peak of {name} for {precision} is known: give tokens_per_second_per_device instead of "
            f"mfu, or one of {', '.join(known.flops)}."
        )
    return known.flops[precision], known.source
