"""The words of the page for what a job's time goes to are those of the trainer, in its order."""

from __future__ import annotations

from gaudi3_scale.throughput import goodput
from gaudi3_watch.causes import LABELS, PARTS


def test_the_causes_are_the_trainers() -> None:
    assert list(PARTS.items()) == list(goodput.PARTS.items())
    assert list(LABELS) == list(PARTS)
