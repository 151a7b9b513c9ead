"""A conversation of a record, checked and in the one form that chat templates are written for.

Records hold them in OpenAI's form (`messages` of `role` and `content`, with `tool_calls` and `tools`) or in ShareGPT's
(`conversations` of `from` and `value`; LLaMA-Factory's `function_call`, `observation`, `system` and `tools` included).
What a record says and no template writes is refused: a message that loses its picture, or its call of a tool, teaches
something else than the record does.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from gaudi3_scale.errors import ConfigError

ROLE, CONTENT, ASSISTANT, CALLS, WEIGHT = "role", "content", "assistant", "tool_calls", "weight"
MESSAGES, CONVERSATIONS, TOOLS, SYSTEM, FUNCTIONS = "messages", "conversations", "tools", "system", "functions"
PREFERENCES = ("chosen", "rejected", "kto_tag")
"""Answers that are preferred to others, beside the messages of the question or of all."""
TEXT_ONLY = "only text is trained on: delete the record"
MEDIA = dict.fromkeys(("image", "images", "video", "videos", "audio", "audios"), TEXT_ONLY)
#: Fields of a record that say something about its messages, and no template is given; and what to do about each.
UNREAD = {
    **MEDIA,
    FUNCTIONS: f"write them as {TOOLS!r}",
    "documents": "write them into a message, or delete the field",
    "chat_template_kwargs": "delete the field, or the record",
}
SYSTEMS = (SYSTEM, "system_prompt", "system_message")
BESIDE = (TOOLS, *SYSTEMS, *UNREAD)
"""What a record may have beside the messages."""
FROM, VALUE, FUNCTION_CALL = "from", "value", "function_call"
SHARE_GPT = {
    "human": "user",
    "user": "user",
    "gpt": ASSISTANT,
    "assistant": ASSISTANT,
    "system": SYSTEM,
    "tool": "tool",
    "observation": "tool",
    FUNCTION_CALL: ASSISTANT,
}
#: Roles of which a template would write the name, though another is meant, and nothing of the assistant's be learnt.
OTHER_NAMES = {**SHARE_GPT, **dict.fromkeys(("ai", "bot", "chatgpt", "model"), ASSISTANT)}
#: Fields of a message that say something, but not to a model of text; and what to do about each.
NOT_TAKEN = {
    **MEDIA,
    FUNCTION_CALL: f"write it as {CALLS!r}",
    "refusal": f"write it as {CONTENT!r}, or delete the record",
}
NUMBER = "tool_call_id"
#: Fields of a message that say nothing to a model. The last are WildChat's.
BOOKKEEPING = (
    *("id", "uuid", "message_id", "parent_id", "conversation_id", NUMBER, "index"),
    *("created", "created_at", "date", "timestamp", "language", "model", "source", "metadata"),
    *("turn_identifier", "country", "state", "hashed_ip", "header", "redacted", "toxic"),
)
ARGUMENTS, PARAMETERS = "arguments", "parameters"
"""Two names of what a function is called with, the second in the calls of Llama."""
OF_A_CALL, OF_A_FUNCTION = ("id", "type", "index", "function"), ("name", ARGUMENTS, PARAMETERS)

OF_A_PART = ("type", "text", "index", "cache_control")


def says(value: object) -> bool:
    """Whether a field with this value says anything: null, and what is empty, does not."""
    return value is not None and value not in ("", [], {})


def kind(value: object) -> str:
    """What a value of a record is, in the words of JSON."""
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    if isinstance(value, int | float):
        return "a number"
    names = {list: "an array", dict: "an object", str: "a string"}
    return next((name for each, name in names.items() if isinstance(value, each)), f"a {type(value).__name__}")


@dataclass(frozen=True, slots=True)
class Conversation:
    """Messages as transformers' chat templates take them, the schemas of the tools, and where they come from."""

    where: str
    messages: list[dict[str, Any]]
    tools: list[dict[str, Any]] | None
    first: int = 1
    """Number of the first message; 0 for one that the record has beside its messages."""
    answer: int = 0
    """How many messages come before the answer; 0 where all that the assistant says is learnt."""

    def dumps(self) -> str:
        """As JSON."""
        return json.dumps([self.where, self.messages, self.tools, self.first, self.answer])

    @classmethod
    def loads(cls, text: str) -> Conversation:
        """What `dumps` wrote."""
        return cls(*json.loads(text))


def conversation(record: Mapping[str, Any], field: str, where: str) -> Conversation:
    """The conversation of a record.

    Args:
        record: The messages under `field`, and those of `BESIDE` that there are.
        where: The record, for the sentences: "Line 3 of a.jsonl".

    Raises:
        ConfigError: It is none, or one that cannot be taken; the sentence names the message and its field.
    """
    given = record[field]
    if not isinstance(given, list) or not given:
        raise ConfigError(
            f"{where} has no conversation in {field!r}: it has to be a list of objects, each with {ROLE!r} and "
            f"{CONTENT!r}, or with {FROM!r} and {VALUE!r}."
        )
    check_unread(record, UNREAD, where, field)
    messages = [_Message(message, number, field, where).taken() for number, message in enumerate(given, 1)]
    system = _system(record, messages, where)
    messages, first = system + messages, 1 - len(system)
    if not any(is_learnt(message) and (message.get(CONTENT) or message.get(CALLS)) for message in messages):
        raise ConfigError(
            f"{where} has no message of the role {ASSISTANT!r}, so that there is nothing to learn: delete the record."
        )
    made = Conversation(where, messages, _tools(record.get(TOOLS), where), first)
    try:
        made.dumps()
    except TypeError as error:  # a column may hold what JSON cannot, such as bytes
        raise ConfigError(
            f"{where} has a value in {field!r} that JSON cannot hold ({error}): write it as text."
        ) from None
    for path, text in strings([made.messages, made.tools]):
        check_characters(text, where, path)
    return made


def check_unread(record: Mapping[str, Any], unread: Mapping[str, str], where: str, field: str = "") -> None:
    """ConfigError where a record has a value in another field than the one that is read, with what to do about each."""
    for name, advice in unread.items():
        if name != field and says(record.get(name)):
            raise ConfigError(
                f"{where} has {name!r}, which {'are' if name.endswith('s') else 'is'} not read: {advice}."
            )


def is_learnt(message: Mapping[str, Any]) -> bool:
    """Whether it is the assistant's, and not one that its weight (of OpenAI's form) takes out of the loss."""
    return message[ROLE] == ASSISTANT and message.get(WEIGHT) != 0


def check_characters(text: str, where: str, name: str) -> None:
    """JSON can hold half of a character that UTF-16 writes as two; UTF-8 and tokenizers cannot."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ConfigError(
            f"{where} has half a character ({ascii(text[error.start])[1:-1]}) at position {error.start} of {name!r}: "
            "mend or delete the record."
        ) from None


def strings(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Every string in a conversation's `[messages, tools]`, with its place as `messages[2].content`; keys as well."""
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield f"{path}.{key}", str(key)
            yield from strings(item, f"{path}.{key}")
    elif isinstance(value, list | tuple):
        for number, item in enumerate(value):
            yield from strings(item, f"{path}[{number + 1}]" if path else (MESSAGES, TOOLS)[number])


def without_nulls(value: Any) -> Any:
    """Without the fields that are null: a column gives every object the fields of all others, as null."""
    if isinstance(value, dict):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    return [without_nulls(item) for item in value] if isinstance(value, list | tuple) else value


def _system(record: Mapping[str, Any], messages: list[dict[str, Any]], where: str) -> list[dict[str, Any]]:
    """The message that a record has beside the others."""
    given = {name: record[name] for name in SYSTEMS if says(record.get(name))}
    texts = list(given.values())
    for name, text in given.items():
        if not isinstance(text, str):
            raise ConfigError(f"{where} has {kind(text)} in {name!r}: it has to be a string.")
        if text != texts[0]:
            raise ConfigError(f"{where} has two texts in {' and '.join(map(repr, given))}: delete one of the two.")
    for number, message in enumerate(messages if texts else (), 1):
        if message[ROLE] in (SYSTEM, "developer"):
            if number == 1 and message.get(CONTENT) == texts[0]:
                return []
            raise ConfigError(
                f"{where} has {next(iter(given))!r} and message {number} of the role "
                f"{message[ROLE]!r}: delete one of the two, or write them as one."
            )
    return [{ROLE: SYSTEM, CONTENT: text} for text in texts[:1]]


class _Message:
    """One message of a record."""

    def __init__(self, message: Any, number: int, field: str, where: str) -> None:
        self._place = f"of message {number} of {field!r}"
        self._where = where
        if not isinstance(message, dict):
            raise ConfigError(f"{where} has {kind(message)} for message {number} of {field!r}: it has to be an object.")
        self._message = message

    def taken(self) -> dict[str, Any]:
        """In the form of chat templates."""
        for name, advice in NOT_TAKEN.items():
            if says(self._message.get(name)):
                self._refuse(f"has {name!r}", "", advice)
        made, text = {**self._message}, CONTENT
        if self._message.get(FROM) is not None:
            made, text = self._share_gpt(), VALUE
        # A column may hold times and other objects.
        odd = [name for name in BOOKKEEPING if not isinstance(made.get(name), str | int | float | list | dict | None)]
        made |= {name: str(made[name]) for name in odd}
        role = made.get(ROLE)
        if not isinstance(role, str) or not role:
            self._wrong(ROLE, "it has to be a string, such as 'user' or 'assistant'")
        meant = OTHER_NAMES.get(role.lower(), role)
        if meant != role:
            self._refuse(f"has {role!r} in {ROLE!r}", "", f"write it as {meant!r}")
        calls = self._calls(made.pop(CALLS, None), text if self._message.get(FROM) == FUNCTION_CALL else CALLS)
        content = made.pop(CONTENT, None)
        if content is None:
            if not calls:
                self._wrong(text, f"it has to be a string, or a list of parts, where there is no {CALLS!r}")
        elif isinstance(content, list):
            made[CONTENT] = [self._part(part, number) for number, part in enumerate(content, 1)]
        elif isinstance(content, str):
            made[CONTENT] = content
        else:
            self._wrong(text, "it has to be a string or a list of parts")
        if calls:
            if role != ASSISTANT:
                self._refuse(f"has {CALLS!r}", f", whose role is {role!r}", f"only an {ASSISTANT!r} has them")
            made[CALLS] = calls
        weight = made.get(WEIGHT)
        if isinstance(weight, bool) or weight not in (None, 0, 1):
            self._wrong(WEIGHT, "it has to be 0, for a message that is not learnt, or 1")
        return made

    def _share_gpt(self) -> dict[str, Any]:
        """With the names of OpenAI's form."""
        sender, value = self._message[FROM], self._message.get(VALUE)
        role = SHARE_GPT.get(sender) if isinstance(sender, str) else None
        if role is None:
            given = repr(sender) if isinstance(sender, str) else kind(sender)
            self._refuse(f"has {given} in {FROM!r}", "", f"it has to be one of {', '.join(SHARE_GPT)}")
        made = {name: given for name, given in self._message.items() if name not in (FROM, VALUE)}
        text = CALLS if sender == FUNCTION_CALL else CONTENT
        for name in (ROLE, text):
            if says(made.get(name)):
                self._refuse(f"has {name!r} beside {FROM!r}", "", "write a message in one form, and delete the other")
        if sender == FUNCTION_CALL:
            value = self._json(value)
            if not isinstance(value, dict | list) or not value:
                self._refuse(
                    f"is a {FUNCTION_CALL!r} without one in {VALUE!r}", "", "it has to be JSON with name and arguments"
                )
            value = value if isinstance(value, list) else [value]
        return {**made, ROLE: role, text: value}

    @staticmethod
    def _json(text: Any) -> Any:
        """What a string of JSON holds; None for what is none."""
        try:
            return json.loads(text) if isinstance(text, str) else None
        except (ValueError, RecursionError):
            return None

    def _calls(self, calls: Any, field: str) -> list[dict[str, Any]]:
        """With the arguments as an object, which OpenAI's interface gives as a string of JSON."""
        if calls is None:
            return []
        if not isinstance(calls, list):
            self._wrong(field, "it has to be a list of calls", calls)
        return [self._call(call, field, number) for number, call in enumerate(calls, 1)]

    def _call(self, call: Any, field: str, number: int) -> dict[str, Any]:
        place = f"{field}[{number}]"
        flat = isinstance(call, dict) and call.get("function") is None
        inner = call if flat or not isinstance(call, dict) else call["function"]
        if not isinstance(inner, dict) or not isinstance(inner.get("name"), str) or not inner["name"]:
            self._refuse(f"has no function with a name in {place}", "", "it has to be {'function': {'name': ...}}")
        read = [(call, (*OF_A_CALL, *OF_A_FUNCTION))] if flat else [(call, OF_A_CALL), (inner, OF_A_FUNCTION)]
        for holder, names in read:
            unread = next((name for name, value in holder.items() if says(value) and name not in names), None)
            if unread is not None:
                self._refuse(
                    f"has {unread!r} in {place}",
                    ", which is not read",
                    f"write it as {ARGUMENTS!r} of the function, or delete it",
                )
        given = [name for name in (ARGUMENTS, PARAMETERS) if inner.get(name) is not None]
        if len(given) > 1:
            self._refuse(f"has {ARGUMENTS!r} and {PARAMETERS!r} in {place}", "", "delete one of the two")
        arguments = inner[given[0]] if given else {}
        if isinstance(arguments, str):
            arguments = self._json(arguments) if arguments.strip() else {}
        if not isinstance(arguments, dict):
            self._refuse(f"has {place} with arguments that are no JSON object", "", "mend or delete the record")
        more = {name: value for name, value in call.items() if name in OF_A_CALL and name != "function"}
        return {**more, "type": "function", "function": {"name": inner["name"], ARGUMENTS: arguments}}

    def _part(self, part: Any, number: int) -> dict[str, str]:
        what = part.get("type") if isinstance(part, dict) else None
        if what not in ("text", "input_text", "output_text") or not isinstance(part.get("text"), str):
            said = repr(what) if isinstance(what, str) else "of no type"
            if what == "text":
                said = "without its text"
            self._refuse(
                f"has part {number}, {said}, in {CONTENT!r}", "", "only parts of text are trained on: delete the record"
            )
        more = next((name for name, value in part.items() if says(value) and name not in OF_A_PART), None)
        if more is not None:
            self._refuse(f"has {more!r} in part {number} of {CONTENT!r}", "", "write it as text, or delete it")
        return {"type": "text", "text": part["text"]}

    def _wrong(self, field: str, allowed: str, value: Any = None) -> NoReturn:
        given = value if value is not None else self._message.get(field)
        self._refuse(f"has {kind(given) if field in self._message else 'nothing'} in {field!r}", "", allowed)

    def _refuse(self, what: str, more: str, advice: str) -> NoReturn:
        raise ConfigError(f"{self._where} {what} {self._place}{more}: {advice}.")


def _tools(tools: Any, where: str) -> list[dict[str, Any]] | None:
    """Schemas of tools, as a list or as a string of JSON, each as `{"type": "function", "function": ...}`."""
    if isinstance(tools, str) and tools.strip():
        try:
            tools = json.loads(tools)
        except (ValueError, RecursionError):
            raise ConfigError(
                f"{where} has a string in {TOOLS!r} that is no JSON: mend or delete the record."
            ) from None
    if not tools:
        return None
    if not isinstance(tools, list):
        raise ConfigError(f"{where} has {kind(tools)} in {TOOLS!r}: it has to be a list of schemas.")
    for number, tool in enumerate(tools, 1):
        inner = tool.get("function", tool) if isinstance(tool, dict) else None
        if not isinstance(inner, dict) or not isinstance(inner.get("name"), str) or not inner["name"]:
            raise ConfigError(
                f"{where} has {TOOLS}[{number}] without a function with a name: it has to be a schema of JSON."
            )
    return [tool if "function" in tool else {"type": "function", "function": tool} for tool in tools]
