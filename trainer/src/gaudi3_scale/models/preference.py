"""What is learnt from pairs of answers: direct preference optimization (Rafailov et al., "DPO", 2023).

The loss is that of equation 7, and the log-probability of an answer the sum over its tokens. The reference is the model
that training began from: with adapters the same model without them, else a table of what its answers had, computed
before the first step.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from gaudi3_scale.config import Config
from gaudi3_scale.data.masking import IGNORED
from gaudi3_scale.data.pair_samples import NUMBER
from gaudi3_scale.models.chunked import chunks_for, token_losses
from gaudi3_scale.models.one_sequence import one_sequence_per_row

FIGURES = (
    *("rewards/chosen", "rewards/rejected", "rewards/accuracies", "rewards/margins"),
    *("logps/chosen", "logps/rejected"),
)
"""What is reported of pairs beside the loss, under trl's names."""


@dataclass(frozen=True)
class PreferenceLoss:
    """The loss of a batch of pairs, as `data.pair_samples` has them."""

    beta: float
    chunks: int
    """memory.loss_chunks."""
    has_adapters: bool

    @classmethod
    def of(cls, config: Config) -> PreferenceLoss:
        """That of a job."""
        return cls(config.preference.beta, config.memory.loss_chunks, config.model.lora.rank > 0)

    def __call__(self, model: nn.Module, pairs: Tensor, table: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """The mean loss in nats per pair, with a gradient, and the means of `FIGURES`, (6,), without.

        Args:
            model: as it is trained.
            pairs: (B, 5, T) int64.
            table: (N, 2), log-probabilities of the reference by number of the pair; None = 0 for all, where the model
                has no adapters.
        """
        own = self.log_probabilities(model, pairs)
        # After the pass with gradients: autocast keeps casts of weights, and one made without has no history.
        reference = self._reference(model, pairs, table)
        with torch.autocast(pairs.device.type, enabled=False):  # an HPU's would lower the products to bfloat16
            return self._loss(own, reference, (pairs[:, 1] != IGNORED).any(1))

    def _loss(self, own: Tensor, reference: Tensor, counted: Tensor) -> tuple[Tensor, Tensor]:
        """Of pairs with an answer; what only fills a batch has none."""
        count = counted.sum().clamp(min=1)
        rewards = self.beta * (own - reference)
        margins = rewards[:, 0] - rewards[:, 1]
        each = -nn.functional.logsigmoid(margins)
        with torch.no_grad():
            columns = [rewards[:, 0], rewards[:, 1], (margins > 0).float(), margins, own[:, 0], own[:, 1]]
            figures = torch.stack([(column * counted).sum() for column in columns]) / count
        return (each * counted).sum() / count, figures

    def log_probabilities(self, model: nn.Module, pairs: Tensor) -> Tensor:
        """(B, 2) float32: of the chosen and of the rejected answer of each pair, given its prompt."""
        size, _, length = pairs.shape
        sides = pairs[:, :NUMBER].reshape(size, 2, 2, length)
        inputs = torch.cat([sides[:, 0, 0], sides[:, 1, 0]])
        labels = torch.cat([sides[:, 0, 1], sides[:, 1, 1]])

        def forward() -> Any:
            with one_sequence_per_row():
                return model(input_ids=inputs, use_cache=False)

        parts = chunks_for(model, labels.numel(), self.chunks)
        found = token_losses(model, labels, parts, forward) if parts > 1 else None
        if found is not None:
            losses = found[0]
        else:
            logits = forward().logits.flatten(0, 1).float()
            losses = nn.functional.cross_entropy(logits, labels.flatten(), ignore_index=IGNORED, reduction="none")
        return -losses.reshape(2, size, length).sum(2).t()

    def _reference(self, model: nn.Module, pairs: Tensor, table: Tensor | None) -> Tensor:
        if self.has_adapters:
            with torch.no_grad(), as_it_began(model):
                return self.log_probabilities(model, pairs)
        if table is None:
            return torch.zeros((len(pairs), 2), device=pairs.device)
        return table[pairs[:, NUMBER, 0]]

    def training_loss(self, model: nn.Module, pairs: Tensor) -> Tensor:
        """What the gradients are of, for whoever predicts a step without its data."""
        return self(model, pairs)[0]


@contextmanager
def as_it_began(model: Any) -> Iterator[None]:
    """The model without its adapters and, as a reference has none, without dropout."""
    changed = [module for module in model.modules() if module.training]
    for module in changed:
        module.training = False
    try:
        with model.disable_adapter():
            yield
    finally:
        for module in changed:
            module.training = True
