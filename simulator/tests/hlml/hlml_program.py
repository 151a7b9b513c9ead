"""A program over libhlml, as habana-pyhlml is one: ctypes on the library of a release."""

from __future__ import annotations

import contextlib
import ctypes
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from simulated_machine import RELEASE, Machine

import gaudi3_simulator.node
from gaudi3_simulator.vendor import hlml

SUCCESS = 0
UNINITIALIZED = 1
INVALID_ARGUMENT = 2
NOT_SUPPORTED = 3
ALREADY_INITIALIZED = 5
NOT_FOUND = 6
INSUFFICIENT_SIZE = 7
DRIVER_NOT_LOADED = 9
TIMEOUT = 10
AIP_IS_LOST = 15
NO_DATA = 21

CRITICAL, ECC_DOUBLE = 1 << 1, 1 << 0

PACKAGE = Path(gaudi3_simulator.node.__file__).parent


class HlmlError(Exception):
    """A function returned something else than success."""

    def __init__(self, function: str, code: int) -> None:
        super().__init__(f"{function}: {code}")
        self.code = code


class Library:
    """A loaded library."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.raw = ctypes.CDLL(str(path))

    def code(self, function: str, *arguments: Any) -> int:
        """What a function returns."""
        result: int = getattr(self.raw, function)(*arguments)
        return result

    def call(self, function: str, *arguments: Any) -> None:
        """Call a function that has to succeed."""
        code = self.code(function, *arguments)
        if code != SUCCESS:
            raise HlmlError(function, code)

    def count(self) -> int:
        """Number of cards."""
        return self.number("hlml_device_get_count")

    def card(self, index: int) -> ctypes.c_void_p:
        """Handle of the card with this accelerator index."""
        handle = ctypes.c_void_p()
        self.call("hlml_device_get_handle_by_index", index, ctypes.byref(handle))
        return handle

    def number(self, function: str, *arguments: Any, wide: bool = False) -> int:
        """A function's result through its last argument."""
        value: ctypes.c_uint | ctypes.c_ulonglong = ctypes.c_ulonglong() if wide else ctypes.c_uint()
        self.call(function, *arguments, ctypes.byref(value))
        return value.value

    def text(self, function: str, *arguments: Any, length: int = 128) -> str:
        """A function's text."""
        buffer = ctypes.create_string_buffer(length)
        self.call(function, *arguments, buffer, length)
        return buffer.value.decode()

    def structure(self, function: str, kind: Any, *arguments: Any) -> Any:
        """A function's structure."""
        value = kind()
        self.call(function, *arguments, ctypes.byref(value))
        return value


LibraryMaker = Callable[..., Library]


def install(machine: Machine, release: str = RELEASE) -> Path:
    """Put the library and what answers for it where they lie on a node."""
    package = machine.path("/usr/lib/gaudi3-simulator/gaudi3_simulator_node")
    if not package.exists():
        package.parent.mkdir(parents=True, exist_ok=True)
        package.symlink_to(PACKAGE, target_is_directory=True)
    # A name for each release: the loader takes two files of one name for the same library.
    target = machine.path(hlml.LIBRARY).with_name(f"libhlml-{release}.so")
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(hlml.library(release), target)
    return target


@contextlib.contextmanager
def maker() -> Iterator[LibraryMaker]:
    """Opens libraries, and shuts them down at the end."""
    opened: list[Library] = []

    def make(machine: Machine, release: str = RELEASE, initialise: bool = True) -> Library:
        library = Library(install(machine, release))
        opened.append(library)
        if initialise:
            library.call("hlml_init")
        return library

    try:
        yield make
    finally:
        for library in opened:
            library.code("hlml_shutdown")
