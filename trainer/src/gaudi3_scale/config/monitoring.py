"""What is called an anomaly, and what is done about it."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from gaudi3_scale.config.section import Section

Action = Literal["prefetch", "free_memory", "checkpoint"]


class MonitoringConfig(Section):
    """Anomalies of speed and memory; looked for at logged steps (train.log_every)."""

    enabled: bool = Field(True, description="look for them")
    warmup_steps: int = Field(20, ge=0, description="steps of each process that are not judged, as they warm up")
    step_time: float = Field(0.1, gt=0, description="lasting rise of the step time that is reported, as a share of it")
    data_wait: float = Field(0.1, gt=0, lt=1, description="share of a step spent waiting for data that is reported")
    memory_creep: float = Field(0.05, gt=0, description="steady growth of memory that is reported, as a share of it")
    straggler: float = Field(0.2, gt=0, description="how much slower than the others a process is that is reported")
    actions: tuple[Action, ...] = Field(
        (),
        description="what the job may do itself: prefetch = read further ahead on data_wait, taken back if it does not "
        "help; free_memory = collect garbage and empty the cache on memory_creep; checkpoint = save at once on what is "
        "critical",
    )
