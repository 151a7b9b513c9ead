"""Is the training finite? Noted on the device in every step, and read only where the loss is read anyway."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from gaudi3_scale.errors import TrainerError

REMEDY = (
    "started again, the job resumes from its newest checkpoint: lower train.learning_rate, lengthen train.warmup_steps "
    "or tighten train.gradient_clip"
)
OWN_REMEDY = (
    "no checkpoint has it, and started again, training resumes from the newest one: lower the learning rate, lengthen "
    "the warm-up or clip the gradients, or give GaudiCheckpoint check_finite=False."
)


class NotFiniteError(TrainerError):
    """The loss, the gradients or the weights are NaN or infinite."""


class FiniteSteps:
    """Which is the first step whose value was not finite? Nothing waits for the device until somebody reads.

    `finite` is the number of values before the first one that was not. No constant changes from step to step, since a
    device that compiles graphs would compile one for each.
    """

    def __init__(self, device: torch.device) -> None:
        self.finite = torch.zeros((), device=device)
        self.noted = 0
        """Values since the last `reset`."""
        self._all_finite = torch.ones((), dtype=torch.bool, device=device)

    def note(self, value: Tensor) -> None:
        """The next step's, a scalar on the device."""
        self.noted += 1
        self._all_finite.logical_and_(torch.isfinite(value))
        self.finite += self._all_finite

    def reset(self) -> None:
        """Begin again."""
        self.noted = 0
        self._all_finite.fill_(True)
        self.finite.zero_()


class FiniteLosses:
    """The check for a Trainer of one's own: of what `training_step` returned, and of what is to be saved."""

    def __init__(self) -> None:
        self._values: FiniteSteps | None = None
        self._steps: list[int] = []

    def note(self, outputs: Any, step: int) -> None:
        """Take the outputs of a batch, after which the optimizer had made this many steps, if they have a loss."""
        loss = outputs.get("loss") if isinstance(outputs, Mapping) else outputs
        if not isinstance(loss, Tensor) or loss.numel() != 1:
            return
        if self._values is None:
            self._values = FiniteSteps(loss.device)
        self._steps.append(step)
        self._values.note(loss.detach().reshape(()))

    def require(self, trainer: Any, peers: Any) -> None:
        """Raise NotFiniteError on all ranks if any of them has one; forget what was noted. Collective."""
        finite = len(self._steps) if self._values is None else int(self._values.finite.item())
        bad = self._steps[finite] if finite < len(self._steps) else None
        state = bool(is_state_finite(trainer.optimizers).item())
        self._steps.clear()
        if self._values is not None:
            self._values.reset()
        told = peers.gather((bad, state))
        for rank, (step, _) in enumerate(told):
            if step is not None:
                raise NotFiniteError(f"The loss of step {step} is not finite on rank {rank}: {OWN_REMEDY}")
        if not all(good for _, good in told):
            raise NotFiniteError(
                f"The weights or the optimizer's state are not finite after step {trainer.global_step}: {OWN_REMEDY}"
            )


@torch.no_grad()
def gradient_norm(parameters: Sequence[Tensor], clip: float) -> Tensor:
    """The norm of all gradients, which are scaled down to `clip` if it is larger (0 = never); the same on all ranks.

    Those of split matrices are on another mesh than the others, and torch takes no norm over two.
    """
    from torch.distributed.tensor import DTensor

    by_mesh: dict[Any, list[Tensor]] = {}
    for parameter in parameters:
        if parameter.grad is not None:
            by_mesh.setdefault(getattr(parameter.grad, "device_mesh", None), []).append(parameter)
    norms = []
    for group in by_mesh.values() or [[]]:
        norm = torch.nn.utils.get_total_norm([p.grad for p in group if p.grad is not None])
        norms.append(norm.full_tensor() if isinstance(norm, DTensor) else norm)
    norm = norms[0] if len(norms) == 1 else torch.nn.utils.get_total_norm(norms)
    for group in by_mesh.values() if clip else ():
        torch.nn.utils.clip_grads_with_norm_(group, clip, norm)
    return norm


@torch.no_grad()
def is_state_finite(optimizers: Iterable[torch.optim.Optimizer]) -> Tensor:
    """1 if what is trained and the optimizers' state have only finite values on this rank, else 0; on the device.

    Buffers are not looked at: a mask of a model may well be infinite.
    """
    from torch.distributed.tensor import DTensor

    tensors = []
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                for value in (parameter, *optimizer.state.get(parameter, {}).values()):
                    local = value.to_local() if isinstance(value, DTensor) else value
                    if isinstance(local, Tensor) and local.is_floating_point() and local.numel():
                        tensors.append(local.detach())
    # The largest absolute value, which is NaN if any is; a sum of squares could overflow where no value is infinite.
    largest = torch.nn.utils.get_total_norm(tensors, norm_type=float("inf"))
    return torch.isfinite(largest).float()
