"""What an hour of the job costs, and what it may cost in all."""

from __future__ import annotations

import datetime
from typing import Literal

from pydantic import Field, model_validator

from gaudi3_scale.config.section import Section


class CostConfig(Section):
    """Money; without a price nothing is counted."""

    node_price_per_hour: float | None = Field(None, gt=0, description="of one node; null = cost is not counted")
    price_source: str = Field("", description="where the price is from, as a contract or a page; needed with it")
    price_date: datetime.date | None = Field(None, description="when it was seen, as 2026-11-23; needed with it")
    currency: str = Field("USD", pattern="^[A-Z]{3}$", description="of all amounts, as ISO 4217 has it")
    nodes: int = Field(0, ge=0, description="nodes that are paid for, spares included; 0 = those that train")
    bill_pauses: bool = Field(
        True, description="nodes are paid for between an interruption and the restart, too; false = they are given back"
    )
    budget: float | None = Field(None, gt=0, description="money for the whole job, restarts included; null = no limit")
    alert_at: float = Field(0.8, gt=0, le=1, description="share of the budget at which a warning is printed")
    on_budget: Literal["alert", "stop"] = Field(
        "alert", description="when the budget is spent: alert = say so; stop = save a checkpoint and leave with 75"
    )
    projected: float | None = Field(None, gt=0, description="what the job was expected to cost, for chargeback")
    team: str = Field("", description="who pays, for chargeback")
    project: str = Field("", description="what for, for chargeback")

    @model_validator(mode="after")
    def _sourced(self) -> CostConfig:
        if self.node_price_per_hour is not None and not (self.price_source and self.price_date):
            raise ValueError(
                f"node_price_per_hour is {self.node_price_per_hour:g} without price_source and price_date, which say "
                "where and when it was seen"
            )
        if self.budget is not None and self.node_price_per_hour is None:
            raise ValueError(f"budget is {self.budget:g} and node_price_per_hour is null, so nothing is counted")
        return self
