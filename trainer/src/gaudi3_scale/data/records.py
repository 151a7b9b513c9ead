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


def text_of(values: Sequence[Any], where: str, config: DataConfig) -> str:
    """The text of a record whose `fields` have these values; for chat and prompts, JSON of them."""
    names = fields(config)
    if config.content == "chat":
        _check_messages(values[0], where, names[0])
        return json.dumps([{**message} for message in values[0]])
    for name, value in zip(names, values, strict=True):
        if not isinstance(value, str):
            raise ConfigError(f"{where} has a {type(value).__name__} in {name!r}: it has to be a string.")
    if config.content == "prompt" and not values[1]:
        raise ConfigError(f"{where} has an empty 'completion', so that there is nothing to learn: delete the record.")
    return json.dumps(list(values)) if config.content == "prompt" else str(values[0])


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
