"""SGD and Adagrad as torch's; those without a counterpart in torch are refused rather than approximated."""

from __future__ import annotations

from typing import Any, NoReturn

import torch

from gaudi3_hpu_simulator.errors import refuse


class FusedSGD(torch.optim.SGD):
    """torch's SGD."""


class FusedAdagrad(torch.optim.Adagrad):
    """torch's Adagrad."""


def _refused(name: str) -> type[torch.optim.Optimizer]:
    def __init__(self: Any, *arguments: Any, **options: Any) -> NoReturn:
        raise refuse(name, "use FusedAdamW, FusedSGD or FusedAdagrad, or run on hardware")

    return type(name, (torch.optim.Optimizer,), {"__init__": __init__, "__doc__": f"Habana's {name}: refused."})


FusedLamb = _refused("FusedLamb")
FusedLars = _refused("FusedLars")
FusedResourceApplyMomentum = _refused("FusedResourceApplyMomentum")


class Adam(torch.optim.Adam):
    """torch's Adam."""


class AdamW(torch.optim.AdamW):
    """torch's AdamW."""
