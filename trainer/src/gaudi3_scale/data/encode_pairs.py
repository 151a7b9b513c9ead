"""Pairs of answers to token ids: both rows of a pair are one document, with marks that tell them apart."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gaudi3_scale.config import DataConfig
from gaudi3_scale.data.chat_template import ChatEncoder, Learnt
from gaudi3_scale.data.framing import framed
from gaudi3_scale.data.pairs import Pair
from gaudi3_scale.data.piece import Piece
from gaudi3_scale.data.tokenizer import Tokenizer, Tokens
from gaudi3_scale.errors import ConfigError

ANSWER, SECOND = 1, 2
"""Bits of a mark: the token is of an answer; it is in the second row, the one with the rejected answer."""
READING = 1
"""Counts the ways in which pairs were written, so that what an earlier one left is prepared again."""


class PairEncoder:
    """Two rows, prompt and chosen answer before prompt and rejected answer, each as a document would be written."""

    def __init__(self, config: DataConfig, tokenizer: Tokenizer, context: int | None) -> None:
        """`context` is the model's; a prompt that leaves no token of it to an answer is refused."""
        self._tokenizer = tokenizer
        self._context = context
        self._chats: ChatEncoder | None = None
        self._why: ConfigError | None = None
        try:
            self._chats = ChatEncoder(config, tokenizer)
        except ConfigError as error:  # said where there are conversations
            self._why = error
        chats = [self._chats.digest] if self._chats is not None else []
        self.digest = " ".join(["preference", str(READING), str(context), *chats])

    def encode(self, pieces: Sequence[Piece], begins: Sequence[bool]) -> list[tuple[Tokens, Learnt]]:
        return [self._encoded(Pair.loads(str(piece.text))) for piece in pieces]

    def _encoded(self, pair: Pair) -> tuple[Tokens, Learnt]:
        rows = self._of_messages(pair) if pair.conversations else self._of_texts(pair)
        made, marks = [], []
        for number, (tokens, learnt) in enumerate(rows):
            read = int(np.argmax(learnt))
            if self._context is not None and read > self._context:
                raise ConfigError(
                    f"{pair.where} has a prompt of {read:,} {self._tokenizer.unit}s, and model.sequence_length is "
                    f"{self._context:,}, which leaves no room for an answer: delete the record, or set a larger one."
                )
            made.append(tokens)
            marks.append(learnt * np.uint8(ANSWER) | np.uint8(SECOND * number))
        return np.concatenate(made), np.concatenate(marks)

    def _of_texts(self, pair: Pair) -> list[tuple[Tokens, np.ndarray]]:
        prompt, *answers = self._tokenizer.encode([pair.prompt, *pair.answers])
        before = framed(self._tokenizer, prompt, True, False)
        rows = []
        for answer in answers:
            after = framed(self._tokenizer, answer, False, True)
            learnt = np.concatenate([np.zeros(len(before), np.uint8), np.ones(len(after), np.uint8)])
            rows.append((np.concatenate([before, after]), learnt))
        return rows

    def _of_messages(self, pair: Pair) -> list[tuple[Tokens, np.ndarray]]:
        if self._chats is None:
            assert self._why is not None
            raise ConfigError(f"{pair.where} has lists of messages: {str(self._why)[:1].lower()}{str(self._why)[1:]}")
        rows = []
        for talk in pair.conversations:
            tokens, learnt = self._chats.encoded(talk)
            assert learnt is not None
            rows.append((tokens, learnt))
        return rows
