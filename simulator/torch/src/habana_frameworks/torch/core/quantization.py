"""Older place of the inference environment's functions."""

from __future__ import annotations

from typing import Any


def hpu_set_inference_env() -> None:
    """As in `habana_frameworks.torch.core`."""
    from habana_frameworks.torch import core

    core.hpu_set_inference_env()


def hpu_teardown_inference_env() -> None:
    """As in `habana_frameworks.torch.core`."""
    from habana_frameworks.torch import core

    core.hpu_teardown_inference_env()


def hpu_inference_initialize(*arguments: Any, **options: Any) -> None:
    """As in `habana_frameworks.torch.core`."""
    from habana_frameworks.torch import core

    core.hpu_inference_initialize(*arguments, **options)
