"""Compiled graphs: refused."""

from gaudi3_hpu_simulator.errors import refusing_class

HabanaGraphModule = refusing_class("HabanaGraphModule, because nothing is compiled", "run on hardware", "__call__")
