"""Habana's profiler of the host's part: refused."""

from __future__ import annotations

from gaudi3_hpu_simulator.errors import refusing

_INSTEAD = "use torch.profiler, or run on hardware"

start = refusing("low-overhead profiler", _INSTEAD)
stop = refusing("low-overhead profiler", _INSTEAD)
flush = refusing("low-overhead profiler", _INSTEAD)
