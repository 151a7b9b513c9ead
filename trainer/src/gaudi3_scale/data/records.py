"""What a record has to have for data.content, and the text that stands for it until it is tokenised."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gaudi3_scale.config import DataConfig
from gaudi3_scale.config.data import PREFERENCE
from gaudi3_scale.data.conversation import (
    BESIDE,
    CALLS,
    CONTENT,
    CONVERSATIONS,
    MEDIA,
    MESSAGES,
    PREFERENCES,
    Conversation,
    check_characters,
    check_unread,
    conversation,
    kind,
    without_nulls,
)
from gaudi3_scale.data.pairs import ANSWERS, PROMPT, Pair, pair
from gaudi3_scale.errors import ConfigError

COMPLETION = "completion"


def fields(config: DataConfig) -> list[tuple[str, ...]]:
    """The fields, or columns, that a record needs; where there are several names for one, the first that it has."""
    if config.content == "prompt":
        return [(PROMPT,), (COMPLETION,)]
    if config.content == PREFERENCE:
        return [(name,) for name in ANSWERS]
    if config.content == "chat" and config.field == "text":
        return [(MESSAGES, CONVERSATIONS)]
    return [(config.field,)]


def present(config: DataConfig, names: Sequence[str], where: str, what: str, advice: str) -> list[str]:
    """Those of a record's names that are read, the needed ones first.

    Raises:
        ConfigError: One of `fields` is not there, or it is not clear which one is meant.
    """
    found = []
    if config.content == PREFERENCE:
        advice = "a pair has 'prompt', 'chosen' and 'rejected'"
    for options in fields(config):
        name = next((each for each in options if each in names), None)
        if name is None:
            raise ConfigError(
                f"{where} has no {what} {options[0]!r}, only {', '.join(map(repr, names)) or 'none at all'}: {advice}."
            )
        more = [each for each in names if each in (*options, *PREFERENCES) and each != name] if len(options) > 1 else []
        if more:
            raise ConfigError(
                f"{where} has the {what}s {', '.join(map(repr, [name, *more]))}, of which one is read: set data.field "
                "to the one with the conversation to learn."
            )
        found.append(name)
    beside = {"chat": BESIDE, "prompt": tuple(MEDIA), PREFERENCE: (PROMPT, *BESIDE)}.get(config.content, ())
    return found + [name for name in beside if name in names and name not in found]


def text_of(record: Mapping[str, Any], where: str, config: DataConfig) -> str:
    """The text of a record that has the fields of `present`; for all but text, JSON of them."""
    if config.content == PREFERENCE:
        return pair(record, where).dumps()
    if config.content == "prompt":
        check_unread(record, MEDIA, where)
        record = {name: record[name] for name in (PROMPT, COMPLETION)}
    names = list(record)
    for name in names[:1] if config.content == "chat" else names:
        if record[name] is None:
            raise ConfigError(f"{where} has null in {name!r}: give it a value, or leave the record out.")
    if config.content == "chat":
        return conversation(record, names[0], where).dumps()
    for name, value in record.items():
        if not isinstance(value, str):
            raise ConfigError(f"{where} has {kind(value)} in {name!r}: it has to be a string.")
        check_characters(value, where, name)
    if config.content == "prompt" and not record[COMPLETION]:
        raise ConfigError(f"{where} has an empty 'completion', so that there is nothing to learn: delete the record.")
    return json.dumps(list(record.values())) if config.content == "prompt" else str(record[names[0]])


def text_of_row(row: Mapping[str, Any], where: str, config: DataConfig) -> str:
    """`text_of` a row of a table, whose columns give each conversation the fields of all others, as nulls."""
    first = next(iter(row))
    nested = config.content in ("chat", PREFERENCE)
    return text_of({first: row[first], **without_nulls(row)} if nested else row, where, config)


def texts_of(text: bytes | str, config: DataConfig) -> Iterator[bytes | str]:
    """The texts in what `text_of` made: those of the messages, or the prompt and what comes after it."""
    if config.content == PREFERENCE:
        found = Pair.loads(str(text))
        yield from (found.prompt, *found.answers) if found.answers else ()
        for talk in found.conversations:
            yield from _texts_of_messages(talk)
    elif config.content == "chat":
        yield from _texts_of_messages(Conversation.loads(str(text)))
    elif config.content == "prompt":
        yield from json.loads(text)
    else:
        yield text


def _texts_of_messages(talk: Conversation) -> Iterator[str]:
    for message in talk.messages:
        content = message.get(CONTENT, "")
        yield from [content] if isinstance(content, str) else [part["text"] for part in content]
        yield from (json.dumps(call["function"], ensure_ascii=False) for call in message.get(CALLS, ()))
