"""Where headers and libraries of the bridge are, to build operations of one's own: refused, there are none."""

from __future__ import annotations

from gaudi3_hpu_simulator.errors import refusing

_INSTEAD = "build TPC kernels and their operations on hardware"

get_include_dir = refusing("headers to build against", _INSTEAD)
get_lib_dir = refusing("libraries to link with", _INSTEAD)
