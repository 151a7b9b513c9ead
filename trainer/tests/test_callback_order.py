"""The order of a job's callbacks: another one is refused before the first step is made."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gaudi3_scale.config import Config
from gaudi3_scale.errors import TrainerError
from gaudi3_scale.job import step_order
from gaudi3_scale.job.fit import fit

SMALL = {"layers": 1, "hidden_size": 16, "intermediate_size": 32, "heads": 2, "kv_heads": 2, "sequence_length": 16}


def swapped(made: list[Any], one: str, other: str) -> list[Any]:
    """The same callbacks with two of them in each other's place."""
    names = [type(callback).__name__ for callback in made]
    first, second = names.index(one), names.index(other)
    made[first], made[second] = made[second], made[first]
    return made


def test_a_wrong_order_is_refused_at_the_start(tmp_path: Path, text: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A checkpoint that is saved before its step is counted is one of the step before."""
    original = step_order.callbacks_of
    monkeypatch.setattr(
        step_order, "callbacks_of", lambda *given: swapped(original(*given), "LossCallback", "GaudiCheckpoint")
    )
    config = Config.model_validate(
        {
            "device": "cpu",
            "output_dir": tmp_path,
            "model": SMALL,
            "train": {"max_steps": 2},
            "data": {"source": str(text), "validation_samples": 2},
            "metrics": {"enabled": False},
        }
    )
    with pytest.raises(
        TrainerError, match=r"^The callback GaudiCheckpoint comes before \w+, which has to be called first: "
    ):
        fit(config)
    assert not list((tmp_path / "checkpoints").glob("step-*"))
