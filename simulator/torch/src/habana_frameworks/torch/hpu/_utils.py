"""Indexes of cards, and the variables that say which card a process takes."""

from __future__ import annotations

import os
from typing import Any

import torch

from gaudi3_hpu_simulator.extension import extension

HABANA_VISIBLE_MODULES_VAR = "HABANA_VISIBLE_MODULES"
HLS_MODULE_ID_VAR = "HLS_MODULE_ID"
NAME = "GAUDI3"


def _get_device_index(device: Any, optional: bool = False, allow_cpu: bool = False) -> int:
    """The index that a number, a string or a torch.device names; without one 0 if `optional`, and -1 for the CPU."""
    if isinstance(device, int):
        return device
    if isinstance(device, str):
        device = torch.device(device)
    index = None
    if isinstance(device, torch.device):
        if allow_cpu and device.type == "cpu":
            return -1
        if device.type != "hpu":
            raise ValueError(f"Expected an hpu device, but got {device}.")
        index = device.index
    if index is None and not optional:
        raise ValueError(f"Expected a device with an index, or an integer, but got {device}.")
    return index or 0


def one_card(device: Any = None) -> int:
    """0, the index of a process's card; RuntimeError for another index."""
    checked: int = extension().checked(_get_device_index(device, optional=True))
    return checked


def valid(device: Any = None) -> int:
    """As `one_card`, for functions that take the card into use and call another index invalid: AssertionError."""
    core = extension()
    core.use()
    try:
        if (index := _get_device_index(device, optional=True)) >= 0:
            return int(core.checked(index))
    except RuntimeError as error:
        raise AssertionError(f"Invalid device id: {error}") from None
    raise AssertionError(f"Invalid device id: {index} is negative.")


def _get_module_id_from_environ() -> int:
    return int(os.environ.get(HLS_MODULE_ID_VAR) or -1)


def _get_available_modules_from_environ() -> list[int]:
    return [int(module) for module in (os.environ.get(HABANA_VISIBLE_MODULES_VAR) or "0,1,2,3,4,5,6,7").split(",")]
