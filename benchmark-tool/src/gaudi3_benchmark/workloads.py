"""The shapes that are measured: model, batch, loss and operations of one training step.

Language models are those of `gaudi3_scale.models`, built as `gaudi3-train fit` builds them. The diffusion model is the
U-Net of Stable Diffusion 1, as the library diffusers has it (extra `diffusion`), in latent space: the autoencoder and
the text encoder, which are frozen in its training, are not run. Weights and data are random, so nothing is downloaded.

| shape | from | parameters |
|---|---|---|
| stable-diffusion-1-unet | v1-inference.yaml of CompVis/stable-diffusion, read 2026-11-23 | 859,520,964 |
| diffusion-unet-tiny | ours: the same architecture, of a size for tests | 52,004 |
"""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from gaudi3_benchmark.result import Case
from gaudi3_scale.config.shapes import LENGTHS, SHAPES
from gaudi3_scale.errors import ConfigError
from gaudi3_scale.extras import how_to_install

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn

    from gaudi3_scale.config import Config
    from gaudi3_scale.hpu.device import Device

LATENT = 8
"""Pixels along one side of an image for each latent pixel (Rombach et al., arXiv:2112.10752: the factor of the KL-f8
autoencoder, which Stable Diffusion has)."""
TEXT_TOKENS = 77
"""Length of the text that conditions it, that of CLIP."""
MASKED = 0.15
"""Share of the tokens that BERT has to guess (Devlin et al., arXiv:1810.04805, section 3.1)."""
DIFFUSION: dict[str, dict[str, Any]] = {
    "stable-diffusion-1-unet": {
        "in_channels": 4,
        "out_channels": 4,
        "block_out_channels": [320, 640, 1280, 1280],
        "layers_per_block": 2,
        "cross_attention_dim": 768,
        "attention_head_dim": 8,  # by its name in diffusers; it is the number of heads
    },
    "diffusion-unet-tiny": {
        "in_channels": 4,
        "out_channels": 4,
        "block_out_channels": [8, 16],
        "layers_per_block": 1,
        "cross_attention_dim": 16,
        "attention_head_dim": 2,
        "norm_num_groups": 4,
        "down_block_types": ["CrossAttnDownBlock2D", "DownBlock2D"],
        "up_block_types": ["UpBlock2D", "CrossAttnUpBlock2D"],
    },
}


@dataclass
class Workload:
    """One case, ready to be stepped."""

    model: nn.Module
    batch: Any
    loss: Callable[[], Tensor]
    """Of a forward pass of the model over the batch; a scalar."""
    unit: Literal["tokens", "images"]
    units_per_step: int
    flops_per_step: float | None
    parameters: int
    config: Config
    """Of the optimizer."""


def shapes() -> list[str]:
    """Names of all of them."""
    return [*SHAPES, *DIFFUSION]


def default_size(shape: str) -> int:
    """Tokens of a sequence, or pixels along a side of an image; 64 of the tiny shapes."""
    if shape in DIFFUSION:
        return 64 if shape.endswith("-tiny") else 512
    return 64 if shape.endswith("-tiny") else LENGTHS[SHAPES[shape]["model_type"]]


def check(case: Case, mode: str) -> None:
    """ConfigError for a case that cannot be measured, before anything is."""
    if case.shape not in shapes():
        near = difflib.get_close_matches(case.shape, shapes(), n=1, cutoff=0.5)
        hint = f"did you mean {near[0]!r}? Known are" if near else "known are"
        raise ConfigError(f"--shape is {case.shape!r}, which is no known shape: {hint} {', '.join(shapes())}.")
    if case.shape in DIFFUSION:
        _check_diffusion(case, mode)
        return
    from gaudi3_scale.models.build import architecture

    architecture(_config(case, mode).model)


def build(case: Case, mode: str, device: Device) -> Workload:
    """The model on the device, in training mode, and a batch of random data there."""
    import torch

    from gaudi3_scale.distributed.randomness import seed_all

    seed_all(0)
    config = _config(case, mode)
    torch_device = device.torch_device()
    if case.shape in DIFFUSION:
        return _diffusion(case, config, device, torch_device)
    from gaudi3_scale.models.build import is_masked
    from gaudi3_scale.models.objectives import training_loss
    from gaudi3_scale.step.module import LanguageModule
    from gaudi3_scale.throughput.flops import count

    module = LanguageModule(config, device)
    model = module.model.to(torch_device)
    named: Any = model.config
    shape = (case.batch_size, case.size)
    if is_masked(named):
        batch = _masked(torch.randint(0, named.vocab_size, shape))
    else:
        batch = torch.randint(0, named.vocab_size, (case.batch_size, case.size + 1))
    batch = batch.to(torch_device)
    tokens = case.batch_size * case.size
    return Workload(
        model,
        batch,
        lambda: training_loss(model, batch, module.loss_chunks),
        "tokens",
        tokens,
        count(model).per_token(case.size) * tokens,
        sum(parameter.numel() for parameter in model.parameters()),
        config,
    )


def _config(case: Case, mode: str) -> Config:
    from gaudi3_scale.config import load

    overrides = [f"train.mode={mode}"]
    if case.shape in SHAPES:
        overrides += [f"model.name={case.shape}", f"model.sequence_length={case.size}"]
        overrides += [f"memory.activation_checkpointing={case.recompute}"]
        overrides += [f"model.config.{name}={value}" for name, value in case.config.items()]
    return load(None, overrides)


def _masked(tokens: Tensor) -> Tensor:
    """Inputs and labels, (B, 2, T): every label but the masked ones is ignored."""
    import torch

    from gaudi3_scale.data.masking import IGNORED

    labels = torch.where(torch.rand(tokens.shape) < MASKED, tokens, torch.full_like(tokens, IGNORED))
    return torch.stack([tokens, labels], dim=1)


def _check_diffusion(case: Case, mode: str) -> None:
    _unet_class()
    step = LATENT * 2 ** (len(_sizes(case)["block_out_channels"]) - 1)
    if case.size % step:
        raise ConfigError(
            f"--size is {case.size}, and {case.shape} halves its latents so often that a side has to be a multiple of "
            f"{step} pixels: give one."
        )
    if case.recompute not in ("none", "full"):
        raise ConfigError(f"--recompute is {case.recompute}, and {case.shape} has none and full: give one of them.")
    unknown = sorted(case.config.keys() - DIFFUSION["diffusion-unet-tiny"].keys())
    if unknown:
        raise ConfigError(
            f"--set has {unknown[0]!r}, which {case.shape} lacks: give one of "
            f"{', '.join(DIFFUSION['diffusion-unet-tiny'])}."
        )
    _config(case, mode)


def _sizes(case: Case) -> dict[str, Any]:
    return {**DIFFUSION[case.shape], **case.config}


def _unet_class() -> Any:
    try:
        from diffusers import UNet2DConditionModel
    except ImportError:
        raise ConfigError(
            "The shape is a diffusion model, and diffusers is not installed: "
            f"{how_to_install('diffusion')}, or choose another shape."
        ) from None
    return UNet2DConditionModel


def _inputs(case: Case, sizes: dict[str, Any], batch: int, torch_device: torch.device) -> tuple[Tensor, Tensor, Tensor]:
    """Noisy latents (B, 4, H/8, W/8), time steps (B,) and the text's embeddings (B, 77, width)."""
    import torch

    side, dtype = case.size // LATENT, torch.bfloat16 if case.precision == "bf16-true" else torch.float32
    noisy = torch.randn((batch, sizes["in_channels"], side, side)).to(torch_device, dtype)
    times = torch.randint(0, 1000, (batch,)).to(torch_device)
    return noisy, times, torch.randn((batch, TEXT_TOKENS, sizes["cross_attention_dim"])).to(torch_device, dtype)


def _diffusion(case: Case, config: Config, device: Device, torch_device: torch.device) -> Workload:
    """The noise is predicted, and the loss is the mean squared error of it (Ho et al., arXiv:2006.11239, eq. 14)."""
    import torch

    sizes, make = _sizes(case), _unet_class()
    model: Any = make(**sizes).to(torch_device).train()
    if case.recompute == "full":
        model.enable_gradient_checkpointing()
    backend = device.compile_backend(config.train.mode)
    if backend is not None:
        model.compile(backend=backend)
    noisy, times, text = _inputs(case, sizes, case.batch_size, torch_device)
    noise = torch.randn_like(noisy, dtype=torch.float32)

    def loss() -> Tensor:
        return torch.nn.functional.mse_loss(model(noisy, times, text, return_dict=False)[0].float(), noise)

    return Workload(
        model,
        noisy,
        loss,
        "images",
        case.batch_size,
        unet_flops(case) * case.batch_size,
        sum(parameter.numel() for parameter in model.parameters()),
        config,
    )


def unet_flops(case: Case) -> float:
    """Operations of one image, forward and backward: three times those of the forward pass, which torch counts.

    A product's backward pass has two products of its size. Counted on shapes alone, without memory.
    """
    import torch
    from torch.utils.flop_counter import FlopCounterMode

    sizes, make, meta = _sizes(case), _unet_class(), torch.device("meta")
    with meta:
        model = make(**sizes)
    plain = case.model_copy(update={"precision": "32-true"})
    counter = FlopCounterMode(display=False)
    with counter, torch.no_grad():
        model(*_inputs(plain, sizes, 1, meta), return_dict=False)
    return 3.0 * counter.get_total_flops()
