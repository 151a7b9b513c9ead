"""Whether there is a card, and older names of loading the device."""

from __future__ import annotations

from gaudi3_hpu_simulator.errors import refusing


def is_habana_available() -> bool:
    """As `torch.hpu.is_available`."""
    import habana_frameworks.torch.hpu as hpu

    return hpu.is_available()


def load_habana_module() -> None:
    """Nothing to do: importing `habana_frameworks.torch` has loaded the device."""


load_habana_profiler = refusing("profiler of Synapse (load_habana_profiler)", "use torch.profiler, or run on hardware")
