"""Digits that are noise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

TRAIN, TEST = 160, 96


class MNIST(torch.utils.data.Dataset):  # type: ignore[type-arg]
    """Images of 1 x 28 x 28 with a class each; the same at every start."""

    def __init__(
        self, root: str, train: bool = True, download: bool = False, transform: Callable[..., Any] | None = None
    ) -> None:
        generator = torch.Generator().manual_seed(1 if train else 2)
        count = TRAIN if train else TEST
        self.targets = torch.randint(0, 10, (count,), generator=generator)
        # Brighter for higher digits, so that there is something to learn.
        self.images = torch.rand((count, 1, 28, 28), generator=generator) * 0.5 + self.targets.view(-1, 1, 1, 1) / 20
        self.transform = transform

    def __len__(self) -> int:
        return len(self.targets)

    def __getitem__(self, index: int) -> tuple[Any, int]:
        image: Any = self.images[index]
        return (self.transform(image) if self.transform else image), int(self.targets[index])
