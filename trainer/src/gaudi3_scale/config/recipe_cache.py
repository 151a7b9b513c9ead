"""Compiled graphs."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from gaudi3_scale.config.section import Section


class RecipeCacheConfig(Section):
    """Compiled graphs that outlive a job, for PT_HPU_RECIPE_CACHE_CONFIG; see `gaudi3-train recipe-cache`."""

    directory: Path | None = Field(
        None, description="folder of this node's caches, on a local disk; null = the bridge's own way"
    )
    archive: Path | None = Field(
        None, description="of `recipe-cache pack`, taken where this node has no cache of the job's key"
    )
    signing_key_file: Path | None = Field(None, description="key with which the archive was signed, mode 0600")
    size_mb: int = Field(8192, ge=1, description="what the bridge lets the job's cache grow to, in MB")
    keep_gb: float = Field(
        50.0,
        gt=0,
        le=1_000_000,
        description="GB of all caches; beyond it those that were used longest ago are removed",
    )
