"""The state of torchrun's rendezvous, read as data: torch unpickles whatever stands in the store, which runs it.

The store listens on the network and asks nobody who they are. As in `checkpoint.description`, every class that the
pickle names is replaced by a record, and torch's objects are made of the records' values, each of which is checked.
"""

from __future__ import annotations

import io
import pickle
from datetime import datetime, timedelta, timezone
from typing import Any

from gaudi3_scale.internals import NODE_DESCRIPTION, ROUND, have_state_reader

PLAIN: dict[tuple[str, str], Any] = {("datetime", kind.__name__): kind for kind in (datetime, timedelta, timezone)}
PLAIN |= {("builtins", kind.__name__): kind for kind in (set, frozenset)}
"""They cannot be changed, and do nothing but hold values."""


class _Record:
    """What the pickle makes of one class: the state it was given."""

    def __init__(self) -> None:
        self.state: Any = None

    def __new__(cls, *arguments: Any) -> _Record:
        made = super().__new__(cls)
        made.state = None
        return made

    def __setstate__(self, state: Any) -> None:
        self.state = state


class _Unpickler(pickle.Unpickler):
    def __init__(self, data: bytes) -> None:
        super().__init__(io.BytesIO(data))
        # Of this pickle alone, as a pickle may set attributes of a class.
        self.round: type[_Record] = type("Round", (_Record,), {})
        self.node: type[_Record] = type("Node", (_Record,), {})

    def find_class(self, module: str, name: str) -> Any:
        """A record's class, or one that holds plain values; exact names, without dots."""
        if (module, name) == (ROUND.module, ROUND.name):
            return self.round
        if (module, name) == (NODE_DESCRIPTION.module, NODE_DESCRIPTION.name):
            return self.node
        if (module, name) in PLAIN:
            return PLAIN[module, name]
        raise pickle.UnpicklingError(f"it refers to {module}.{name}")


def read_state(data: bytes) -> Any:
    """torch's state of a rendezvous; pickle.UnpicklingError if the bytes are anything else. Nothing in them runs."""
    from torch.distributed.elastic.multiprocessing.api import SignalException

    unpickler = _Unpickler(data)
    try:
        found = unpickler.load()
        if type(found) is not unpickler.round:
            raise ValueError("it is no state of a rendezvous")
        return _round(found.state, unpickler.node)
    except (pickle.UnpicklingError, SignalException):  # the latter comes at any time, and torchrun waits for it
        raise
    except Exception as error:  # a broken pickle raises almost anything
        raise pickle.UnpicklingError(str(error).splitlines()[0][:200] if str(error) else type(error).__name__) from None


def install() -> None:
    """Have torchrun read the state this way."""
    have_state_reader(read_state)


def _round(values: Any, node: type[_Record]) -> Any:
    made = ROUND.get()()
    if set(values) != set(vars(made)):
        raise ValueError("its fields are not those of this torch")
    for name, default in vars(made).items():
        setattr(made, name, _like(default, values[name], node))
    return made


def _like(default: Any, value: Any, node: type[_Record]) -> Any:
    """A value of the same type as the one that a new state has: torch's own classes have no types to check against."""
    if default is None:
        if value is not None and type(value) is not datetime:
            raise ValueError("its deadline is no time")
        return value
    if type(value) is not type(default):
        raise ValueError(f"it has a {type(value).__name__} in place of a {type(default).__name__}")
    if isinstance(value, set):
        return {_node(each, node) for each in value}
    if isinstance(value, dict):
        if any(type(each) not in (int, datetime) for each in value.values()):
            raise ValueError("a node has neither a rank nor a time")
        return {_node(each, node): number for each, number in value.items()}
    return value


def _node(record: Any, node: type[_Record]) -> Any:
    if type(record) is not node:
        raise ValueError("what it lists is no node")
    state = record.state
    if {name: type(value) for name, value in state.items()} != {"addr": str, "pid": int, "local_id": int}:
        raise ValueError("a node's fields are not those of this torch")
    return NODE_DESCRIPTION.get()(**state)
