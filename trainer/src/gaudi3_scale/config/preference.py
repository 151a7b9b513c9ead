"""How strongly preferences pull."""

from __future__ import annotations

from pydantic import Field

from gaudi3_scale.config.section import Section


class PreferenceConfig(Section):
    """Preference tuning (DPO), under data.content preference."""

    beta: float = Field(
        0.1, gt=0, description="how much staying near the reference counts: a larger one keeps the model nearer to it"
    )

    @property
    def changed(self) -> list[str]:
        """Names of what is not as by default."""
        return [name for name, field in type(self).model_fields.items() if getattr(self, name) != field.default]
