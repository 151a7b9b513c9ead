"""A model of transformers for answers: its folder, tokenizer and end tokens, and one pass over a padded batch."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from gaudi3_scale.errors import ConfigError
from gaudi3_scale.hpu.device import Device, resolve
from gaudi3_scale.models.build import quiet_bars
from gaudi3_scale.models.folder import weight_paths
from gaudi3_scale.serving.request import Request

if TYPE_CHECKING:
    import torch

KINDS = {"full_attention", "sliding_attention", "chunked_attention"}
_TOKENIZERS = ("tokenizer.json", "tokenizer.model", "vocab.json", "spiece.model")


class LoadedModel:
    """What the batcher needs of a model."""

    def __init__(self, model: Any, tokenizer: Any | None, device: Device, max_length: int | None = None) -> None:
        import inspect

        text = model.config.get_text_config()
        if odd := sorted({*(getattr(text, "layer_types", None) or ())} - KINDS):
            raise ConfigError(
                f"The model has layers of {', '.join(odd)}, which are not batched here: install vLLM to serve it."
            )
        if model.config.is_encoder_decoder:
            raise ConfigError("The model has an encoder, which is not served here: give a causal language model.")
        self._model, self._device, self.tokenizer = model.eval(), device, tokenizer
        self.device = device.torch_device()
        self.vocabulary = int(text.vocab_size)
        made_for = int(getattr(text, "max_position_embeddings", 0) or 0)
        if max_length is not None and made_for and max_length > made_for:
            raise ConfigError(f"max_length is {max_length}, and the model was made for {made_for}: give at most that.")
        self.length = max_length or made_for or None
        given = model.generation_config.eos_token_id
        self.end_tokens = frozenset([given] if isinstance(given, int) else given or ())
        keeps = "logits_to_keep" in inspect.signature(model.forward).parameters
        self._options: dict[str, Any] = {"logits_to_keep": 1} if keeps else {}

    def tokens_of(self, request: Request) -> tuple[int, ...]:
        """The prompt's tokens. Raises ConfigError for one that the model can never answer."""
        if isinstance(request.prompt, str):
            if self.tokenizer is None:
                raise ConfigError(
                    "The folder has no tokenizer: give token ids, or export the model with its tokenizer."
                )
            tokens = tuple(self.tokenizer(request.prompt).input_ids)
        else:
            tokens = tuple(int(token) for token in request.prompt)
        if request.stop and self.tokenizer is None:
            raise ConfigError("The folder has no tokenizer, so no text can end an answer: give no stop.")
        if not tokens:
            raise ConfigError("The prompt has no tokens: give a longer text.")
        if odd := [token for token in tokens if not 0 <= token < self.vocabulary]:
            raise ConfigError(f"The prompt has token {odd[0]}, and the model has tokens 0 to {self.vocabulary - 1}.")
        if self.length and len(tokens) + request.max_new_tokens > self.length:
            raise ConfigError(
                f"The prompt has {len(tokens)} tokens and {request.max_new_tokens} more are asked for, above the"
                f" length of {self.length}: shorten one of them."
            )
        return tokens

    def logits(self, tokens: torch.Tensor, mask: torch.Tensor, cache: Any) -> torch.Tensor:
        """The next token's logits (rows, vocabulary), in float32 on the device.

        ``tokens``: (rows, new positions). ``mask``: (rows, all positions), on the device, 0 where padded.
        """
        positions = (mask.cumsum(dim=1) - 1).clamp(min=0)[:, -tokens.shape[1] :]
        found = self._model(
            input_ids=tokens.to(self.device),
            attention_mask=mask,
            position_ids=positions,
            past_key_values=cache,
            use_cache=True,
            **self._options,
        ).logits[:, -1]
        self._device.step_boundary()
        return found.float()  # type: ignore[no-any-return]


def load(folder: Path, device: str, dtype: str, max_length: int | None) -> LoadedModel:
    """The model and tokenizer of a folder as transformers writes it; nothing is fetched and no code of it is run."""
    if not (folder / "config.json").is_file():
        raise ConfigError(f"{folder} has no config.json: give a folder that gaudi3-train export wrote.")
    weight_paths(folder)
    quiet_bars()
    found = resolve(device, 0, 1)
    from transformers import AutoModelForCausalLM, AutoTokenizer

    given: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
    try:
        model = AutoModelForCausalLM.from_pretrained(folder, dtype=dtype, **given)
        there = any((folder / name).is_file() for name in _TOKENIZERS)
        tokenizer = AutoTokenizer.from_pretrained(folder, **given) if there else None
    except (OSError, TypeError, ValueError) as error:
        why = (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
        raise ConfigError(f"transformers cannot load {folder} as {dtype}: {why}: export the model again.") from error
    return LoadedModel(model.to(found.torch_device()), tokenizer, found, max_length)
