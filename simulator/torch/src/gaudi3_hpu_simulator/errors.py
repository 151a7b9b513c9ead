"""What the simulator refuses, because it could only pretend."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn


class NotSimulated(NotImplementedError):
    """Gaudi does this; the simulated device does not, and says so."""


def refuse(what: str, instead: str) -> NotSimulated:
    """The error for something of Gaudi's that is not simulated: `what` as a noun, `instead` as an instruction."""
    return NotSimulated(f"The simulated HPU has no {what}: {instead}.")


def refusing(name: str, instead: str) -> Callable[..., NoReturn]:
    """A function of that name that raises the error when it is called."""

    def function(*arguments: Any, **options: Any) -> NoReturn:
        raise refuse(name, instead)

    function.__name__ = function.__qualname__ = name.rpartition(".")[2]
    function.__doc__ = f"{name}: refused."
    return function


def refusing_class(name: str, instead: str, *methods: str) -> type[Any]:
    """A class of that name, to be imported and derived from; making one, or calling one of the methods, is refused."""
    refused = refusing(name, instead)
    members = {method: staticmethod(refusing(f"{name}.{method}", instead)) for method in methods}
    return type(name, (), {"__doc__": f"{name}: refused.", "__init__": refused, **members})
