"""Synapse's profiler: refused."""

from __future__ import annotations

from gaudi3_hpu_simulator.errors import refusing

_INSTEAD = "use torch.profiler, or run on hardware"

_setup_profiler = refusing("profiler of Synapse (_setup_profiler)", _INSTEAD)
_start_profiler = refusing("profiler of Synapse (_start_profiler)", _INSTEAD)
_stop_profiler = refusing("profiler of Synapse (_stop_profiler)", _INSTEAD)
