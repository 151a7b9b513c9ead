"""The compilers behind `hpu_backend`: refused."""

from gaudi3_hpu_simulator.errors import refusing

hpu_compiler_inner = refusing("graph compiler", "run on hardware")
