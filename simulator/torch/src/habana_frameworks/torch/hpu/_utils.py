"""Indices of devices, and the variables that say which card a process takes ([bridge] 1.19, `hpu/_utils.py`)."""

from __future__ import annotations

import os
from typing import Any

import torch

HABANA_VISIBLE_MODULES_VAR = "HABANA_VISIBLE_MODULES"
HLS_MODULE_ID_VAR = "HLS_MODULE_ID"


def _get_device_index(device: Any, optional: bool = False, allow_cpu: bool = False) -> int:
    """The index of a number, "hpu:0" or torch.device; without one, the current device's where that is `optional`."""
    index: int | None = device if isinstance(device, int) else None
    if isinstance(device, (str, torch.device)):
        found = torch.device(device)
        if found.type == "cpu" and allow_cpu:
            return -1
        if found.type != "hpu":
            raise ValueError(f"The device has to be an hpu{' or the cpu' if allow_cpu else ''}, and it is {found}.")
        index = found.index
    if index is None and optional:
        from habana_frameworks.torch import hpu

        index = hpu.current_device()
    if index is None:
        raise ValueError(f"The device has to be a number, or an hpu with one, and it is {device}.")
    return index


def _get_module_id_from_environ() -> int:
    return int(os.environ.get(HLS_MODULE_ID_VAR) or -1)


def _get_available_modules_from_environ() -> list[int]:
    return [int(module) for module in (os.environ.get(HABANA_VISIBLE_MODULES_VAR) or "0,1,2,3,4,5,6,7").split(",")]
