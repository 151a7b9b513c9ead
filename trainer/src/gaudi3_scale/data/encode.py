"""Documents to token ids, and which of the tokens are learnt."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from gaudi3_scale.config import DataConfig
from gaudi3_scale.config.data import PREFERENCE
from gaudi3_scale.data.chat_template import ChatEncoder
from gaudi3_scale.data.chat_template import Learnt as Learnt
from gaudi3_scale.data.encode_pairs import PairEncoder
from gaudi3_scale.data.framing import framed
from gaudi3_scale.data.piece import Piece
from gaudi3_scale.data.tokenizer import Tokenizer, Tokens


class Encoder(Protocol):
    """Makes tokens of pieces."""

    digest: str
    """Of what makes its tokens others than those of the plain text; empty for none."""

    def encode(self, pieces: Sequence[Piece], begins: Sequence[bool]) -> list[tuple[Tokens, Learnt]]:
        """The tokens of each piece, with those put before and after a document, and 1 for each that is learnt; None
        for all. `begins` tells which pieces are the first of their document.
        """
        ...


def open_encoder(config: DataConfig, tokenizer: Tokenizer, context: int | None = None) -> Encoder:
    """The encoder of `data.content`; `context` is the model's, which the prompt of a pair has to fit into."""
    if config.content == PREFERENCE:
        return PairEncoder(config, tokenizer, context)
    if config.content == "chat":
        return ChatEncoder(config, tokenizer)
    return (PromptEncoder if config.content == "prompt" else TextEncoder)(tokenizer)


class TextEncoder:
    """Plain text: every token is learnt."""

    digest = ""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer

    def encode(self, pieces: Sequence[Piece], begins: Sequence[bool]) -> list[tuple[Tokens, Learnt]]:
        encoded = self._tokenizer.encode([piece.text for piece in pieces])
        return [
            (framed(self._tokenizer, tokens, first, piece.ends), None)
            for tokens, first, piece in zip(encoded, begins, pieces, strict=True)
        ]


class PromptEncoder:
    """A prompt that is read and a completion that is learnt, with the end of the text."""

    digest = "prompt"

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer

    def encode(self, pieces: Sequence[Piece], begins: Sequence[bool]) -> list[tuple[Tokens, Learnt]]:
        pairs = [json.loads(piece.text) for piece in pieces]
        prompts, completions = (self._tokenizer.encode([pair[side] for pair in pairs]) for side in (0, 1))
        result: list[tuple[Tokens, Learnt]] = []
        for prompt, completion in zip(prompts, completions, strict=True):
            before = framed(self._tokenizer, prompt, True, False)
            after = framed(self._tokenizer, completion, False, True)
            result.append((np.concatenate([before, after]), _marks(len(before), len(after))))
        return result


def _marks(read: int, learnt: int) -> npt.NDArray[np.uint8]:
    return np.concatenate([np.zeros(read, dtype=np.uint8), np.ones(learnt, dtype=np.uint8)])
