"""`train.precision=auto`: resolved once, where the device is known; all that comes after sees what it stands for."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gaudi3_scale.config import Config

AUTO = "auto"
OF_DEVICE = {"hpu": "bf16-mixed", "cuda": "bf16-mixed", "cpu": "32-true"}
"""What `auto` stands for on each type of device: bfloat16 where a card has units of its own for its products."""


def precision_of(wanted: str, kind: str) -> str:
    """The precision that a device of this type computes in; what is named is taken as it is.

    >>> precision_of("auto", "hpu"), precision_of("auto", "cpu"), precision_of("32-true", "hpu")
    ('bf16-mixed', '32-true', '32-true')
    """
    return OF_DEVICE[kind] if wanted == AUTO else wanted


def with_precision(config: Config, kind: str) -> Config:
    """The configuration as if the precision of a device of this type had been written in it."""
    if config.train.precision != AUTO:
        return config
    train = config.train.model_copy(update={"precision": precision_of(AUTO, kind)})
    return config.model_copy(update={"train": train})


def precision_text(wanted: str, taken: str, kind: str) -> str:
    """For the line that a job begins with."""
    return f"precision {taken}" + (f" (auto, device {kind})" if wanted == AUTO else "")
