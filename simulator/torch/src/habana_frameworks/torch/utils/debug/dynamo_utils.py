"""Which operations of a compiled model run in the graph, and which beside it: refused, none is compiled."""

from gaudi3_hpu_simulator.errors import refusing_class

FxGraphAnalyzer = refusing_class("FxGraphAnalyzer, because nothing is compiled", "leave it out, or run on hardware")
