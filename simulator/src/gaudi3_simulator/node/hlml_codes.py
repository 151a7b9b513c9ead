"""Return codes of libhlml's header, and the error that carries one."""

from __future__ import annotations

SUCCESS = 0
INVALID_ARGUMENT = 2
NOT_SUPPORTED = 3
NOT_FOUND = 6
DRIVER_NOT_LOADED = 9
AIP_IS_LOST = 15
NO_DATA = 21
UNKNOWN = 49


class Refused(Exception):
    """The library answers with an error code."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


def number(word: str) -> int:
    """A number as the library writes it."""
    if not word.isdigit():
        raise Refused(INVALID_ARGUMENT)
    return int(word)
