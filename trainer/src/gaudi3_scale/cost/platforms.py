"""What is published of platforms, each figure with its source; no prices, as they change.

A throughput stands here only where somebody measured it in a training of a large model and published it. There is none
for Gaudi 3 and Gaudi 2: give your own measurement, or use the break-even curve, which needs none.
"""

from __future__ import annotations

import datetime
from dataclasses import dataclass

from gaudi3_scale.cost.values import Given
from gaudi3_scale.errors import ConfigError
from gaudi3_scale.throughput.peaks import PEAKS

SEEN = datetime.date(2026, 11, 23)


@dataclass(frozen=True)
class Platform:
    """A node with accelerators of one kind."""

    device: str
    """As in `throughput.peaks.PEAKS`."""
    devices_per_node: int
    device_watts: Given
    """The limit by design, which an accelerator at work stays below."""
    mfu: Given | None = None
    """Measured by others, 0 to 1."""


def _watts(value: float, source: str) -> Given:
    return Given(value=(value, value), source=source, date=SEEN)


PLATFORMS = {
    "gaudi3": Platform("GAUDI3", 8, _watts(900, "Intel Gaudi 3 white paper, TDP of HL-325L with air cooling")),
    "gaudi2": Platform("GAUDI2", 8, _watts(600, "Intel Gaudi 2 documentation, TDP of HL-225")),
    "h100": Platform(
        "NVIDIA H100 80GB HBM3",
        8,
        _watts(700, "NVIDIA H100 datasheet, SXM"),
        Given(
            value=(0.38, 0.43),
            source="Llama 3 405B on 8,192 to 16,384 H100 (arXiv:2407.21783, table 4)",
            date=SEEN,
        ),
    ),
    "h200": Platform("NVIDIA H200", 8, _watts(700, "NVIDIA H200 datasheet, SXM")),
    "a100": Platform(
        "NVIDIA A100-SXM4-80GB",
        8,
        _watts(400, "NVIDIA A100 datasheet, SXM"),
        Given(
            value=(0.476, 0.477),
            source="LLaMA 65B at 380 tokens/s on each of 2,048 A100 (arXiv:2302.13971, section 2.4)",
            date=SEEN,
        ),
    ),
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
