"""What the simulator refuses, because it could only pretend."""

from __future__ import annotations


class NotSimulated(NotImplementedError):
    """Gaudi does this; the simulated device does not, and says so."""


def refuse(what: str, instead: str) -> NotSimulated:
    """The error for something of Gaudi's that is not simulated: `what` as a noun, `instead` as an instruction."""
    return NotSimulated(f"The simulated HPU has no {what}: {instead}.")
