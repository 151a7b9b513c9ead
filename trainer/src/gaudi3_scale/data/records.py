"""What a record has to have for data.content, and the text that stands for it until it is tokenised."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from gaudi3_scale.config import DataConfig
from gaudi3_scale.errors import ConfigError

ROLE, CONTENT, ASSISTANT = "role", "content", "assistant"


def fields(config: DataConfig) -> list[str]:
    """The fields, or columns, that are read."""
    if config.content == "prompt":
        return ["prompt", "completion"]
    return ["messages" if config.content == "chat" and config.field == "text" else config.field]


def kind(value: object) -> str:
    """What a value of a record is, in the words of JSON."""
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    if isinstance(value, int | float):
        return "a number"
    names = {list: "an array", dict: "an object", str: "a string"}
    return next((name for each, name in names.items() if isinstance(value, each)), f"a {type(value).__name__}")


def text_of(values: Sequence[Any], where: str, config: DataConfig) -> str:
    """The text of a record whose `fields` have these values; for chat and prompts, JSON of them."""
    names = fields(config)
    if config.content == "chat":
        _check_messages(values[0], where, names[0])
        return json.dumps([{**message} for message in values[0]])
    for name, value in zip(names, values, strict=True):
        if not isinstance(value, str):
            raise ConfigError(f"{where} has {kind(value)} in {name!r}: it has to be a string.")
        _check_characters(value, where, name)
    if config.content == "prompt" and not values[1]:
        raise ConfigError(f"{where} has an empty 'completion', so that there is nothing to learn: delete the record.")
    return json.dumps(list(values)) if config.content == "prompt" else str(values[0])


def _check_characters(text: str, where: str, name: str) -> None:
    """JSON can hold half of a character that UTF-16 writes as two; UTF-8 and tokenizers cannot."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ConfigError(
            f"{where} has half a character ({ascii(text[error.start])[1:-1]}) at position {error.start} of {name!r}: "
            "mend or delete the record."
        ) from None


def _check_messages(messages: Any, where: str, name: str) -> None:
    if (
        not isinstance(messages, list)
        or not messages
        or not all(
            isinstance(m, dict) and isinstance(m.get(ROLE), str) and isinstance(m.get(CONTENT), str) for m in messages
        )
    ):
        raise ConfigError(
            f"{where} has no conversation in {name!r}: it has to be a list of objects, each with the strings "
            f"{ROLE!r} and {CONTENT!r}."
        )
    if not any(message[ROLE] == ASSISTANT and message[CONTENT] for message in messages):
        raise ConfigError(
            f"{where} has no message of the role {ASSISTANT!r}, so that there is nothing to learn: delete the record."
        )
