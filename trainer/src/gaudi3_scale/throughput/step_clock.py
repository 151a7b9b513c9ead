"""What each process does in a step by itself, and how long it waits for the others.

Processes that reduce their gradients together leave the backward pass together: whoever is early waits there. A process
has done its own part when the last of its own gradients is computed. From the end of one backward pass to that moment
it works, waits for data, saves and so on, by its own ledger; from there to the end of the pass it waits.

On a device that works on its own, the host's clock does not see this: marks in the device's work take its place, which
are read where the loss is read, so that nothing is waited for. Where neither is known, nothing is measured.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import median
from typing import TYPE_CHECKING, Any

from gaudi3_scale.hpu import device as devices
from gaudi3_scale.throughput.ledger import CHECKPOINT, COMPUTE, DATA, EVALUATION, OTHER, Ledger

if TYPE_CHECKING:
    import torch

RECOMPILATION = "recompilation"
WAIT = "wait"
OWN = (COMPUTE, DATA, OTHER, CHECKPOINT, EVALUATION)
"""Parts of a ledger that a process works on by itself."""
COLUMNS = (*OWN, RECOMPILATION, WAIT)
"""Of a reading, in nanoseconds; the work of a step and what compiling added to it are apart."""
MOST_SLOTS = 64
"""Steps that a reading has apart; of more, some that follow each other are added up."""
UNKNOWN = -1.0
"""The first number of a reading that says nothing."""


class _Marks:
    """Marks in the device's work, which are used again once they are read."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make
        self._free: list[Any] = []

    def put(self) -> Any:
        mark = self._free.pop() if self._free else self._make()
        mark.record()
        return mark

    def free(self, marks: Sequence[Any]) -> None:
        self._free += [mark for mark in marks if mark is not None]


class StepClock:
    """Times the steps of this process; `met` and `ended` are called in every step."""

    def __init__(self, ledger: Ledger, slots: int, alone: bool, device: torch.device | None = None) -> None:
        """`slots` are the steps that a reading has apart; a process that is `alone` waits for none."""
        self._ledger, self._alone = ledger, alone
        self.slots = max(1, min(slots, MOST_SLOTS))
        self._marks: _Marks | None = None
        self._known = True
        if device is not None and device.type != "cpu" and not alone:
            self._known = devices.timer(device) is not None
            self._marks = _Marks(lambda: devices.timer(device)) if self._known else None
        self._arrived: Any = None
        self._last = ledger.nanoseconds()
        self._rows: list[tuple[int, ...]] = []
        self._compiled: list[bool] = []
        self._new_shape = False
        self._usual = 0.0
        """Of the work in a step without a new shape."""
        self._began: Any = None
        self._seen: list[tuple[Any, ...]] = []
        self._before: tuple[Any, Any] = (None, None)
        """Marks of the step before: where the processes had met, and where the optimizer had made its step."""

    def begun(self, new_shape: bool = False) -> None:
        """A batch is here."""
        self._new_shape = self._new_shape or new_shape
        if self._marks is not None and self._began is None:
            self._began = self._marks.put()

    def computed(self) -> None:
        """This process has all of its own gradients of a step."""
        self._arrived = self._ledger.now() if self._marks is None else self._marks.put()

    def met(self) -> None:
        """The backward pass is over, and with it the exchange of gradients, if this one had one."""
        arrived = self._arrived
        if arrived is None:
            return
        self._arrived = None
        if self._marks is None:
            self._step(self._ledger.now() - arrived)
            return
        met = self._marks.put()
        self._step(0)
        self._seen.append((*self._before, self._began, arrived, met))
        self._before = (met, None)

    def ended(self) -> None:
        """The optimizer has made its step."""
        if self._alone:
            self._step(0)
        elif self._marks is not None and self._began is not None:
            self._began = None
            if self._before[1] is None and self._before[0] is not None:
                self._before = (self._before[0], self._marks.put())

    def read(self) -> tuple[list[float], dict[str, int]]:
        """The steps since the last call, `slots` rows of `COLUMNS`, and what they took of each part of the ledger.

        To be called when the device has done its work.
        """
        rows, self._rows = self._rows, []
        compiled, self._compiled = self._compiled, []
        spent = {part: sum(row[index] for row in rows) for index, part in enumerate(OWN)}
        empty = [0.0] * (self.slots * len(COLUMNS))
        if not rows or not self._known:
            return [UNKNOWN, *empty[1:]], spent
        try:
            own = self._of_host(rows) if self._marks is None else self._of_device(rows)
        except RuntimeError:  # a mark was not reached, or the device gives no times
            self._known = False
            return [UNKNOWN, *empty[1:]], spent
        usual = [row[0] for row, new in zip(own, compiled, strict=True) if not new]
        self._usual = median(usual) if usual else self._usual
        found = empty
        for number, (row, new) in enumerate(zip(own, compiled, strict=True)):
            more = max(0.0, row[0] - self._usual) if new and self._usual else 0.0
            at = number * self.slots // len(own) if len(own) > self.slots else number
            for column, value in enumerate((row[0] - more, *row[1:-1], more, row[-1])):
                found[at * len(COLUMNS) + column] += value
        return found, spent

    def _step(self, waited: int) -> None:
        spent = self._ledger.nanoseconds()
        last, self._last = self._last, spent
        self._rows.append((*[spent[part] - last[part] for part in OWN], waited))
        self._compiled.append(self._new_shape)
        self._new_shape = False

    @staticmethod
    def _of_host(rows: Sequence[tuple[int, ...]]) -> list[list[float]]:
        return [[max(0.0, row[0] - row[-1]), *map(float, row[1:])] for row in rows]

    def _of_device(self, rows: Sequence[tuple[int, ...]]) -> list[list[float]]:
        """The host's parts count as far as the device had nothing to do meanwhile."""
        assert self._marks is not None
        seen, self._seen = self._seen, []
        found = []
        for row, (met_before, ended_before, began, arrived, met) in zip(rows, seen, strict=True):
            own = _between(met_before or began, arrived)
            idle = _between(ended_before, began)
            hosts = row[1:-1]
            noticed = min(1.0, idle / sum(hosts)) if sum(hosts) else 0.0
            parts = [noticed * part for part in hosts]
            found.append([max(0.0, own - sum(parts)), *parts, _between(arrived, met)])
            self._marks.free((met_before, ended_before, began, arrived))
        return found


def _between(first: Any, last: Any) -> float:
    """Nanoseconds from one mark to another; 0 where the first was not made."""
    return float(first.elapsed_time(last)) * 1e6 if first is not None else 0.0


_current: StepClock | None = None


def use(clock: StepClock | None) -> None:
    """Let this clock time the steps; None ends it."""
    global _current
    _current = clock


def met() -> None:
    """A backward pass is over."""
    if _current is not None:
        _current.met()


def watch(model: Any) -> None:
    """Tell the clock when this process has computed all gradients of a step, which DDP then reduces."""
    if not hasattr(model, "require_backward_grad_sync") or model.find_unused_parameters:
        return
    first = next((each for each in model.parameters() if each.requires_grad), None)
    if first is None:
        return

    def computed(_: Any) -> None:
        if _current is not None and model.require_backward_grad_sync:
            _current.computed()

    # The backward pass ends where the forward pass began.
    first.register_post_accumulate_grad_hook(computed)
