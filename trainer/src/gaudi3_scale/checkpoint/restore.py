"""Models and optimizers as named tensors, and a checkpoint's tensors back into them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn
from torch.distributed.checkpoint import state_dict as names

from gaudi3_scale.checkpoint.frozen import frozen_names
from gaudi3_scale.errors import ConfigError

FROZEN = "frozen"
"""Where a checkpoint without the frozen parameters has their identity."""
Tensors = dict[str, torch.Tensor]


class TrainingState:
    """The live tensors of a model and its optimizers by name, and what else belongs to them.

    Names are those of the parameters, without the prefixes that DDP, torch.compile or activation checkpointing add: a
    checkpoint does not depend on them. Reading into `tensors` restores the training; `apply` does the rest.
    """

    def __init__(self, model: nn.Module, optimizers: Sequence[torch.optim.Optimizer], with_frozen: bool = True) -> None:
        """An optimizer that made no step yet gets its state, as zeros.

        Without `with_frozen` the model's parameters that have no gradient are left alone.
        """
        left = set() if with_frozen else frozen_names(model)
        self.tensors: Tensors = {}
        self._optimizers = optimizers
        self._groups: list[list[dict[str, Any]]] = []
        values: list[dict[str, dict[str, Any]]] = []
        extra: dict[str, Any] = {}
        for name, value in names.get_model_state_dict(model).items():
            if name not in left:
                self._put(extra, name, f"model.{name}", value)
        for number, optimizer in enumerate(optimizers):
            state: dict[str, Any] = dict(names.get_optimizer_state_dict(model, optimizer))
            mine: dict[str, dict[str, Any]] = {}
            for name, parts in state.get("state", {}).items():
                for part, value in parts.items():
                    self._put(mine.setdefault(name, {}), part, f"optimizer.{number}.{name}.{part}", value)
            values.append(mine)
            self._groups.append(state["param_groups"])
        self.rest: dict[str, Any] = {"extra": extra, "groups": self._groups, "values": values}
        """What is no tensor; of types that `torch.load(weights_only=True)` accepts."""

    def _put(self, rest: dict[str, Any], name: str, path: str, value: Any) -> None:
        if isinstance(value, torch.Tensor):
            self.tensors[path] = value
        else:
            rest[name] = value

    def select(self, saved: set[str], where: str) -> Tensors:
        """The tensors to read, given the names in the checkpoint; ConfigError if it is of something else.

        An optimizer has no state of a parameter that never had a gradient: it will have none again.
        """
        unknown = saved - self.tensors.keys()
        missing = self.tensors.keys() - saved
        odd = sorted(unknown | {name for name in missing if not name.startswith("optimizer.")})
        if odd:
            raise ConfigError(
                f"The checkpoint {where} is of another model or optimizer: {odd[0]} is in only one of them "
                f"({len(odd)} such names): use another output_dir, or the configuration it was written with."
            )
        for number, groups in enumerate(self._groups):
            optimizer = self._optimizers[number]
            for group, live in zip(groups, optimizer.param_groups, strict=True):
                for name, parameter in zip(group["params"], live["params"], strict=True):
                    if any(lost.startswith(f"optimizer.{number}.{name}.") for lost in missing):
                        optimizer.state.pop(parameter, None)
        return {name: tensor for name, tensor in self.tensors.items() if name in saved}

    def apply(self, rest: dict[str, Any], where: str) -> None:
        """Restore the values in the optimizers' state that are no tensors, and steps that groups count.

        Hyperparameters stay what they are: see `hyperparameters.py`.
        """
        for number, optimizer in enumerate(self._optimizers):
            here, there = self._groups[number], rest["groups"][number]
            if [group["params"] for group in here] != [group["params"] for group in there]:
                raise ConfigError(
                    f"The optimizer's parameter groups are not those of the checkpoint {where}: "
                    "use another output_dir, or the configuration it was written with."
                )
            by_name: dict[str, torch.Tensor] = {}
            for named, live in zip(there, optimizer.param_groups, strict=True):
                by_name.update(zip(named["params"], live["params"], strict=True))
                # Habana's AdamW counts its steps here, and corrects its moments by them.
                if "step" in named:
                    live["step"] = named["step"]
            for name, parts in rest["values"][number].items():
                optimizer.state[by_name[name]].update(parts)


def capture(
    model: nn.Module, optimizers: Sequence[torch.optim.Optimizer], frozen: str | None = None
) -> tuple[Tensors, dict[str, Any]]:
    """What a checkpoint has of them: the live tensors, and what is no tensor.

    With `frozen`, the identity of the parameters that are not trained, these are left out.
    """
    state = TrainingState(model, optimizers, with_frozen=frozen is None)
    return state.tensors, state.rest if frozen is None else {**state.rest, FROZEN: frozen}
