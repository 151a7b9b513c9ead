"""Lightning's Trainer that always says where it trains."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable
from typing import Any

import lightning.pytorch as pl
from lightning.pytorch.plugins.precision import Precision
from lightning.pytorch.strategies import Strategy

from gaudi3_scale.errors import ConfigError
from gaudi3_scale.hpu.device import available, first_available
from gaudi3_scale.integration.accelerator import CLASSES, GaudiAccelerator
from gaudi3_scale.integration.lightning_variants import check_module
from gaudi3_scale.precision import PRECISIONS, refusal

STRATEGIES = ("gaudi_single", "habana_ddp", "habana_fsdp", "optimized_ddp")

log = logging.getLogger(__name__)


class GaudiTrainer(pl.Trainer):
    """`lightning.pytorch.Trainer` on HPU, else CUDA, else CPU; what is named is taken or refused, never replaced.

    Args:
        accelerator: auto, hpu (also: gaudi), cuda, cpu, or a GaudiAccelerator.
        strategy: auto (gaudi_single for one process, else habana_ddp), gaudi_single, habana_ddp, habana_fsdp,
            optimized_ddp, or one of these strategies as an object.
        devices: processes on this node, one per device; auto = what torchrun started, else all that there are (1 on
            CPU).
        num_nodes: nodes.
        precision: 32-true, bf16-mixed or bf16-true; or a GaudiMixedPrecision among `plugins`.
        plugins: as Lightning's.
        steps_before: optimizer steps that earlier processes made, which `global_step` does not count; see `step_of`.
        **named: whatever else Lightning's Trainer takes.

    Logs one line with what was chosen. Raises ConfigError.
    """

    def __init__(
        self,
        accelerator: str | GaudiAccelerator = "auto",
        strategy: str | Strategy = "auto",
        devices: int | str | list[int] = "auto",
        num_nodes: int = 1,
        precision: str | None = None,
        plugins: Any = None,
        steps_before: int = 0,
        **named: Any,
    ) -> None:
        accelerator = _accelerator(accelerator)
        plugins = list(plugins) if isinstance(plugins, Iterable) else [] if plugins is None else [plugins]
        if precision is not None and precision not in PRECISIONS:
            raise ConfigError(refusal(precision))
        if devices == "auto":
            single = strategy == "gaudi_single"
            devices = int(os.environ.get("LOCAL_WORLD_SIZE") or 0) or (1 if single else available(accelerator.kind))
        count = len(type(accelerator).parse_devices(devices)) * num_nodes
        if strategy == "auto":
            strategy = "gaudi_single" if count == 1 else "habana_ddp"
        if isinstance(strategy, str) and strategy not in STRATEGIES:
            raise ConfigError(f"strategy is {strategy!r}: give auto or one of {', '.join(STRATEGIES)}.")
        own = next((plugin for plugin in plugins if isinstance(plugin, Precision)), None)
        if int(os.environ.get("RANK") or os.environ.get("LOCAL_RANK") or 0) == 0:
            log.info(
                "GaudiTrainer: %d x %s, strategy %s, precision %s",
                count,
                accelerator.kind,
                strategy if isinstance(strategy, str) else type(strategy).__name__,
                own.precision if own is not None else precision or "32-true",
            )
        super().__init__(
            accelerator=accelerator,
            strategy=strategy,
            devices=devices,
            num_nodes=num_nodes,
            precision=precision,
            plugins=plugins or None,
            **named,
        )
        self.steps_before = steps_before

    def fit(self, model: Any, *arguments: Any, **named: Any) -> None:
        check_module(model)
        super().fit(model, *arguments, **named)

    def validate(self, model: Any = None, *arguments: Any, **named: Any) -> Any:
        check_module(model)
        return super().validate(model, *arguments, **named)

    def test(self, model: Any = None, *arguments: Any, **named: Any) -> Any:
        check_module(model)
        return super().test(model, *arguments, **named)

    def predict(self, model: Any = None, *arguments: Any, **named: Any) -> Any:
        check_module(model)
        return super().predict(model, *arguments, **named)


def step_of(trainer: Any) -> int:
    """Optimizer steps of the whole training that any Trainer has come to."""
    steps: int = trainer.global_step + getattr(trainer, "steps_before", 0)
    return steps


def _accelerator(wanted: Any) -> GaudiAccelerator:
    if isinstance(wanted, GaudiAccelerator):
        return wanted
    if wanted == "auto":
        return GaudiAccelerator(first_available())
    kind = "hpu" if wanted == "gaudi" else wanted
    if kind not in CLASSES:
        raise ConfigError(f"accelerator is {wanted!r}: give auto, hpu, cuda, cpu or a GaudiAccelerator.")
    return GaudiAccelerator(kind)
