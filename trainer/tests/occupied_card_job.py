"""`gaudi3-train` with the second process's card taken up by others, in its first trial of a batch.

With GAUDI3_HOST_ROOM, the host has so many bytes left for the cards.
"""

from __future__ import annotations

import os
import sys
from typing import Any

import torch

from gaudi3_scale import host_memory
from gaudi3_scale.cli import main
from gaudi3_scale.job import auto_batch

real = auto_batch._samples
others: list[Any] = []


def crowded(config: Any, size: int) -> Any:
    """Half of the card is gone while the first trial lasts."""
    if os.environ.get("RANK") == "1":
        if not others:
            free = torch.get_device_module("hpu").mem_get_info()[0]
            others.append(torch.empty(free // 2, dtype=torch.uint8, device="hpu"))
        else:
            others[0] = None
    return real(config, size)


auto_batch._samples = crowded
if "GAUDI3_HOST_ROOM" in os.environ:
    host_memory.room = lambda: int(os.environ["GAUDI3_HOST_ROOM"])  # type: ignore[assignment,misc]
sys.exit(main())
