"""Whether a chat template writes all that a conversation says, and where: proven by a second text with marks.

In the second text each name and text of the conversation stands between two marks of its own. Without its marks it is
the first text again, so the places of the marks are those of the texts, and what has no marks there is left out.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NoReturn

from gaudi3_scale.data.conversation import (
    ARGUMENTS,
    ASSISTANT,
    CALLS,
    CONTENT,
    ROLE,
    TOOLS,
    WEIGHT,
    Conversation,
    is_learnt,
    says,
)
from gaudi3_scale.errors import ConfigError

REASONING = ("reasoning_content", "thinking", "reasoning")
"""Names of one field, which transformers gives to the template under the first two."""
THINK = "</think>"
NAME, NUMBER, OF_A_RESULT = "name", "tool_call_id", ("tool", "function")
#: Fields of a message that say nothing to a model.
BOOKKEEPING = ("id", "message_id", "parent_id", NUMBER, "index", "created_at", "timestamp", "language", "model")
#: Marks stand within a tag around a text, as templates look at what it begins and ends with.
OPENING, CLOSING = re.compile(r"\s*(?:<[^<>]{0,100}>\s*)?"), re.compile(r"<[^<>]{0,100}>\Z")
SWITCH = re.compile(r"/(?:no_?)?think\b")
BEGIN, END, OF_KEY = "b", "e", "k"
#: Python writes a list or an object with one of these, where JSON does not.
PYTHON = re.compile(r"[\[{(]'|'[\]}:,]|\b(?:True|False|None)\b")
Spans = list[tuple[int, int]]
"""First and last character, which is not part, of each stretch of a text."""
Render = Callable[[list[dict[str, Any]], Any], tuple[list[dict[str, Any]], str]]
"""Messages as the template is given them, and the text of them and the tools."""


class NotWritten(ConfigError):
    """Of a conversation in one form, of which the template may write more in another."""

    found = -1
    """How many of its texts the template writes before the one that it does not."""


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


def prove(talk: Conversation, whole: str, template: str, render: Render) -> list[Said]:
    """What a conversation says, with its places in the text that the template makes of it.

    Raises:
        ConfigError: The template leaves some of it out, changes it, or writes it as Python and not as text.
    """
    _check_fields(talk, whole, template, render)
    if not _reads(template, NUMBER):
        _check_order(talk)
    word = "zq"
    while word in whole or word in template:
        word += "zq"
    marked = _Marker(talk, word)
    try:
        formed, text = render(marked.messages, marked.tools)
    except Exception:  # a template raises what it likes, here at a mark
        formed, text = [], ""
    _check_form(talk, formed, marked.tools, text, template, word)
    plain, places = _unmarked(text, word)
    for number, said in enumerate(marked.said):
        try:
            if plain == whole:
                said.places = _checked(talk, said, plain, places.get(number, []))
            else:
                said.places = _alone(talk, whole, render, word, number, said)
        except NotWritten as error:
            error.found = number
            raise
    return marked.said


def check_learnt(talk: Conversation, said: list[Said], spans: Spans, has_marks: bool) -> None:
    """ConfigError for what the assistant says and is not learnt, or others say and is learnt."""
    learnt = {number for number, message in enumerate(talk.messages, talk.first) if is_learnt(message)}
    who = "The marks of the tokenizer's chat template"
    mend = "put it between {% generation %} and {% endgeneration %}, or delete the record"
    if not has_marks:
        who, mend = "The turns of the tokenizer's chat template", "give a template with {% generation %} marks"
    for each in said:
        if each.number not in learnt:
            if any(first < end and begin < last for first, last in spans for begin, end in each.places or ()):
                raise ConfigError(
                    f"{who} have {_name(each)} of {lower(talk.where)} learnt, which the assistant does not say: "
                    "correct the template."
                )
        elif each.places and each.field != NAME and not _is_within(each.places, spans):
            raise ConfigError(f"{who} leave {_name(each)} of {lower(talk.where)} out of what is learnt: {mend}.")


def lower(where: str) -> str:
    """The name of a record within a sentence."""
    return where[:1].lower() + where[1:]


class _Marker:
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
        if isinstance(value, str) and _is_said(message, name):
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

    def _tool(self, tool: dict[str, Any], place: str) -> dict[str, Any]:
        made = {**tool["function"]}
        for name, value in made.items():
            if isinstance(value, str) and name != "type":
                made[name] = self._text(Said(None, place, value, "" if name == NAME else f"the {name} of "))
            elif isinstance(value, dict):
                made[name] = self._schema(value, place)
        return {**tool, "function": made}

    def _schema(self, schema: dict[str, Any], place: str) -> dict[str, Any]:
        """With marks at the parameters and their descriptions. Of what is within them, templates leave out much."""
        bare = "type" not in schema and all(isinstance(each, dict) for each in schema.values())
        parameters = schema if bare and "properties" not in schema else schema.get("properties")
        if not isinstance(parameters, dict):
            return schema
        keys, made = {}, {}
        for name, value in parameters.items():
            keys[name] = self._key(Said(None, place, name, f"the parameter {name!r} of "))
            made[keys[name]] = value
            if isinstance(value, dict) and isinstance(value.get("description"), str):
                said = Said(None, place, value["description"], f"the description of {name!r} of ")
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


def _is_within(places: Spans, spans: Spans) -> bool:
    return any(first <= begin and end <= last for first, last in spans for begin, end in places)


def _is_said(message: dict[str, Any], name: str) -> bool:
    """Whether a field beside the content and the calls says something to a model, by its name."""
    if name == NAME:
        return message[ROLE] not in OF_A_RESULT  # whose call says it
    return name not in (ROLE, CONTENT, CALLS, WEIGHT, *BOOKKEEPING)


def _check_fields(talk: Conversation, whole: str, template: str, render: Render) -> None:
    """ConfigError for a field that cannot be marked, or may be left out of a turn, and is written of no message."""
    for number, message in enumerate(talk.messages):
        for name, value in message.items():
            names = REASONING if name in REASONING else (name,)
            if not _is_said(message, name) or not says(value) or any(_reads(template, each) for each in names):
                continue
            if not isinstance(value, str):  # the marks prove a text
                less = {other: message[other] for other in message if other != name}
                if render([*talk.messages[:number], less, *talk.messages[number + 1 :]], talk.tools)[1] != whole:
                    continue
            elif name not in REASONING:
                continue
            _refuse(talk, Said(number + talk.first, name, ""))


def _reads(template: str, name: str) -> bool:
    return re.search(rf"\.{re.escape(name)}\b|(['\"]){re.escape(name)}\1", template) is not None


def _is_same(said: str, written: str) -> bool:
    """Whether a text is written as it is, or escaped; words that switch the model's reasoning may be missing."""
    if any(said == each for each in _meant(written)):
        return True
    switched = ["".join(SWITCH.sub("", each).split()) for each in (said, *_meant(written))]
    return SWITCH.search(said) is not None and switched[0] in switched[1:]


def _meant(written: str) -> Iterator[str]:
    """What a text stands for: itself, without what escapes it in HTML, and in JSON within JSON."""
    yield written
    yield html.unescape(written)
    for _ in range(2):
        try:
            written = json.loads(f'"{written}"', strict=False)
        except ValueError:
            return
        yield written


def _check_order(talk: Conversation) -> None:
    """ConfigError for results that a model without the numbers of calls would take for those of other calls."""
    calls: list[dict[str, Any]] = []
    for number, message in enumerate(talk.messages, talk.first):
        if message[ROLE] not in OF_A_RESULT:
            calls = list(message.get(CALLS, ()))
        elif calls:
            call = calls.pop(0)
            for name, said in ((NUMBER, call.get("id")), (NAME, call["function"][NAME])):
                if said and message.get(name) not in (None, "", said):
                    raise ConfigError(
                        f"The chat template of the tokenizer does not write which call a result is of, and {name!r} of "
                        f"message {number} of {lower(talk.where)} is not that of the call at its place, {said!r}: give "
                        "each call its result, in the order of the calls."
                    )


def _unmarked(text: str, word: str) -> tuple[str, dict[int, Spans]]:
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


def _checked(talk: Conversation, said: Said, text: str, places: Spans) -> Spans:
    """The places; ConfigError where there are none, or none has the text as it is."""
    if not places and not said.may_be_left_out:
        _refuse(talk, said)
    # Templates have each line of a tool's description begin with a mark of their own.
    is_kept = said.number is None or not said.text or not places
    if not is_kept and not any(_is_same(said.text, text[begin:end]) for begin, end in places):
        _refuse(talk, said, "changes")
    return places


def _alone(talk: Conversation, whole: str, render: Render, word: str, number: int, said: Said) -> Spans | None:
    """The places of one text, where the marks of all together change what the template writes besides."""
    marked = _Marker(talk, word, number)
    plain, found = _unmarked(render(marked.messages, marked.tools)[1], word)
    places = found.get(number, [])
    if plain != whole and len(plain) >= len(whole) + max(1, len(said.text)):
        places = []  # it is written with its marks, and not without
    checked = _checked(talk, said, plain, places)
    return checked if plain == whole or not places else None


def _check_form(
    talk: Conversation, messages: list[dict[str, Any]], tools: Any, text: str, template: str, word: str
) -> None:
    """ConfigError for a list or an object that the template writes as Python does."""
    within = re.compile(rf"(0{word}(\d+){BEGIN}){word}.*?0{word}\2{END}{word}", re.DOTALL)
    outside = within.sub(r"\1", text)
    if not PYTHON.search(outside):
        return
    if f"{END}{word}(" in text:  # a call as name(key=value) is Python by intention, and so are its values
        for value in _values(messages):
            outside = outside.replace(f"{OF_KEY}{word}=" + within.sub(r"\1", str(value)), "")
    holders = [(Said(n, name, ""), each[name]) for n, each in enumerate(messages, talk.first) for name in each]
    holders += [(Said(n, CONTENT, ""), each) for n, each in enumerate(messages, talk.first)]
    holders += [(Said(None, f"{TOOLS}[{n}]", ""), tool) for n, tool in enumerate(tools or (), 1)]
    for said, holder in holders:
        for value in _structures(holder):
            written = within.sub(r"\1", str(value))
            if str(value) != json.dumps(value, ensure_ascii=False) and written in outside and written not in template:
                _refuse(talk, said, "writes Python's own form of")


def _values(messages: list[dict[str, Any]]) -> Iterator[Any]:
    """The lists and objects that functions are called with."""
    for call in (call for message in messages for call in message.get(CALLS, ())):
        given = call["function"][ARGUMENTS]
        yield from (each for each in given.values() if isinstance(each, dict | list)) if isinstance(given, dict) else ()


def _structures(value: Any) -> Iterator[Any]:
    """Every list and object in a value, and the pairs of each object, which some templates write."""
    if isinstance(value, dict | list):
        yield value
        if isinstance(value, dict):
            yield list(value.items())
        for each in value.values() if isinstance(value, dict) else value:
            yield from _structures(each)


def _name(said: Said) -> str:
    return f"{said.what}{said.field}" if said.number is None else f"{said.what}{said.field!r} of message {said.number}"


def _refuse(talk: Conversation, said: Said, how: str = "leaves out") -> NoReturn:
    if said.number is None:
        mend = f"give a tokenizer whose template writes tools, or delete {TOOLS!r} from the record"
    elif said.field in (CONTENT, CALLS):
        mend = "give a tokenizer whose template writes it, or delete the record"
    else:
        mend = f"give a tokenizer whose template writes it, or delete {said.field!r} from the record"
    raise NotWritten(f"The chat template of the tokenizer {how} {_name(said)} of {lower(talk.where)}: {mend}.")
