"""Random operations under checkpointing: none is replaced here."""

from typing import Any

HABANA_CHECKPOINT_OPS: dict[Any, Any] = {}
