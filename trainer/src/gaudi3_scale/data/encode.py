"""Documents to token ids, and which of the tokens are learnt."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from gaudi3_scale.config import DataConfig
from gaudi3_scale.data.piece import Piece
from gaudi3_scale.data.records import ASSISTANT, CONTENT, ROLE
from gaudi3_scale.data.tokenizer import Tokenizer, Tokens
from gaudi3_scale.errors import ConfigError

Learnt = npt.NDArray[np.uint8] | None
GENERATION = re.compile(r"\{%-?\s*generation\b")


class Encoder(Protocol):
    """Makes tokens of pieces."""

    digest: str
    """Of what makes its tokens others than those of the plain text; empty for none."""

    def encode(self, pieces: Sequence[Piece], begins: Sequence[bool]) -> list[tuple[Tokens, Learnt]]:
        """The tokens of each piece, with those put before and after a document, and 1 for each that is learnt; None
        for all. `begins` tells which pieces are the first of their document.
        """
        ...


def open_encoder(config: DataConfig, tokenizer: Tokenizer) -> Encoder:
    """The encoder of `data.content`."""
    if config.content == "chat":
        return ChatEncoder(config, tokenizer)
    return (PromptEncoder if config.content == "prompt" else TextEncoder)(tokenizer)


class TextEncoder:
    """Plain text: all of it is learnt."""

    digest = ""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer

    def encode(self, pieces: Sequence[Piece], begins: Sequence[bool]) -> list[tuple[Tokens, Learnt]]:
        encoded = self._tokenizer.encode([piece.text for piece in pieces])
        return [
            (_framed(self._tokenizer, tokens, first, piece.ends), None)
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
            before = _framed(self._tokenizer, prompt, True, False)
            after = _framed(self._tokenizer, completion, False, True)
            result.append((np.concatenate([before, after]), _marks(len(before), len(after))))
        return result


class ChatEncoder:
    """Conversations as the tokenizer's chat template writes them; what the assistant says is learnt.

    Where the template has generation marks, they tell what the assistant says. Elsewhere it is what an assistant's
    message adds to the text of the messages before it, the end of the turn included.
    """

    def __init__(self, config: DataConfig, tokenizer: Tokenizer) -> None:
        """ConfigError if the tokenizer has no chat template."""
        folder = Path(config.tokenizer)
        if config.tokenizer == "bytes" or not folder.is_dir():
            raise ConfigError(
                f"data.content is chat, and data.tokenizer is {config.tokenizer!r}: give a transformers folder, whose "
                "tokenizer has a chat template."
            )
        try:
            from transformers import AutoTokenizer
        except ImportError:
            raise ConfigError(
                "data.content is chat, for which transformers writes the text: pip install transformers."
            ) from None
        self._tokenizer: Any = AutoTokenizer.from_pretrained(folder, local_files_only=True)
        template = self._tokenizer.chat_template
        if not isinstance(template, str) or not template:
            raise ConfigError(
                f"data.content is chat, and the tokenizer in {config.tokenizer!r} has no chat template: give one that "
                "has (tokenizer_config.json or chat_template.jinja)."
            )
        self.digest = "chat " + hashlib.sha256(template.encode()).hexdigest()
        self._marked = GENERATION.search(template) is not None
        added = self._tokenizer.added_tokens_decoder.values()
        self._special = {*self._tokenizer.all_special_tokens, *(str(token) for token in added if token.special)} - {""}

    def encode(self, pieces: Sequence[Piece], begins: Sequence[bool]) -> list[tuple[Tokens, Learnt]]:
        return [self._conversation(json.loads(piece.text)) for piece in pieces]

    def _conversation(self, messages: list[dict[str, Any]]) -> tuple[Tokens, Learnt]:
        for message in messages:
            found = min((token for token in self._special if token in message[CONTENT]), default=None)
            if found is not None:
                raise ConfigError(
                    f"The message {message[CONTENT][:60]!r} has the special token {found!r} in its text, which could "
                    "end the turn of a conversation: delete or rewrite it."
                )
        try:
            return self._by_marks(messages) if self._marked else self._by_prefix(messages)
        except ConfigError:
            raise
        except Exception as error:  # a template raises what it likes
            raise ConfigError(
                f"The chat template refuses the conversation that begins with {messages[0][CONTENT][:60]!r} ({error}): "
                "delete or rewrite it."
            ) from None

    def _by_marks(self, messages: list[dict[str, Any]]) -> tuple[Tokens, Learnt]:
        made = self._tokenizer.apply_chat_template(
            messages, tokenize=True, return_dict=True, return_assistant_tokens_mask=True
        )
        marks = made["assistant_masks"]
        return np.array(made["input_ids"], dtype=np.uint32), np.array(marks, dtype=np.uint8)

    def _by_prefix(self, messages: list[dict[str, Any]]) -> tuple[Tokens, Learnt]:
        whole = self._text(messages)
        spans = []
        for number, message in enumerate(messages):
            if message[ROLE] == ASSISTANT:
                before = self._text(messages[:number], prompting=True) if number else ""
                after = self._text(messages[: number + 1])
                if not after.startswith(before) or not whole.startswith(after):
                    raise ConfigError(
                        "The tokenizer's chat template writes a message otherwise when others follow, so that it "
                        "cannot be told which tokens are the assistant's: give a template with {% generation %} marks."
                    )
                spans.append((len(before), len(after)))
        made = self._tokenizer(whole, add_special_tokens=False, return_offsets_mapping=True)
        begins, ends = np.array(made["offset_mapping"], dtype=np.int64).reshape(-1, 2).T
        learnt = np.zeros(len(begins), dtype=np.uint8)
        for first, last in spans:
            learnt |= (begins >= first) & (ends <= last) & (ends > begins)
        return np.array(made["input_ids"], dtype=np.uint32), learnt

    def _text(self, messages: list[dict[str, Any]], prompting: bool = False) -> str:
        text: str = self._tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=prompting)
        return text


def _framed(tokenizer: Tokenizer, tokens: Tokens, first: bool, last: bool) -> Tokens:
    """With the tokens that go before and after a document."""
    before = [tokenizer.begin] if first and tokenizer.begin is not None else []
    after = [tokenizer.separator] if last else []
    if not before and not after:
        return tokens
    parts = [np.array(each, dtype=tokens.dtype) for each in (before, after)]
    return np.concatenate([parts[0], tokens, parts[1]])


def _marks(read: int, learnt: int) -> npt.NDArray[np.uint8]:
    return np.concatenate([np.zeros(read, dtype=np.uint8), np.ones(learnt, dtype=np.uint8)])
