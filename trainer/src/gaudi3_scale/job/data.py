"""A job's data: checked against its model, prepared by one process of each node while the others wait."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gaudi3_scale.config import Config
from gaudi3_scale.console import Console
from gaudi3_scale.data.masking import Masking
from gaudi3_scale.data.mixture import Mixture, Turns
from gaudi3_scale.data.pair_samples import PairSamples
from gaudi3_scale.data.prepare import collect_all
from gaudi3_scale.data.samples import Samples
from gaudi3_scale.data.shards import Corpus
from gaudi3_scale.data.tokenizer import FILE as TOKENIZER_FILE
from gaudi3_scale.data.tokenizer import Tokenizer, load_tokenizer
from gaudi3_scale.distributed.process_group import ProcessGroup
from gaudi3_scale.errors import ConfigError
from gaudi3_scale.job.meanwhile import meanwhile
from gaudi3_scale.models.build import architecture, has_weights, is_masked


def directory(config: Config) -> Path:
    """Where the job's data is prepared."""
    return config.data.directory or config.output_dir / "data"


def check(config: Config) -> Tokenizer:
    """Can this model learn from this tokenizer? ConfigError before any work is done if not."""
    found, tokenizer = architecture(config.model), load_tokenizer(config.data)
    needed = tokenizer.vocabulary
    if config.data.mixture:
        Turns([each.weight for each in config.data.mixture])
    slides = getattr(found, "use_sliding_window", True)
    window = getattr(found, "sliding_window", None) if slides else None
    if config.data.documents and window and window < config.model.sequence_length:
        raise ConfigError(
            f"data.documents is true, and {config.model.name!r} attends within a window of {window} tokens, which the "
            f"mask of documents would take away: set model.sequence_length to {window} or less, or data.documents to "
            "false."
        )
    if is_masked(found):
        if config.data.documents or config.data.contents != {"text"}:
            raise ConfigError(
                f"{config.model.name!r} learns to guess masked tokens, for which there is neither data.documents nor "
                "data.content chat, prompt or preference: leave them out, or choose a causal model."
            )
        if tokenizer.mask is None:
            raise ConfigError(
                f"{config.model.name!r} learns to guess masked tokens, and data.tokenizer {config.data.tokenizer!r} "
                "has no mask token: choose a tokenizer with [MASK] or <mask>, or a causal model."
            )
        needed = max(needed, tokenizer.mask + 1)
    if needed > found.vocab_size:
        raise ConfigError(
            f"data.tokenizer {config.data.tokenizer!r} has ids up to {needed - 1}, and the model has a vocabulary of "
            f"{found.vocab_size}: {_more_vocabulary(config, needed)}"
        )
    beside = Path(config.model.name) / TOKENIZER_FILE
    own = hashlib.sha256(beside.read_bytes()).hexdigest() if has_weights(config.model) and beside.is_file() else None
    if own is not None and own != tokenizer.file_digest():
        raise ConfigError(
            f"The weights in {config.model.name!r} know the tokens of the tokenizer beside them, and data.tokenizer is "
            f"{config.data.tokenizer!r}: set data.tokenizer to {config.model.name!r}, or model.weights to random."
        )
    return tokenizer


def _more_vocabulary(config: Config, needed: int) -> str:
    """What to do about a vocabulary that is too small, which depends on whether there are weights for it."""
    if has_weights(config.model):
        own = Path(config.data.tokenizer).resolve() == Path(config.model.name).resolve()
        return f"call resize_token_embeddings({needed}) on the model in transformers and save it again" + (
            "." if own else ", or use the model's own tokenizer."
        )
    where = "model.vocab_size" if config.model.name == "llama" else "vocab_size in model.config"
    return f"set {where} to {needed} or more, or use a smaller tokenizer."


def prepare(
    config: Config, process_group: ProcessGroup, console: Console, between: Callable[[], None]
) -> Corpus | Mixture:
    """The prepared data, on every node; an error of any writer is everyone's.

    `between` is called every second meanwhile, and may raise to give up; what was prepared so far stays.
    """
    process_group.must_all(lambda: check(config) and None)

    def work() -> None:
        collect_all(config.data, directory(config), console.log, console.draws, config.model.sequence_length)

    # Of nodes that share the folder, each takes parts.
    works = process_group.writer or (process_group.leader and config.data.parts > 1)
    meanwhile(process_group, "prepare", work if works else None, between)
    return collect_all(config.data, directory(config), context=config.model.sequence_length)


def open_samples(config: Config, corpus: Corpus | Mixture) -> Samples:
    """Its samples, of the form that the model's objective wants."""
    if config.data.prefers:
        return PairSamples(corpus, config.data, config.model.sequence_length, config.train.seed)
    masking = None
    if is_masked(architecture(config.model)):
        assert corpus.mask is not None  # see check
        masking = Masking(corpus.mask, corpus.vocabulary, config.train.seed)
    return Samples(corpus, config.data, config.model.sequence_length, config.train.seed, masking)


def check_same(before: Any, now: dict[str, Any], checkpoint: Path, replace: bool) -> None:
    """ConfigError if the checkpoint is of other tokens (see `identity`) and data.replace does not say that this is
    meant.
    """
    known = before if isinstance(before, dict) else {}
    if any(known.get(name) != now[name] for name in ("size", "sha256")) and not replace:
        raise ConfigError(
            f"The checkpoint {checkpoint} was trained on other data (SHA-256 {str(known.get('sha256'))[:12]}, and now "
            f"{now['sha256'][:12]}): use another "
            "output_dir, the data of then, or data.replace=true to go on with this data at the same sample number."
        )
