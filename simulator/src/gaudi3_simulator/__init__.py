"""Gaudi 3 nodes without hardware."""

from __future__ import annotations

__version__ = "0.1.0"


class SimulatorError(Exception):
    """Something that the user can put right; the message is one sentence that says how."""


class RequestError(SimulatorError):
    """What was asked for cannot be; the message says what can. Exit code 2."""
