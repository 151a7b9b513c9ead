"""The six dashboards: what each panel asks, and what it tells."""

from __future__ import annotations

from tests.dashboards.catalogue import cost, fabric, fleet, resources, serving, training
from tests.dashboards.model import Board

BOARDS: list[Board] = [fleet.BOARD, training.BOARD, resources.BOARD, fabric.BOARD, cost.BOARD, serving.BOARD]
