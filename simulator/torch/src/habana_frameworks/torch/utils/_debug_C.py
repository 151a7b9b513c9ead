"""What `utils.debug` asks of the bridge: levels of the log, which is kept by Python's logging here."""

from __future__ import annotations

import logging
from enum import IntEnum


class log_level(IntEnum):
    """Names of the levels, with the numbers of Python's logging."""

    trace = 5
    debug = logging.DEBUG
    info = logging.INFO
    warn = logging.WARNING
    error = logging.ERROR
    critical = logging.CRITICAL


_LOG = logging.getLogger("habana_frameworks")


def is_log_python_enabled(level: log_level) -> bool:
    """Whether messages of this level are kept."""
    return _LOG.isEnabledFor(level)


def log_python(level: log_level, message: str) -> None:
    """Keep a message."""
    _LOG.log(level, message)


def enable_logging(logger_name: str, level: log_level) -> None:
    """Keep messages from this level on; there is one log for all parts of the bridge."""
    _LOG.setLevel(level)


def get_pt_logging_levels() -> dict[str, int]:
    """The levels by part of the bridge: none has been set apart."""
    return {}
