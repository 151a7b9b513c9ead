"""Profiling."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from gaudi3_scale.config.section import Section


class ProfileConfig(Section):
    """A trace of a few steps by every rank, in output_dir/profile; see `gaudi3_scale.profiler`."""

    steps: int = Field(0, ge=0, description="optimizer steps to record; 0 = none")
    first_step: int = Field(10, ge=1, description="the first one to record, counted from the job's beginning")
    activities: list[Literal["cpu", "hpu", "cuda", "memory"]] = Field(
        ["hpu", "cuda", "cpu", "memory"], min_length=1, description="what to record, as far as this torch can"
    )
    memory_steps: int = Field(
        0, ge=0, description="steps from first_step on whose allocations go into a snapshot for pytorch.org/memory_viz"
    )
