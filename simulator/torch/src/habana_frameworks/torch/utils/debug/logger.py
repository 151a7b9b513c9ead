"""The log of a part of the bridge."""

from __future__ import annotations

from typing import Any

from habana_frameworks.torch.utils import _debug_C


class Logger:
    """Messages with the part's name before them; `data` has them after `set_store_data(True)`."""

    def __init__(self, type: str) -> None:
        self.type = type
        self.store_data = False
        self.data: list[str] = []

    def log(self, level: _debug_C.log_level, args: tuple[Any, ...]) -> None:
        """Keep a message: a text with {} or % places and their values, or values alone."""
        if not self.store_data and not _debug_C.is_log_python_enabled(level):
            return
        message = f"[{self.type}] {format_args(args)}"
        _debug_C.log_python(level, message)
        if self.store_data:
            self.data.append(message)

    def trace(self, *args: Any) -> None:
        """See `log`."""
        self.log(_debug_C.log_level.trace, args)

    def debug(self, *args: Any) -> None:
        """See `log`."""
        self.log(_debug_C.log_level.debug, args)

    def info(self, *args: Any) -> None:
        """See `log`."""
        self.log(_debug_C.log_level.info, args)

    def warn(self, *args: Any) -> None:
        """See `log`."""
        self.log(_debug_C.log_level.warn, args)

    def error(self, *args: Any) -> None:
        """See `log`."""
        self.log(_debug_C.log_level.error, args)

    def critical(self, *args: Any) -> None:
        """See `log`."""
        self.log(_debug_C.log_level.critical, args)

    def set_store_data(self, enable: bool) -> None:
        """Begin, or end, a list of the messages in `data`."""
        self.store_data = enable
        self.data = []


def format_args(args: tuple[Any, ...]) -> str:
    """The message of `Logger.log`'s arguments."""
    if args and isinstance(args[0], str):
        text, values = args[0], args[1:]
        if "{}" in text:
            return text.format(*map(str, values)) if values else ""
        if "%" in text:
            return text % values
    return ", ".join(map(str, args))


def get_log_level(logger_level: str) -> _debug_C.log_level:
    """The level of a name."""
    assert logger_level in _debug_C.log_level.__members__, (
        f"logger_level is {logger_level!r}, but it has to be one of {', '.join(_debug_C.log_level.__members__)}."
    )
    return _debug_C.log_level[logger_level]


def enable_logging(logger_name: str, logger_level: str) -> None:
    """Keep messages from this level on."""
    _debug_C.enable_logging(logger_name, get_log_level(logger_level))
