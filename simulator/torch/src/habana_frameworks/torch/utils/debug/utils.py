"""The dump of a failed card."""

from gaudi3_hpu_simulator.errors import refusing

dump_device_state_and_terminate = refusing("state of a card to dump", "run on hardware")
