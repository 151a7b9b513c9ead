"""Importing this is what makes torch know the device."""

import torch as _torch  # noqa: F401

from gaudi3_hpu_simulator.load import install as _install

_install()
