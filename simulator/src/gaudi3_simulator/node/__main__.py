"""``python3 -m gaudi3_simulator_node``: the same as ``gaudi3-simulator-node``."""

from __future__ import annotations

import sys

from .cli import main

sys.exit(main(sys.argv[1:]))
