"""GaudiCheckpoint of a user's own module beside weights that are not trained."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from test_checkpoint_callback import Module, fit

from gaudi3_scale.checkpoint.fetch import read_all
from gaudi3_scale.errors import ConfigError


class Beside(Module):
    """A head that is trained after a layer that is not."""

    def __init__(self, base: float = 0.5) -> None:
        super().__init__()
        self.layers[0].weight.data.fill_(base)
        self.layers[0].requires_grad_(False)

    def configure_optimizers(self) -> Any:
        """The head's only."""
        return torch.optim.AdamW(self.layers[2].parameters(), lr=0.01)


def train(folder: Path, module: Module, stop: int = 0, save_frozen: bool = False) -> list[float]:
    """The losses of six steps, or until a kill."""
    return fit(folder, stop, 6, module=module, accumulate=1, save_frozen=save_frozen).losses


@pytest.mark.filterwarnings("ignore")
def test_what_is_not_trained_can_stay_out_of_checkpoints(tmp_path: Path) -> None:
    whole = train(tmp_path / "whole", Beside(), save_frozen=True)
    assert len(whole) == 6 and train(tmp_path / "less", Beside(), stop=4) == whole[:4]

    def model(folder: str, step: int) -> list[str]:
        tensors = read_all(tmp_path / folder / f"step-{step:08d}")["tensors"]
        return sorted(name for name in tensors if name.startswith("model."))

    head = ["model.layers.2.bias", "model.layers.2.weight"]
    assert model("less", 4) == head
    assert model("whole", 4) == ["model.layers.0.bias", "model.layers.0.weight", *head]
    with pytest.raises(ConfigError) as error:
        train(tmp_path / "less", Beside(0.25))
    assert str(error.value) == (
        f"The checkpoint {tmp_path / 'less' / 'step-00000004'} holds only what was trained beside other frozen weights "
        "than this model's: give the base that it was trained with, or another output_dir."
    )
    assert train(tmp_path / "less", Beside()) == whole[4:]
    assert train(tmp_path / "whole", Beside(0.25)) == [], "a whole checkpoint brings its own base"
