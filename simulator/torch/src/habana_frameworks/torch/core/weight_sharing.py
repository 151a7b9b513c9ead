"""Parameters that stay shared when their module moves, which torch's do here of themselves."""

from __future__ import annotations

import torch


class HabanaParameterWrapper(torch.nn.Parameter):
    """What Habana makes of parameters in lazy mode; here nothing is made one."""


def enable_weight_sharing() -> None:
    """Nothing to do: torch keeps parameters shared when a module moves."""
