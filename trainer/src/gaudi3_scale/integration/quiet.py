"""Lightning without its advice."""

from __future__ import annotations

import logging
import warnings


def quiet() -> None:
    """Lightning's advice is for people who set its trainer up themselves."""
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    warnings.filterwarnings("ignore", module="lightning")
