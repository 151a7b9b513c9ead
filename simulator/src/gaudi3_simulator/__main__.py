"""The command by `python -m gaudi3_simulator`: from a checkout, before anything is installed."""

import sys

from .cli import main

sys.exit(main())
