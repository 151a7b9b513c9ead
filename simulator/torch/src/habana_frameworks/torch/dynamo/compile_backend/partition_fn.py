"""The cut between forward and backward graph: refused, nothing is compiled."""

from gaudi3_hpu_simulator.errors import refusing

remove_unnecessary_clone = refusing("remove_unnecessary_clone", "run on hardware")
