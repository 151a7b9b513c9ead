"""Lightning's two distributions: `lightning` (import lightning.pytorch) and `pytorch-lightning` (pytorch_lightning).

Their classes are not the same objects, so each needs the accelerator to be one of its own and the strategies to be
registered with it. `lightning.pytorch` is required; the other is served when it is in use.
"""

from __future__ import annotations

import contextlib
import importlib
import sys
from typing import Any

from gaudi3_scale.errors import ConfigError
from gaudi3_scale.internals import InternalChangedError, have_choose

SECOND = "pytorch_lightning"
NAMES = ("hpu", "gaudi")
"""Of the accelerator; Lightning 2.6 has none of either."""
_registered: list[str] = []
_MIXINS: list[Any] = []
"""Mixins over DDPStrategy that `register_strategy` was given."""


def register() -> None:
    """Make the names known to `lightning.pytorch`; called when `gaudi3_scale.integration` is imported."""
    from lightning.pytorch.accelerators import AcceleratorRegistry
    from lightning.pytorch.strategies import StrategyRegistry

    from gaudi3_scale.integration.accelerator import BEFORE_FIRST_USE, GaudiAccelerator
    from gaudi3_scale.integration.strategies import GaudiSingleStrategy, HabanaDDPStrategy, HabanaFSDPStrategy

    for name in NAMES:
        AcceleratorRegistry.register(name, GaudiAccelerator, description="Intel Gaudi", override=True)
    for strategy in (HabanaDDPStrategy, HabanaFSDPStrategy, GaudiSingleStrategy):
        StrategyRegistry.register(strategy.strategy_name, strategy, description=strategy.__doc__ or "", override=True)
    _choose("lightning.pytorch")
    BEFORE_FIRST_USE.append(register_second)
    register_second()


def _choose(lightning: str) -> None:
    """Have `strategy="auto"` mean ours on our accelerator, for which Lightning has no public way.

    Lightning 2.6 takes the CPU for one process on an accelerator that it does not know, its own DDP for several, and
    refuses one that is called hpu.
    """
    from gaudi3_scale.integration.accelerator import GaudiAccelerator

    def choose(accelerator: Any, nodes: int, devices: int) -> str | None:
        if not isinstance(accelerator, GaudiAccelerator):
            return None
        return "gaudi_single" if nodes * devices == 1 else "habana_ddp"

    with contextlib.suppress(InternalChangedError):  # then the accelerator refuses by name what Lightning chose
        have_choose(lightning, choose)


def register_second() -> None:
    """The same for the other distribution, if it has been imported."""
    if SECOND not in sys.modules or SECOND in _registered:
        return
    _registered.append(SECOND)
    from gaudi3_scale.integration.accelerator import GaudiAccelerator
    from gaudi3_scale.integration.strategies import GaudiSingle, HabanaDDP, HabanaFSDP

    accelerators = importlib.import_module(f"{SECOND}.accelerators")
    strategies = importlib.import_module(f"{SECOND}.strategies")
    accelerators.Accelerator.register(GaudiAccelerator)
    for name in NAMES:
        accelerators.AcceleratorRegistry.register(name, GaudiAccelerator, description="Intel Gaudi", override=True)
    bases: dict[Any, Any] = {
        HabanaDDP: strategies.DDPStrategy,
        **dict.fromkeys(_MIXINS, strategies.DDPStrategy),
        HabanaFSDP: strategies.ModelParallelStrategy,
        GaudiSingle: strategies.SingleDeviceStrategy,
    }
    for ours, theirs in bases.items():
        _register_second_strategy(strategies, ours, theirs)
    _choose(SECOND)


def register_strategy(strategy: Any, ours: Any) -> None:
    """Make a strategy over DDPStrategy known to both, by the mixin that it has in common with the other's.

    For one that is defined elsewhere, in a module that is imported by `gaudi3_scale.integration`, or imports it.
    """
    from lightning.pytorch.strategies import StrategyRegistry

    StrategyRegistry.register(strategy.strategy_name, strategy, description=ours.__doc__ or "", override=True)
    _MIXINS.append(ours)
    if SECOND in _registered:
        strategies = importlib.import_module(f"{SECOND}.strategies")
        _register_second_strategy(strategies, ours, strategies.DDPStrategy)


def _register_second_strategy(strategies: Any, ours: Any, theirs: Any) -> None:
    made: Any = type(f"{ours.__name__}Strategy", (ours, theirs), {"__doc__": ours.__doc__})
    strategies.StrategyRegistry.register(ours.strategy_name, made, description=ours.__doc__ or "", override=True)


def check_module(module: Any) -> None:
    """Refuse a module of the other distribution, which GaudiTrainer's Lightning would not know."""
    origins = {base.__module__.split(".")[0] for base in type(module).__mro__ if base.__name__ == "LightningModule"}
    if SECOND in origins:
        raise ConfigError(
            f"{type(module).__name__} is a module of pytorch_lightning, and GaudiTrainer is of lightning: write "
            "`import lightning.pytorch as pl` in place of `import pytorch_lightning as pl`, or use pytorch_lightning's "
            "Trainer(accelerator=GaudiAccelerator(), strategy='habana_ddp')."
        )
