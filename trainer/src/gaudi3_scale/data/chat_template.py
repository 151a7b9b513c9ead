"""Conversations as the tokenizer's chat template writes them, and which of their tokens the assistant says.

Templates differ in what they take: the arguments of a call as an object or as a string of JSON, a text as a string or
as a list of parts, no content or an empty one beside a call. Each conversation is written in the first of these forms
that the template takes whole. What it would leave out without an error is found and refused (`written`).
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from gaudi3_scale.config import DataConfig
from gaudi3_scale.data.conversation import (
    ASSISTANT,
    CALLS,
    CONTENT,
    ROLE,
    WEIGHT,
    Conversation,
    is_learnt,
    strings,
)
from gaudi3_scale.data.marks import Said, Spans
from gaudi3_scale.data.piece import Piece
from gaudi3_scale.data.tokenizer import Tokenizer, Tokens
from gaudi3_scale.data.written import NotWritten, check_learnt, lower, prove
from gaudi3_scale.errors import ConfigError

Learnt = np.ndarray[Any, np.dtype[np.uint8]] | None
GENERATION = re.compile(r"\{%-?\s*generation\b")
PARTS = "parts"
READING = 2
"""Counts the ways in which conversations were read, so that what an earlier one left out is prepared again."""


@dataclass(frozen=True, slots=True)
class _Form:
    """How the messages are given to the template."""

    arguments: str
    """object or string."""
    content: str
    """given, string or parts."""
    empty: bool
    """Whether a message without content gets an empty one."""


FORMS = [_Form(*each) for each in product(("object", "string"), ("given", "string", PARTS), (False, True))]


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
                f"data.content is {config.content}, and data.tokenizer is {config.tokenizer!r}: give a transformers "
                "folder, whose tokenizer has a chat template."
            )
        try:
            from transformers import AutoTokenizer
        except ImportError:
            raise ConfigError(
                f"data.content is {config.content}, for which transformers writes the text: pip install transformers."
            ) from None
        try:
            self._tokenizer: Any = AutoTokenizer.from_pretrained(folder, local_files_only=True)
        except Exception as error:  # the library raises no narrower one
            raise ConfigError(
                f"data.tokenizer {config.tokenizer!r} cannot be loaded by transformers ({_reason(error)}): mend "
                "the folder."
            ) from None
        templates = self._tokenizer.chat_template
        if not templates or (isinstance(templates, dict) and "default" not in templates):
            raise ConfigError(
                f"data.content is {config.content}, and the tokenizer in {config.tokenizer!r} has no chat template: "
                "give one that has (tokenizer_config.json or chat_template.jinja)."
            )
        written = templates if isinstance(templates, str) else json.dumps(templates, sort_keys=True)
        self.digest = f"chat {READING} " + hashlib.sha256(written.encode()).hexdigest()
        added = self._tokenizer.added_tokens_decoder.values()
        self._special = {*self._tokenizer.all_special_tokens, *(str(token) for token in added if token.special)} - {""}

    def encode(self, pieces: Sequence[Piece], begins: Sequence[bool]) -> list[tuple[Tokens, Learnt]]:
        return [self.encoded(Conversation.loads(str(piece.text))) for piece in pieces]

    def encoded(self, talk: Conversation) -> tuple[Tokens, Learnt]:
        """The tokens of one conversation, and 1 for each that is learnt."""
        for path, text in strings([talk.messages, talk.tools]):
            found = min((token for token in self._special if token in text), default=None)
            if found is not None:
                raise ConfigError(
                    f"{talk.where} has the special token {found!r} in its text, in {path}, which could end the turn of "
                    "a conversation: delete or rewrite it."
                )
        refusals: list[ConfigError] = []
        seen: list[list[dict[str, Any]]] = []
        for form in FORMS:
            messages = [_formed(message, form) for message in talk.messages]
            if messages in seen:
                continue
            seen.append(messages)
            try:
                return self._in_form(talk, messages, form)
            except ConfigError as error:
                refusals.append(error)
        raise max(refusals, key=lambda error: error.found if isinstance(error, NotWritten) else math.inf)

    def _in_form(self, talk: Conversation, messages: list[dict[str, Any]], form: _Form) -> tuple[Tokens, Learnt]:
        template = str(self._tokenizer.get_chat_template(None, talk.tools))

        def render(given: list[dict[str, Any]], tools: Any) -> tuple[list[dict[str, Any]], str]:
            formed = [_formed(message, form) for message in given]
            return formed, self._text(formed, tools)

        try:
            whole = self._text(messages, talk.tools)
            said = prove(talk, whole, template, render)
            marked = GENERATION.search(template) is not None
            spans = (
                self._by_marks(talk, messages, whole, template)
                if marked
                else self._by_prefix(talk, messages, whole, said)
            )
            if talk.answer:
                spans = self._of_answer(talk, messages, whole, spans)
            made, learnt = self._tokens(whole, spans)
        except ConfigError:
            raise
        except Exception as error:  # a template raises what it likes
            raise NotWritten(
                f"The chat template of the tokenizer refuses {lower(talk.where)} ({_reason(error)}): delete or "
                "rewrite it."
            ) from None
        check_learnt(talk, said, spans, marked)
        return made, learnt

    def _by_marks(self, talk: Conversation, messages: list[dict[str, Any]], whole: str, template: str) -> Spans:
        for number, message in enumerate(talk.messages[talk.answer :], talk.first + talk.answer):
            if message[ROLE] == ASSISTANT and not is_learnt(message):
                raise ConfigError(
                    f"{talk.where} has 0 in {WEIGHT!r} of message {number}, and the marks of the tokenizer's chat "
                    "template have all of the assistant's messages learnt: delete the record, or the marks."
                )
        from transformers.utils.chat_template_utils import render_jinja_template

        # Not transformers' mask of tokens: a blank that a tokenizer leaves out of its offsets has it go on to the end.
        (rendered,), (spans,) = render_jinja_template(
            conversations=[messages], tools=talk.tools, chat_template=template, return_assistant_tokens_mask=True,
            **self._tokenizer.special_tokens_map,
        )  # fmt: skip
        if rendered != whole:
            raise ConfigError(
                f"The tokenizer's chat template writes {lower(talk.where)} in two ways, so that it is unclear "
                "which tokens are the assistant's: delete the record, or correct the template."
            )
        return list(spans)

    def _by_prefix(self, talk: Conversation, messages: list[dict[str, Any]], whole: str, said: list[Said]) -> Spans:
        spans = []
        for number, message in enumerate(talk.messages):
            if is_learnt(message):
                after = self._text(messages[: number + 1], talk.tools)
                before = self._before(talk, messages, number, after, said)
                if not after.startswith(before) or not whole.startswith(after):
                    raise ConfigError(
                        f"The tokenizer's chat template writes message {number + talk.first} of {lower(talk.where)} "
                        "otherwise when others follow, so that it is unclear which tokens are the assistant's: "
                        "give a template with {% generation %} marks."
                    )
                spans.append((len(before), len(after)))
        return spans

    def _of_answer(self, talk: Conversation, messages: list[dict[str, Any]], whole: str, spans: Spans) -> Spans:
        """What is learnt of the messages after the prompt."""
        before = self._text(messages[: talk.answer], talk.tools, prompting=True)
        if not whole.startswith(before):
            raise ConfigError(
                f"The tokenizer's chat template writes the prompt of {lower(talk.where)} otherwise when an answer "
                "follows, so that it is unclear where that begins: delete the record, or correct the template."
            )
        return [(max(begin, len(before)), end) for begin, end in spans if end > len(before)]

    def _tokens(self, whole: str, spans: Spans) -> tuple[Tokens, Any]:
        """The tokens of a text, and which of them are learnt: those that reach into a span."""
        made = self._tokenizer(whole, add_special_tokens=False, return_offsets_mapping=True)
        begins, ends = np.array(made["offset_mapping"], dtype=np.int64).reshape(-1, 2).T
        # A tokenizer may leave a blank out of the offsets of the word behind it, and then a token of blanks has none.
        begins = np.minimum(begins, np.concatenate([[0], ends[:-1]]))
        learnt = np.zeros(len(begins), dtype=np.uint8)
        for first, last in spans:
            # The first word of an answer may be one token with the blank that the prompt ends with.
            learnt |= (ends > first) & (begins < last)
        return np.array(made["input_ids"], dtype=np.uint32), learnt

    def _before(
        self, talk: Conversation, messages: list[dict[str, Any]], number: int, after: str, said: list[Said]
    ) -> str:
        """The text before what an assistant's message says."""
        if number:
            return self._text(messages[:number], talk.tools, prompting=True)
        # No template writes a conversation of no messages: what a prompt adds to the first one begins its turn as well.
        begin = self._text(messages[:1], talk.tools, prompting=True).removeprefix(after)
        first = min((each.places[0][0] for each in said if each.number == talk.first and each.places), default=0)
        at = after.rfind(begin, 0, first) if begin else -1
        if at < 0:
            raise ConfigError(
                f"The tokenizer's chat template does not write message {talk.first} of {lower(talk.where)} behind what "
                "it writes to prompt for an answer, so that it is unclear where the answer begins: give a template "
                "with {% generation %} marks, or delete the record."
            )
        return after[: at + len(begin)]

    def _text(self, messages: list[dict[str, Any]], tools: Any, prompting: bool = False) -> str:
        text: str = self._tokenizer.apply_chat_template(
            messages, tools=tools, tokenize=False, add_generation_prompt=prompting
        )
        return text


def _reason(error: Exception) -> str:
    """The first line of what a library says, or the kind of its error where it says nothing."""
    said = str(error).strip()
    return said.splitlines()[0].rstrip(".") if said else type(error).__name__


def _formed(message: dict[str, Any], form: _Form) -> dict[str, Any]:
    made = {name: value for name, value in message.items() if name != WEIGHT}
    if CONTENT not in made:
        if form.empty:
            made[CONTENT] = ""
    elif form.content == "string" and isinstance(made[CONTENT], list):
        made[CONTENT] = "\n".join(part["text"] for part in made[CONTENT])
    elif form.content == PARTS and isinstance(made[CONTENT], str):
        made[CONTENT] = [{"type": "text", "text": made[CONTENT]}]
    if CALLS in made and form.arguments == "string":
        made[CALLS] = [
            {**call, "function": {**call["function"], "arguments": json.dumps(call["function"]["arguments"])}}
            for call in made[CALLS]
        ]
    return made
