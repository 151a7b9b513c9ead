"""The callbacks of a job, in the order in which Lightning calls them: in each hook, from first to last.

What one of them does is the state in which the next one finds the run, so the order is part of what a step is.
`check_order` refuses another one when the training starts.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import lightning.pytorch as pl

from gaudi3_scale.callbacks.evaluate import Evaluate
from gaudi3_scale.callbacks.finite import FiniteCheck
from gaudi3_scale.callbacks.interrupt import Interrupt
from gaudi3_scale.callbacks.report import Report
from gaudi3_scale.callbacks.save import Restore, Save
from gaudi3_scale.callbacks.start import Start
from gaudi3_scale.checkpoint.saver import Saver
from gaudi3_scale.data.samples import Samples
from gaudi3_scale.errors import TrainerError
from gaudi3_scale.run import Run

ORDER: tuple[type[pl.Callback], ...] = (
    Restore,  # weights, optimizer and schedule of the checkpoint, before anything looks at them
    Start,  # gradient buckets, then the random state, which settling them has drawn from
    Report,  # counts the step and reads its loss: what is not finite must not be saved, and the line of a step is
    # written before its checkpoint
    Save,  # the state after the step that was counted
    Interrupt,  # leaves after the save, which need not be repeated then
    Evaluate,  # last, as a job that leaves begins no evaluation
)


def callbacks_of(
    run: Run, saver: Saver, samples: Samples, state: dict[str, Any] | None, rank_state: dict[str, Any] | None
) -> list[pl.Callback]:
    """Those of a run; `state` is that of the checkpoint which it resumes from, `rank_state` this rank's part of it."""
    finite = FiniteCheck(run)
    report = Report(run, finite)
    save = Save(run, saver, report, finite)
    return [
        *([Restore(run, state)] if state is not None else []),
        Start(run, rank_state),
        report,
        save,
        Interrupt(run, save),
        Evaluate(run, samples, report, save),
    ]


def check_order(callbacks: Sequence[pl.Callback]) -> None:
    """Raise TrainerError if two of the job's callbacks are in another order than `ORDER`; others may be anywhere."""
    found = [callback for callback in callbacks if type(callback) in ORDER]
    for before, after in itertools.pairwise(found):
        if ORDER.index(type(before)) > ORDER.index(type(after)):
            raise TrainerError(
                f"The callback {type(before).__name__} comes before {type(after).__name__}, which has to be called "
                f"first: give them in the order {', '.join(kind.__name__ for kind in ORDER)}."
            )
