"""A prompt with two answers, of which one is preferred: read of a record, checked, and as text until it is tokenised.

Records hold them as trl's do: `prompt`, `chosen` and `rejected`, either texts or lists of messages. Where messages have
no `prompt`, it is what both lists begin with.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from gaudi3_scale.data.conversation import (
    BESIDE,
    CONTENT,
    MEDIA,
    VALUE,
    WEIGHT,
    Conversation,
    check_characters,
    check_unread,
    conversation,
    kind,
)
from gaudi3_scale.errors import ConfigError

PROMPT, CHOSEN, REJECTED = "prompt", "chosen", "rejected"
ANSWERS = (CHOSEN, REJECTED)
DELETE = "delete the record"


class Pair(NamedTuple):
    """One record: a prompt and its answers, or the conversations that end with these, preferred first."""

    where: str
    prompt: str
    answers: tuple[str, ...]
    conversations: tuple[Conversation, ...] = ()

    def dumps(self) -> str:
        """As JSON."""
        return json.dumps([self.where, self.prompt, self.answers, [each.dumps() for each in self.conversations]])

    @classmethod
    def loads(cls, text: str) -> Pair:
        """What `dumps` wrote."""
        where, prompt, answers, conversations = json.loads(text)
        return cls(where, prompt, tuple(answers), tuple(map(Conversation.loads, conversations)))


def pair(record: Mapping[str, Any], where: str) -> Pair:
    """The pair of a record.

    Raises:
        ConfigError: It is none, or there is nothing to prefer in it; the sentence names the record and its field.
    """
    for name in ANSWERS:
        if record[name] is None:
            raise ConfigError(f"{where} has null in {name!r}: give it a value, or leave the record out.")
    kinds = {name: kind(record[name]) for name in ANSWERS}
    if set(kinds.values()) not in ({"a string"}, {"an array"}):
        raise ConfigError(
            f"{where} has {kinds[CHOSEN]} in 'chosen' and {kinds[REJECTED]} in 'rejected': they have to be two strings "
            "or two lists of messages."
        )
    if record[CHOSEN] == record[REJECTED]:
        raise ConfigError(f"{where} has the same in 'chosen' and 'rejected', so that none is preferred: {DELETE}.")
    return _texts(record, where) if isinstance(record[CHOSEN], str) else _messages(record, where)


def _texts(record: Mapping[str, Any], where: str) -> Pair:
    check_unread(record, MEDIA, where)
    given = record.get(PROMPT)
    if given is None:
        raise ConfigError(f"{where} has no field 'prompt', which the answers are to: write it, or {DELETE}.")
    if not isinstance(given, str):
        raise ConfigError(
            f"{where} has {kind(given)} in 'prompt' and strings in 'chosen': write all three in one form."
        )
    for name in (PROMPT, *ANSWERS):
        check_characters(record[name], where, name)
        if not record[name]:
            raise ConfigError(f"{where} has an empty {name!r}: {DELETE}.")
    return Pair(where, given, (record[CHOSEN], record[REJECTED]))


def _messages(record: Mapping[str, Any], where: str) -> Pair:
    prompt, answers = _divided(record, where)
    made = []
    beside = {name: record[name] for name in BESIDE if name in record}
    before = [{**message, WEIGHT: 0} if isinstance(message, dict) else message for message in prompt]
    for name, answer in zip(ANSWERS, answers, strict=True):
        if not answer or all(isinstance(each, dict) and _is_empty(each) for each in answer):
            raise ConfigError(f"{where} has an empty answer in {name!r}: {DELETE}.")
        field = f"{PROMPT} + {name}"
        talk = conversation({field: [*before, *answer], **beside}, field, where)
        made.append(replace(talk, answer=len(talk.messages) - len(answer)))
    return Pair(where, "", (), tuple(made))


def _divided(record: Mapping[str, Any], where: str) -> tuple[list[Any], list[list[Any]]]:
    """The messages of the prompt, and those of each answer without them."""
    prompt, answers = record.get(PROMPT), [record[name] for name in ANSWERS]
    if isinstance(prompt, list) and prompt:
        return prompt, answers
    common = 0
    for one, other in zip(*answers, strict=False):
        if one != other:
            break
        common += 1
    begin = answers[0][:common]
    said = [each.get(CONTENT, each.get(VALUE)) for each in begin if isinstance(each, dict)]
    if prompt and prompt not in said[-1:]:
        raise ConfigError(
            f"{where} has {kind(prompt)} in 'prompt', which is not the last message that 'chosen' and 'rejected' both "
            "begin with: write it as a list of messages, and only the answers in the others."
        )
    if not begin:
        raise ConfigError(
            f"{where} has no 'prompt', and 'chosen' and 'rejected' do not begin with the same message: write the "
            f"messages of the prompt, or {DELETE}."
        )
    return begin, [answer[common:] for answer in answers]


def _is_empty(message: Mapping[str, Any]) -> bool:
    """Whether a message says nothing at all, not even a call."""
    return not any(value for name, value in message.items() if name not in ("role", "from", WEIGHT))
