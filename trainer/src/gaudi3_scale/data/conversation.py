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
BESIDE = (TOOLS, SYSTEM, FUNCTIONS)
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
#: Fields of a message that say something, but not to a model of text; and what to do about each.
NOT_TAKEN = {
    "function_call": "write it as 'tool_calls'",
    "audio": "only text is trained on: delete the record",
    "images": "only text is trained on: delete the record",
    "videos": "only text is trained on: delete the record",
    "refusal": "write it as 'content', or delete the record",
}


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

    def dumps(self) -> str:
        """As JSON."""
        return json.dumps([self.where, self.messages, self.tools, self.first])

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
    if record.get(FUNCTIONS):
        raise ConfigError(f"{where} has {FUNCTIONS!r}, which are not read: write them as {TOOLS!r}.")
    messages = [_Message(message, number, field, where).taken() for number, message in enumerate(given, 1)]
    shared = ROLE not in given[0]
    first = 1
    if shared and record.get(SYSTEM) and messages[0][ROLE] != SYSTEM:
        if not isinstance(record[SYSTEM], str):
            raise ConfigError(f"{where} has {kind(record[SYSTEM])} in {SYSTEM!r}: it has to be a string.")
        messages.insert(0, {ROLE: SYSTEM, CONTENT: record[SYSTEM]})
        first = 0
    if not any(is_learnt(message) and (message.get(CONTENT) or message.get(CALLS)) for message in messages):
        raise ConfigError(
            f"{where} has no message of the role {ASSISTANT!r}, so that there is nothing to learn: delete the record."
        )
    made = Conversation(where, messages, _tools(record.get(TOOLS), where), first)
    for path, text in strings([made.messages, made.tools]):
        check_characters(text, where, path)
    return made


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
            if self._message.get(name):
                self._refuse(f"has {name!r}", "", advice)
        if ROLE not in self._message and FROM in self._message:
            return self._share_gpt()
        role = self._message.get(ROLE)
        if not isinstance(role, str) or not role:
            self._wrong(ROLE, "it has to be a string, such as 'user' or 'assistant'")
        made = {**self._message}
        calls = self._calls(made.pop(CALLS, None))
        content = made.pop(CONTENT, None)
        if content is None:
            if not calls:
                self._wrong(CONTENT, f"it has to be a string, or a list of parts, where there is no {CALLS!r}")
        elif isinstance(content, list):
            made[CONTENT] = [self._part(part, number) for number, part in enumerate(content, 1)]
        elif isinstance(content, str):
            made[CONTENT] = content
        else:
            self._wrong(CONTENT, "it has to be a string or a list of parts")
        if calls:
            if role != ASSISTANT:
                self._refuse(f"has {CALLS!r}", f", whose role is {role!r}", f"only an {ASSISTANT!r} has them")
            made[CALLS] = calls
        if role == ASSISTANT and made.get(WEIGHT) not in (None, 0, 1):
            self._wrong(WEIGHT, "it has to be 0, for a message that is not learnt, or 1")
        return made

    def _share_gpt(self) -> dict[str, Any]:
        sender, value = self._message[FROM], self._message.get(VALUE)
        role = SHARE_GPT.get(sender) if isinstance(sender, str) else None
        if role is None:
            given = repr(sender) if isinstance(sender, str) else kind(sender)
            self._refuse(f"has {given} in {FROM!r}", "", f"it has to be one of {', '.join(SHARE_GPT)}")
        if not isinstance(value, str):
            self._wrong(VALUE, "it has to be a string")
        more = {WEIGHT: self._message[WEIGHT]} if self._message.get(WEIGHT) is not None else {}
        if sender != FUNCTION_CALL:
            return {ROLE: role, CONTENT: value, **more}
        try:
            calls = json.loads(value)
        except (ValueError, RecursionError):
            calls = None
        if not isinstance(calls, dict | list) or not calls:
            self._refuse(
                f"is a {FUNCTION_CALL!r} without one in {VALUE!r}", "", "it has to be JSON with name and arguments"
            )
        return {ROLE: role, CALLS: self._calls(calls if isinstance(calls, list) else [calls], VALUE), **more}

    def _calls(self, calls: Any, field: str = CALLS) -> list[dict[str, Any]]:
        """With the arguments as an object, which OpenAI's interface gives as a string of JSON."""
        if calls is None:
            return []
        if not isinstance(calls, list):
            self._wrong(field, "it has to be a list of calls", calls)
        return [self._call(call, field, number) for number, call in enumerate(calls, 1)]

    def _call(self, call: Any, field: str, number: int) -> dict[str, Any]:
        inner = call.get("function", call) if isinstance(call, dict) else None
        if not isinstance(inner, dict) or not isinstance(inner.get("name"), str) or not inner["name"]:
            self._refuse(
                f"has no function with a name in {field}[{number}]", "", "it has to be {'function': {'name': ...}}"
            )
        arguments = inner.get("arguments", {})
        if isinstance(arguments, str):
            try:
                arguments = json.loads(arguments) if arguments.strip() else {}
            except (ValueError, RecursionError):
                arguments = None
        if not isinstance(arguments, dict):
            self._refuse(
                f"has {field}[{number}] with arguments that are no JSON object", "", "mend or delete the record"
            )
        outer = {name: value for name, value in call.items() if name != "function"} if inner is not call else {}
        return {**outer, "type": "function", "function": {"name": inner["name"], "arguments": arguments}}

    def _part(self, part: Any, number: int) -> dict[str, str]:
        what = part.get("type") if isinstance(part, dict) else None
        if what not in ("text", "input_text", "output_text") or not isinstance(part.get("text"), str):
            said = repr(what) if isinstance(what, str) else "of no type"
            if what == "text":
                said = "without its text"
            self._refuse(
                f"has part {number}, {said}, in {CONTENT!r}", "", "only parts of text are trained on: delete the record"
            )
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
        if not isinstance(inner, dict) or not isinstance(inner.get("name"), str):
            raise ConfigError(
                f"{where} has {TOOLS}[{number}] without a function with a name: it has to be a schema of JSON."
            )
    return [tool if "function" in tool else {"type": "function", "function": tool} for tool in tools]
