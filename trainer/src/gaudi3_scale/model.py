"""The model, its loss and its optimizer, as Lightning's module."""

from __future__ import annotations

import math
from typing import Any

import lightning.pytorch as pl
import torch
from torch import Tensor, nn
from transformers.models.llama.configuration_llama import LlamaConfig
from transformers.models.llama.modeling_llama import LlamaForCausalLM

from gaudi3_scale.config import Config, ModelConfig, TrainConfig
from gaudi3_scale.device import Device


def build_llama(config: ModelConfig) -> nn.Module:
    """A Llama of these sizes with random weights, drawn from torch's global generator."""
    model: nn.Module = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=config.vocab_size,
            hidden_size=config.hidden_size,
            intermediate_size=config.intermediate_size,
            num_hidden_layers=config.layers,
            num_attention_heads=config.heads,
            num_key_value_heads=config.kv_heads,
            max_position_embeddings=config.sequence_length,
            tie_word_embeddings=False,
            use_cache=False,
            bos_token_id=None,
            eos_token_id=None,
        )
    )
    return model


def sample_loss(model: nn.Module, samples: Tensor) -> Tensor:
    """Mean cross-entropy in nats per byte; samples (B, T + 1) int64 give B * T predictions."""
    logits = model(input_ids=samples[:, :-1], use_cache=False).logits
    return nn.functional.cross_entropy(logits.flatten(0, 1).float(), samples[:, 1:].flatten())


def build_optimizer(model: nn.Module, config: TrainConfig) -> torch.optim.AdamW:
    """Fused AdamW; only matrices decay."""
    parameters = [p for p in model.parameters() if p.requires_grad]
    groups = [
        {"params": [p for p in parameters if p.ndim >= 2], "weight_decay": config.weight_decay},
        {"params": [p for p in parameters if p.ndim < 2], "weight_decay": 0.0},
    ]
    fused = all(p.device.type in ("cpu", "cuda") for p in parameters)
    return torch.optim.AdamW(groups, lr=config.learning_rate, betas=(0.9, 0.95), fused=fused)


def learning_rate_scale(step: int, config: TrainConfig) -> float:
    """Share of the peak learning rate at a step: linear rise, then a cosine down to a tenth at max_steps."""
    if step < config.warmup_steps:
        return (step + 1) / config.warmup_steps
    progress = (step - config.warmup_steps) / max(1, config.max_steps - config.warmup_steps)
    return 0.1 + 0.45 * (1 + math.cos(math.pi * min(1.0, progress)))


class LanguageModule(pl.LightningModule):
    """The training step. The loss is summed on the device; whoever logs reads it every few steps."""

    def __init__(self, config: Config, device: Device, state: dict[str, Any] | None = None) -> None:
        """Build the model, or restore it from a checkpoint's state."""
        super().__init__()
        self.model = build_llama(config.model)
        self.model.train()
        if state is not None:
            self.model.load_state_dict(state["model"])
        self._config = config.train
        self._gaudi_device = device
        self._restored = state
        self.loss_sum = torch.zeros((), device=device.torch_device())
        self.loss_count = 0

    def training_step(self, batch: Tensor, batch_idx: int) -> Tensor:
        """Loss of one micro-batch."""
        loss = sample_loss(self.model, batch)
        self.loss_sum += loss.detach()
        self.loss_count += 1
        return loss

    def on_after_backward(self) -> None:
        """Let a lazy device run what was collected."""
        self._gaudi_device.step_boundary()

    def on_train_batch_end(self, outputs: Any, batch: Any, batch_idx: int) -> None:
        """Let a lazy device run what was collected."""
        self._gaudi_device.step_boundary()

    def configure_optimizers(self) -> Any:
        """Optimizer and schedule, where they were at the checkpoint."""
        optimizer = build_optimizer(self.model, self._config)
        scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: learning_rate_scale(step, self._config))
        if self._restored is not None:
            optimizer.load_state_dict(self._restored["optimizer"])
            scheduler.load_state_dict(self._restored["scheduler"])
            self._restored = None  # holds a second copy of all weights
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": scheduler, "interval": "step"}}
