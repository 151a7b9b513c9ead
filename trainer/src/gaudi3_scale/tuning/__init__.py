"""Search the settings of a job for the fastest, or the cheapest, by short trials of the job itself.

    from gaudi3_scale.tuning import AutoTuner

`gaudi3-train tune` is its command line. Each trial is a real `gaudi3-train fit` in a folder of its own. Optuna (extra
`tune`) chooses them and is imported when a search begins.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gaudi3_scale.lazy import lazily

if TYPE_CHECKING:
    from gaudi3_scale.tuning.space import Space
    from gaudi3_scale.tuning.study_options import Limits, Options
    from gaudi3_scale.tuning.trial import Outcome, Trial
    from gaudi3_scale.tuning.tuner import AutoTuner, Result

__all__ = ["AutoTuner", "Limits", "Options", "Outcome", "Result", "Space", "Trial"]

__getattr__ = lazily(
    __name__,
    {
        "AutoTuner": "tuning.tuner",
        "Limits": "tuning.study_options",
        "Options": "tuning.study_options",
        "Outcome": "tuning.trial",
        "Result": "tuning.tuner",
        "Space": "tuning.space",
        "Trial": "tuning.trial",
    },
)
