"""Names as they were before `models/` and `optimisation.py`."""

from gaudi3_scale.models.build import build
from gaudi3_scale.models.module import LanguageModule
from gaudi3_scale.models.objectives import sample_loss
from gaudi3_scale.optimisation import build_optimizer, learning_rate_scale

__all__ = ["LanguageModule", "build", "build_optimizer", "learning_rate_scale", "sample_loss"]
