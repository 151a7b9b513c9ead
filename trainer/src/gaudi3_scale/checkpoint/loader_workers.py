"""The workers of a script's data loaders, whose number a position in the data is bound to.

torchdata's StatefulDataLoader 0.11 takes a position over only with the number of workers that it was saved with, and
ends in an AssertionError otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def workers_of(state: object) -> int | None:
    """The number of workers that a loader's state was saved with; None where it does not say so."""
    if not isinstance(state, Mapping):
        return None
    if "_snapshot" in state:
        main = state["_snapshot"].get("_main_snapshot", {}) if isinstance(state["_snapshot"], Mapping) else {}
        number = main.get("_num_workers")
        return number if isinstance(number, int) else None
    return 0 if "_num_yielded" in state else None


def other_workers(states: object, loaders: Any) -> str | None:
    """Why loaders cannot go on from their states, in one sentence; None where the numbers of workers are the same.

    `loaders` is a loader, or a list or mapping of loaders, as `Trainer.train_dataloader` has them.
    """
    saved = [workers_of(state) for state in states] if isinstance(states, list) else []
    # Lightning keeps the states of loaders that have one.
    for was, loader in zip(saved, [each for each in _flat(loaders) if hasattr(each, "load_state_dict")], strict=False):
        now = getattr(loader, "num_workers", None)
        if was is not None and now is not None and was != now:
            return (
                f"The checkpoint was saved with num_workers={was} of the data loader, and this run has {now}, "
                f"with which torchdata cannot find the position again: set num_workers={was}."
            )
    return None


def _flat(loaders: Any) -> list[Any]:
    if isinstance(loaders, Mapping):
        loaders = list(loaders.values())
    return [loader for each in loaders for loader in _flat(each)] if isinstance(loaders, list | tuple) else [loaders]
