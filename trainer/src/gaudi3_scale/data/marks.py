"""Marks around what a conversation says, so that its places in the text of a chat template are known."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from gaudi3_scale.data.conversation import (
    ARGUMENTS,
    ASSISTANT,
    BOOKKEEPING,
    CALLS,
    CONTENT,
    ROLE,
    TOOLS,
    WEIGHT,
    Conversation,
)

REASONING = ("reasoning_content", "thinking", "reasoning")
"""Names of one field, which transformers gives to the template under the first two."""
THINK = "</think>"
NAME, OF_A_RESULT = "name", ("tool", "function")
#: Marks stand within a tag around a text, as templates look at what it begins and ends with.
OPENING, CLOSING = re.compile(r"\s*(?:<[^<>]{0,100}>\s*)?"), re.compile(r"<[^<>]{0,100}>\Z")
BEGIN, END, OF_KEY = "b", "e", "k"
Spans = list[tuple[int, int]]
"""First and last character, which is not part, of each stretch of a text."""


@dataclass(slots=True)
class Said:
    """A text of a conversation, and where the template writes it."""

    number: int | None
    """Of the message; None for a tool's."""
    field: str
    """Of the message, or the tool with its number: tools[1]."""
    text: str
    """What is between its marks; empty for a name, which has one."""
    what: str = ""
    """Which part of the field, where it has several."""
    may_be_left_out: bool = False
    places: Spans | None = None
    """None where the template writes the text elsewhere, or otherwise, as soon as anything is added to it."""


class Marker:
    """A conversation with marks around its texts, or around one of them."""

    def __init__(self, talk: Conversation, word: str, only: int | None = None) -> None:
        self._word, self._only = word, only
        self.said: list[Said] = []
        self._asked = max((n for n, each in enumerate(talk.messages, talk.first) if each[ROLE] == "user"), default=0)
        self.messages = [
            {name: self._field(message, name, number) for name in message}
            for number, message in enumerate(talk.messages, talk.first)
        ]
        self.tools = talk.tools and [self._tool(tool, f"{TOOLS}[{n}]") for n, tool in enumerate(talk.tools, 1)]

    def _field(self, message: dict[str, Any], name: str, number: int) -> Any:
        value = message[name]
        if name == CALLS:
            return [{**call, "function": self._function(call["function"], number)} for call in value]
        if name == CONTENT and isinstance(value, list):
            return [{**part, "text": self._content(message, part["text"], number)} for part in value]
        if name == CONTENT:
            return self._content(message, value, number)
        if isinstance(value, str) and is_said(message, name):
            # Templates may leave the reasoning of earlier turns out, as the model is served without it.
            earlier = name in REASONING and number < self._asked
            return self._text(Said(number, name, value, may_be_left_out=earlier))
        return value

    def _content(self, message: dict[str, Any], text: str, number: int) -> str:
        reasoning, end, answer = text.rpartition(THINK)
        if message[ROLE] != ASSISTANT or not end:
            return self._text(Said(number, CONTENT, text))
        thought = Said(number, CONTENT, reasoning, "the reasoning in ", number < self._asked)
        return self._text(thought, of_tags=False) + end + self._text(Said(number, CONTENT, answer))

    def _function(self, function: dict[str, Any], number: int) -> dict[str, Any]:
        name = self._text(Said(number, CALLS, function[NAME]))
        return {NAME: name, ARGUMENTS: self._value(function[ARGUMENTS], number)}

    def _value(self, value: Any, number: int) -> Any:
        """What a function is called with, with marks at all names and texts within."""
        if isinstance(value, str):
            return self._text(Said(number, CALLS, value))
        if isinstance(value, dict):
            return {self._key(Said(number, CALLS, name)): self._value(each, number) for name, each in value.items()}
        return [self._value(each, number) for each in value] if isinstance(value, list) else value

    def _tool(self, tool: dict[str, Any], where: str) -> dict[str, Any]:
        made = {**tool["function"]}
        for name, value in made.items():
            if isinstance(value, str) and name != "type":
                made[name] = self._text(Said(None, where, value, "" if name == NAME else f"the {name} of "))
            elif isinstance(value, dict):
                made[name] = self._schema(value, where)
        return {**tool, "function": made}

    def _schema(self, schema: dict[str, Any], where: str) -> dict[str, Any]:
        """With marks at the parameters and their descriptions. Of what is within them, templates leave out much."""
        bare = "type" not in schema and all(isinstance(each, dict) for each in schema.values())
        parameters = schema if bare and "properties" not in schema else schema.get("properties")
        if not isinstance(parameters, dict):
            return schema
        keys, made = {}, {}
        for name, value in parameters.items():
            keys[name] = self._key(Said(None, where, name, f"the parameter {name!r} of "))
            made[keys[name]] = value
            if isinstance(value, dict) and isinstance(value.get("description"), str):
                said = Said(None, where, value["description"], f"the description of {name!r} of ")
                made[keys[name]] = {**value, "description": self._text(said)}
        if parameters is schema:
            return made
        needed = schema.get("required")
        more = {"required": [keys.get(str(each), each) for each in needed]} if isinstance(needed, list) else {}
        return {**schema, "properties": made, **more}

    def _text(self, said: Said, of_tags: bool = True) -> str:
        """With a mark before and behind it; not where it is blank, or has only a tag and `of_tags` is False."""
        text = said.text
        opening, end = OPENING.match(text), len(text.rstrip())
        first = opening.end() if opening else 0
        closing = CLOSING.search(text, max(first, end - 102), end)
        last = len(text[: closing.start() if closing else end].rstrip())
        if first >= last and of_tags:
            first, last = len(text) - len(text.lstrip()), end
        if first >= last:
            return text
        said.text = text[first:last]
        return f"{text[:first]}{self._mark(said, BEGIN)}{text[first:last]}{self._mark(said, END)}{text[last:]}"

    def _key(self, said: Said) -> str:
        """With a mark at the end alone, so that a template that sorts names does so as without."""
        name, said.text = said.text, ""
        return f"{name}{self._mark(said, OF_KEY)}"

    def _mark(self, said: Said, what: str) -> str:
        if what != END:
            self.said.append(said)
        number = len(self.said) - 1
        return f"0{self._word}{number}{what}{self._word}" if self._only in (None, number) else ""


def is_said(message: dict[str, Any], name: str) -> bool:
    """Whether a field beside the content and the calls says something to a model, by its name."""
    if name == NAME:
        return message[ROLE] not in OF_A_RESULT  # whose call says it
    return name not in (ROLE, CONTENT, CALLS, WEIGHT, *BOOKKEEPING)


def unmarked(text: str, word: str) -> tuple[str, dict[int, Spans]]:
    """A text without its marks, and the places of what they mark in it."""
    parts: list[str] = []
    places: dict[int, Spans] = {}
    begun: dict[int, int] = {}
    end = length = 0
    for mark in re.finditer(rf"0{word}(\d+)([{BEGIN}{END}{OF_KEY}]){word}", text):
        parts.append(text[end : mark.start()])
        length += mark.start() - end
        end, number = mark.end(), int(mark[1])
        if mark[2] == BEGIN:
            begun[number] = length
        elif mark[2] == OF_KEY or number in begun:
            places.setdefault(number, []).append((begun.pop(number, length - 1), length))
    return "".join(parts) + text[end:], places
