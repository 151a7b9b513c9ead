"""Whether a chat template writes all that a conversation says, and where: proven by a second text with marks.

In the second text each name and text of the conversation stands between two marks of its own. Without its marks it is
the first text again, so the places of the marks are those of the texts, and what has no marks there is left out.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

from gaudi3_scale.data.conversation import ARGUMENTS, CALLS, CONTENT, NUMBER, ROLE, TOOLS, Conversation, is_learnt, says
from gaudi3_scale.data.marks import (
    BEGIN,
    END,
    NAME,
    OF_A_RESULT,
    OF_KEY,
    REASONING,
    Marker,
    Said,
    Spans,
    is_said,
    unmarked,
)
from gaudi3_scale.errors import ConfigError

SWITCH = re.compile(r"/(?:no_?)?think\b")
#: Python writes a list or an object with one of these, where JSON does not.
PYTHON = re.compile(r"[\[{(]'|'[\]}:,]|\b(?:True|False|None)\b")
Render = Callable[[list[dict[str, Any]], Any], tuple[list[dict[str, Any]], str]]
"""Messages as the template is given them, and the text of them and the tools."""


class NotWritten(ConfigError):
    """Of a conversation in one form, of which the template may write more in another."""

    found = -1
    """How many of its texts the template writes before the one that it does not."""


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
    marked = Marker(talk, word)
    try:
        formed, text = render(marked.messages, marked.tools)
    except Exception:  # a template raises what it likes, here at a mark
        formed, text = [], ""
    _check_form(talk, formed, marked.tools, text, template, word)
    plain, places = unmarked(text, word)
    number = 0
    try:
        for number, said in enumerate(marked.said):
            if plain == whole:
                said.places = _checked(talk, said, plain, places.get(number, []))
            else:
                said.places = _alone(talk, whole, render, word, number, said)
        _check_numbers(talk, whole, render)
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


def _is_within(places: Spans, spans: Spans) -> bool:
    return any(first <= begin and end <= last for first, last in spans for begin, end in places)


def _check_fields(talk: Conversation, whole: str, template: str, render: Render) -> None:
    """ConfigError for a field that has no marks and changes nothing, and for reasoning that no turn is written with."""
    for number, message in enumerate(talk.messages):
        for name, value in message.items():
            if not is_said(message, name) or not says(value):
                continue
            if isinstance(value, str):  # the marks prove that it is written
                is_read = name not in REASONING or any(_reads(template, each) for each in REASONING)
            elif not value and _reads(template, name):  # 0 or false, as if it were not there
                is_read = True
            else:
                less = {other: message[other] for other in message if other != name}
                is_read = render([*talk.messages[:number], less, *talk.messages[number + 1 :]], talk.tools)[1] != whole
            if not is_read:
                _refuse(talk, Said(number + talk.first, name, ""))


def _check_numbers(talk: Conversation, whole: str, render: Render) -> None:
    """ConfigError for numbers, true and false in calls, which have no marks, if others have the same text written."""
    for kind, values in ((bool, (True, False)), (int, (7, 8)), (float, (7.5, 8.5))):
        changed = [_changed(message, kind, values) for message in talk.messages]
        lost = next(
            (n for n, (one, other) in enumerate(zip(changed, talk.messages, strict=True)) if one != other), None
        )
        if lost is not None and render(changed, talk.tools)[1] == whole:
            _refuse(talk, Said(lost + talk.first, CALLS, ""))


def _changed(message: dict[str, Any], kind: type, values: tuple[Any, Any]) -> dict[str, Any]:
    def other(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: other(each) for name, each in value.items()}
        if isinstance(value, list):
            return [other(each) for each in value]
        return value if type(value) is not kind else values[value == values[0]]

    calls = [{**call, "function": other(call["function"])} for call in message.get(CALLS, ())]
    return {**message, CALLS: calls} if calls else message


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
    marked = Marker(talk, word, number)
    plain, found = unmarked(render(marked.messages, marked.tools)[1], word)
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
