"""What a conversation says and no template writes is refused; nothing of it is misread or lost without a word."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_chat import AGENT, CALL, MARKED, PARTS, PLAIN, SCHEMA, TALK, TOOLS, folder, write

from gaudi3_scale.config import DataConfig
from gaudi3_scale.data.chat_template import ChatEncoder
from gaudi3_scale.data.conversation import MEDIA, NOT_TAKEN, PREFERENCES, UNREAD, conversation
from gaudi3_scale.data.piece import Piece
from gaudi3_scale.data.sources import START, open_source
from gaudi3_scale.data.tokenizer import load_tokenizer
from gaudi3_scale.errors import ConfigError

Read = Callable[..., tuple[list[str], str]]
USER, ANSWER = TALK[:2]
#: A system message and tools before the first words of the user, calls with "parameters", and nothing beside a call.
HEADED = (
    "{% if messages[0].role == 'system' %}{% set system = messages[0].content | trim %}{% set rest = messages[1:] %}"
    "{% else %}{% set system = '' %}{% set rest = messages %}{% endif %}<|im_start|>system\n{{ system }}<|im_end|>"
    "{% for m in rest %}<|im_start|>{{ m.role }}\n"
    "{% if loop.first and tools %}{% for t in tools %}{{ t | tojson(indent=4) }}\n{% endfor %}{% endif %}"
    "{% if m.tool_calls %}{% if m.tool_calls | length != 1 %}{{ raise_exception('One call.') }}{% endif %}"
    '{"name": "{{ m.tool_calls[0].function.name }}", "parameters": {{ m.tool_calls[0].function.arguments | tojson }}}'
    "{% elif m.role == 'tool' %}{{ m.content | tojson }}{% else %}{{ m.content | trim }}{% endif %}<|im_end|>"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
#: Numbers of calls of a certain length, which results repeat.
NUMBERED = (
    "{% for m in messages %}{% if m.role == 'user' %}[I]{{ m.content }}[/I]{% elif m.role == 'tool' %}"
    '[R]{"content": {{ m.content | tojson }}, "id": "{{ m.tool_call_id }}"}[/R]'
    "{% elif m.tool_calls %}[C]{% for c in m.tool_calls %}"
    "{% if c.id | length != 9 %}{{ raise_exception('Nine characters.') }}{% endif %}"
    "{{ c.function | tojson }}{{ c.id }}{% endfor %}<|im_end|>{% else %}{{ m.content }}<|im_end|>{% endif %}"
    "{% endfor %}"
)
#: The reasoning of the last turn alone, and results of tools as a turn of the user.
REASONS = (
    "{% set ns = namespace(last=0) %}{% for m in messages %}"
    "{% if m.role == 'user' and not (m.content.startswith('<r>') and m.content.endswith('</r>')) %}"
    "{% set ns.last = loop.index0 %}{% endif %}{% endfor %}"
    "{% for m in messages %}<|im_start|>{{ 'user' if m.role == 'tool' else m.role }}\n"
    "{% if m.role == 'assistant' %}{% set text = m.content %}{% set thought = '' %}"
    "{% if m.reasoning_content %}{% set thought = m.reasoning_content %}{% elif '</think>' in text %}"
    "{% set thought = text.split('</think>')[0].rstrip('\n').split('<think>')[-1].lstrip('\n') %}"
    "{% set text = text.split('</think>')[-1].lstrip('\n') %}{% endif %}"
    "{% generation %}"
    "{% if loop.index0 > ns.last and thought %}<think>\n{{ thought.strip('\n') }}\n</think>\n\n{% endif %}"
    "{{ text }}<|im_end|>{% endgeneration %}"
    "{% else %}{% if m.role == 'tool' %}<r>{{ m.content }}</r>{% else %}{{ m.content }}{% endif %}<|im_end|>{% endif %}"
    "\n{% endfor %}"
)
#: Arguments one by one, and of the tools their names and descriptions.
ONE_BY_ONE = (
    "{% for t in tools or [] %}{% set f = t.function %}// {{ f.description }}\ntype {{ f.name }} = (_: ("
    "{% for name, about in (f.parameters.properties or {}).items() %}// {{ about.description }}\n"
    "{{ name }}{{ '' if name in f.parameters.required else '?' }}: {{ about.type }}, {% endfor %}))\n{% endfor %}"
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content or '' }}{% for c in m.tool_calls or [] %}"
    "<f={{ c.function.name }}>{% for name, value in c.function.arguments.items() %}<{{ name }}>"
    "{{ value | tojson if value is mapping or value is sequence and value is not string else value }}</{{ name }}>"
    "{% endfor %}</f>{% endfor %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


@pytest.fixture(scope="module")
def read(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Read]:
    """What is learnt of a record by a template, and the whole text."""
    config = DataConfig(content="chat", tokenizer=str(folder(tmp_path_factory.mktemp("chat") / "tokenizer", PLAIN)))
    encoder = ChatEncoder(config, load_tokenizer(config))

    def encoded(template: str, record: dict[str, Any]) -> tuple[list[str], str]:
        encoder._tokenizer.chat_template = template
        talk = conversation(record, next(iter(record)), "Line 1 of a.jsonl")
        (ids, marks), *_ = encoder.encode([Piece(talk.dumps(), True, START)], [True])
        assert marks is not None
        edges = np.flatnonzero(np.diff(np.concatenate([[0], marks, [0]]))).reshape(-1, 2)
        return [encoder._tokenizer.decode(ids[a:b]) for a, b in edges], encoder._tokenizer.decode(ids)

    yield encoded


def refusal(read: Read, template: str, record: dict[str, Any]) -> str:
    with pytest.raises(ConfigError) as error:
        read(template, record)
    said = str(error.value)
    assert said.endswith(".") and "\n" not in said and "ine 1 of a.jsonl" in said
    return said


def talk(*messages: dict[str, Any], **beside: Any) -> dict[str, Any]:
    return {"messages": [{**each} for each in messages], **beside}


def assistant(**fields: Any) -> dict[str, Any]:
    return talk(USER, {"role": "assistant", **fields})


def calling(arguments: Any, name: str = "weather", **more: Any) -> dict[str, Any]:
    return assistant(content=None, tool_calls=[{"function": {"name": name, "arguments": arguments}}], **more)


# What a record has beside its messages


@pytest.mark.parametrize("name", UNREAD)
@pytest.mark.parametrize("form", ["messages", "conversations"])
def test_what_a_record_has_beside_its_messages_is_refused_where_it_says_something(
    tmp_path: Path, name: str, form: str
) -> None:
    messages = TALK if form == "messages" else [{"from": each["role"], "value": each["content"]} for each in TALK]
    config = DataConfig(source=str(tmp_path / "a.jsonl"), content="chat")
    for value in (None, "", [], {}):
        write(tmp_path / "a.jsonl", [{form: messages, name: value}])
        assert len(list(open_source(config).pieces(START))) == 1
    for value in ("a.png", ["a.png"], {"bytes": "x"}, [None], False, 0):
        write(tmp_path / "a.jsonl", [{form: messages, name: value}])
        with pytest.raises(ConfigError, match=rf"Line 1 of .*a.jsonl has '{name}', which (is|are) not read: .*\.$"):
            list(open_source(config).pieces(START))


@pytest.mark.parametrize("name", MEDIA)
def test_pictures_beside_a_prompt_are_refused(tmp_path: Path, name: str) -> None:
    config = DataConfig(source=str(tmp_path / "a.jsonl"), content="prompt")
    record = {"prompt": "2+2=", "completion": "4"}
    write(tmp_path / "a.jsonl", [{name: None, **record}, {name: [], **record}, {name: "a.png", **record}])
    pieces = open_source(config).pieces(START)
    assert [next(pieces).text, next(pieces).text] == ['["2+2=", "4"]'] * 2
    with pytest.raises(ConfigError, match=rf"Line 3 of .* has '{name}', which (is|are) not read: only text is trained"):
        next(pieces)


def test_times_in_a_column_are_taken_where_they_say_nothing(tmp_path: Path) -> None:
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    config = DataConfig(source=str(tmp_path / "a.parquet"), content="chat")
    for name in ("timestamp", "spoken_at"):
        rows = [{"messages": [{**each, name: datetime(2026, 11, 27)} for each in TALK]}]
        parquet.write_table(pa.Table.from_pylist(rows), tmp_path / "a.parquet")
        if name == "timestamp":
            assert next(open_source(config).pieces(START)).text
        else:
            with pytest.raises(
                ConfigError, match=r"Row 0 of .* has a value in 'messages' that is none of JSON \(Object "
            ):
                next(open_source(config).pieces(START))


@pytest.mark.parametrize("name", NOT_TAKEN)
@pytest.mark.parametrize("form", [ANSWER, {"from": "gpt", "value": "Four."}])
def test_what_a_message_has_beside_its_text_is_refused_where_it_says_something(
    read: Read, name: str, form: dict[str, str]
) -> None:
    assert read(PLAIN, talk(USER, {**form, name: None}))[0] == ["Four.<|im_end|>\n"]
    assert f"has '{name}' of message 2 of 'messages': " in refusal(read, PLAIN, talk(USER, {**form, name: ["a"]}))


@pytest.mark.parametrize("suffix", ["parquet", "arrow", "hub"])
def test_pictures_in_a_column_are_refused_and_not_decoded(
    tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    datasets = pytest.importorskip("datasets")
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "cache")
    rows = {"messages": [TALK, TALK], "images": [[], [{"bytes": b"no picture", "path": None}]]}
    features = {"messages": datasets.Dataset.from_dict({"messages": [TALK]}).features["messages"]}
    made = datasets.Dataset.from_dict(
        rows, features=datasets.Features(features | {"images": datasets.List(datasets.Image())})
    )
    folder = tmp_path / "set"
    folder.mkdir()
    if suffix == "arrow":
        made.save_to_disk(folder)
    else:
        made.to_parquet(folder / "a.parquet")
    source = f"hf:{folder}" if suffix == "hub" else str(folder)
    pieces = open_source(DataConfig(source=source, content="chat")).pieces(START)
    assert next(pieces).text
    with pytest.raises(ConfigError, match=r"Row 1 of .* has 'images', which are not read: only text is trained on"):
        next(pieces)


@pytest.mark.parametrize("form", ["messages", "conversations"])
def test_a_system_text_beside_the_messages_is_written_once_or_refused(read: Read, form: str) -> None:
    def record(*messages: dict[str, str], **beside: Any) -> dict[str, Any]:
        given = [{"from": each["role"], "value": each["content"]} for each in messages]
        return {form: list(messages) if form == "messages" else given, **beside}

    begin = "<|im_start|>system\nRhyme.<|im_end|>\n<|im_start|>user\nTwo"
    assert read(PLAIN, record(USER, ANSWER, system="Rhyme."))[1].startswith(begin)
    rhyme = {"role": "system", "content": "Rhyme."}
    assert read(PLAIN, record(rhyme, USER, ANSWER, system="Rhyme."))[1].startswith(begin)
    assert "system" not in read(PLAIN, record(USER, ANSWER, system=""))[1]
    for messages in ([rhyme, USER, ANSWER], [USER, ANSWER, USER, rhyme, ANSWER]):
        said = refusal(read, PLAIN, record(*messages, system="Be short."))
        assert f"has 'system' and another text in message {messages.index(rhyme) + 1}, of the role 'system': " in said
    assert "has a number in 'system': it has to be a string." in refusal(read, PLAIN, record(USER, ANSWER, system=0))


@pytest.mark.parametrize("suffix", ["jsonl", "json", "parquet"])
@pytest.mark.parametrize("other", ["conversations", *PREFERENCES])
def test_of_two_conversations_in_a_record_the_setting_chooses_one(tmp_path: Path, suffix: str, other: str) -> None:
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    records: list[dict[str, Any]] = [{other: [USER, ANSWER], "messages": TALK}]
    path = tmp_path / f"a.{suffix}"
    if suffix == "parquet":
        parquet.write_table(pa.Table.from_pylist(records), path)
    else:
        path.write_text(json.dumps(records[0]))
    what = "columns" if suffix == "parquet" else "fields"
    with pytest.raises(ConfigError, match=rf" has the {what} 'messages', '{other}', of which one is read: set data.fi"):
        list(open_source(DataConfig(source=str(path), content="chat")).pieces(START))
    for field in ("messages", other):
        config = DataConfig(source=str(path), content="chat", field=field)
        (piece,) = open_source(config).pieces(START)
        assert json.loads(str(piece.text))[1] == records[0][field]


# What a message says


@pytest.mark.parametrize("form", [ANSWER, {"from": "gpt", "value": "Four."}])
@pytest.mark.parametrize("weight", ["0", "1", 0.5, 2, -1, True, False, [], {}])
def test_a_weight_that_is_neither_0_nor_1_is_refused(read: Read, form: dict[str, str], weight: Any) -> None:
    for messages in ([USER, {**form, "weight": weight}], [{**USER, "weight": weight}, form]):
        said = refusal(read, PLAIN, talk(*messages))
        assert " in 'weight' of message " in said and "it has to be 0, for a message that is not learnt, or 1" in said
    for taken in (None, 1, 1.0):
        assert read(PLAIN, talk(USER, {**form, "weight": taken}))[0] == ["Four.<|im_end|>\n"]
    assert read(PLAIN, talk(USER, {**form, "weight": 0.0}, *TALK[2:]))[0] == ["Always.<|im_end|>\n"]


def test_a_message_of_share_gpt_has_all_that_one_of_openai_has(read: Read) -> None:
    def last(template: str, **fields: Any) -> dict[str, Any]:
        return {"conversations": [{"from": "human", "value": "Two and two?"}, {"from": "gpt", **fields}]}

    said, _ = read(TOOLS, last(TOOLS, value=None, tool_calls=[CALL]))
    assert said == ['<call>{"name": "weather", "arguments": {"city": "Ulm"}}</call><|im_end|>\n']
    said, _ = read(REASONS, last(REASONS, value="Four.", reasoning_content="Sum."))
    assert said == ["<think>\nSum.\n</think>\n\nFour.<|im_end|>"]
    assert "leaves out 'reasoning_content' of message 2 of line 1" in refusal(
        read, PLAIN, last(PLAIN, value="Four.", reasoning_content="Sum.")
    )
    for name, value in (("role", "assistant"), ("content", "Five.")):
        said_so = refusal(read, PLAIN, last(PLAIN, value="Four.", **{name: value}))
        assert f"has {name!r} beside 'from' of message 2 of 'conversations': write a message in one form" in said_so
    both = {"from": "function_call", "value": json.dumps(CALL["function"]), "tool_calls": [CALL]}
    assert "has 'tool_calls' beside 'from'" in refusal(read, TOOLS, {"conversations": [both]})


@pytest.mark.parametrize("form", [ANSWER, {"from": "gpt", "value": "Four."}])
def test_a_field_of_a_message_that_the_template_does_not_read_is_refused(read: Read, form: dict[str, str]) -> None:
    for name, value in (("train", False), ("loss", 0), ("plan", "add"), ("steps", [1]), ("prefix", True)):
        said = refusal(read, PLAIN, talk(USER, {**form, name: value}))
        assert f"leaves out {name!r} of message 2 of line 1 of a.jsonl: give a tokenizer whose template writes " in said
        assert said.endswith(f"or delete {name!r} from the record.")
    whole = PLAIN.replace("{{ m.content }}", "{{ m | tojson }}")
    assert '"train": false' in read(whole, talk(USER, {**form, "train": False, "plan": "add"}))[1]
    planned = PLAIN.replace("{{ m.content }}", "{{ m.plan }}{{ m.content }}")
    assert read(planned, talk(USER, {**form, "plan": "add: "}))[0] == ["add: Four.<|im_end|>\n"]
    kept = {"id": "7", "timestamp": "2026", "tool_call_id": "1", "name": None, "plan": "", "steps": []}
    assert read(PLAIN, talk(USER, {**form, **kept}))[0] == ["Four.<|im_end|>\n"]


def test_a_part_of_a_text_with_more_than_the_text_is_refused(read: Read) -> None:
    part = {"type": "text", "text": "Four.", "index": 0, "image": None}
    assert read(PLAIN, talk(USER, {**ANSWER, "content": [part]}))[0] == ["Four.<|im_end|>\n"]
    said = refusal(read, PLAIN, talk(USER, {**ANSWER, "content": [part, {**part, "image": "a.png"}]}))
    assert "has 'image' in part 2 of 'content' of message 2 of 'messages': write it as text, or delete it." in said


def test_a_name_says_who_speaks_and_of_a_result_its_call_does(read: Read) -> None:
    named = [{**USER, "name": "Ada"}, ANSWER]
    assert "leaves out 'name' of message 1 of line 1" in refusal(read, PLAIN, talk(*named))
    template = PLAIN.replace("{{ m.role }}", "{{ m.role }}{{ ' ' ~ m.name if m.name else '' }}")
    assert read(template, talk(*named))[1].startswith("<|im_start|>user Ada\nTwo")
    result = {**AGENT[2], "name": "weather"}
    assert len(read(TOOLS, talk(*AGENT[:2], result, AGENT[3]))[0]) == 2


@pytest.mark.parametrize(
    "role", ["gpt", "model", "Assistant", "bot", "human", "function_call", "observation", "System"]
)
def test_a_role_by_another_name_is_refused(read: Read, role: str) -> None:
    assert f"has {role!r} in 'role' of message 1 of 'messages': write it as '" in refusal(
        read, PLAIN, talk({"role": role, "content": "a"}, USER, ANSWER)
    )
    assert "<|im_start|>developer\nRhyme." in read(PLAIN, talk({"role": "developer", "content": "Rhyme."}, *TALK))[1]


# Calls of tools


def test_what_a_function_is_called_with_is_taken_by_its_two_names(read: Read) -> None:
    wanted = ['<call>{"name": "f", "arguments": {"a": 1}}</call><|im_end|>\n']
    for name in ("arguments", "parameters"):
        for given in ({"a": 1}, '{"a": 1}'):
            for call in ({"name": "f", name: given}, {"function": {"name": "f", name: given}, "id": "1"}):
                assert read(TOOLS, assistant(tool_calls=[call]))[0] == wanted
                shared = {"from": "function_call", "value": json.dumps(call)}
                assert read(TOOLS, {"conversations": [{"from": "human", "value": "?"}, shared]})[0] == wanted
    flat = {"id": "123456789", "name": "f", "arguments": {}}
    assert read(NUMBERED, assistant(tool_calls=[flat]))[0] == ['[C]{"name": "f", "arguments": {}}123456789<|im_end|>']


@pytest.mark.parametrize(
    "call",
    [
        {"name": "f", "input": {"a": 1}},
        {"name": "f", "args": {"a": 1}},
        {"name": "f", "arguments": {"a": 1}, "kwargs": {"b": 2}},
        {"function": {"name": "f", "args": {"a": 1}}},
        {"function": {"name": "f"}, "arguments": {"a": 1}},
        {"function": {"name": "f"}, "name": "g"},
        {"function": {"name": "f", "arguments": {"a": 1}, "parameters": {"b": 2}}},
        {"type": "custom", "custom": {"name": "f", "input": "a"}},
        {"function": "f", "arguments": {"a": 1}},
        {"name": "f", "arguments": [1]},
        {"name": "f", "arguments": False},
    ],
)
def test_a_call_with_more_than_a_name_and_its_arguments_is_refused(read: Read, call: dict[str, Any]) -> None:
    assert " tool_calls[1]" in refusal(read, TOOLS, assistant(tool_calls=[call]))


def test_results_in_another_order_than_their_calls_are_refused_where_the_template_writes_no_numbers(read: Read) -> None:
    names = ("sun", "rain")
    calls = [{"id": f"{name:9}", "function": {"name": name}} for name in names]
    results = [{"role": "tool", "content": "5", "tool_call_id": f"{name:9}", "name": name} for name in names]
    begin = [USER, {"role": "assistant", "tool_calls": calls}]
    assert len(read(TOOLS, talk(*begin, *results, ANSWER))[0]) == 2
    assert len(read(NUMBERED, talk(*begin, *reversed(results), ANSWER))[0]) == 2
    for field in ("tool_call_id", "name"):
        few = [{name: each[name] for name in ("role", "content", field)} for each in results]
        said = refusal(read, TOOLS, talk(*begin, *reversed(few), ANSWER))
        assert f"{field!r} of message 3 of line 1 of a.jsonl is not that of the call at its place, 'sun" in said
        assert f"{field!r} of message 3 of " in refusal(read, TOOLS, talk(*begin, few[1], ANSWER))


@pytest.mark.parametrize(
    "arguments",
    [
        {"a": {"b": True}},
        {"a": [True, None]},
        {"a": ["x", "y"]},
        {"a": [{"b": "it's"}]},
        {"a": {"b": {"c": None}}},
    ],
)
def test_what_is_within_the_arguments_and_written_as_python_is_refused(read: Read, arguments: dict[str, Any]) -> None:
    python = ONE_BY_ONE.replace(
        "value | tojson if value is mapping or value is sequence and value is not string else ", ""
    )
    assert "writes Python's own form of 'tool_calls' of message 2 of" in refusal(read, python, calling(arguments))
    pairs = TOOLS.replace("c.function | tojson", "c.function.name ~ (c.function.arguments.items() | list)")
    assert "writes Python's own form of 'tool_calls' of message 2 of" in refusal(read, pairs, calling(arguments))
    text = json.dumps(arguments["a"], ensure_ascii=False)
    assert read(ONE_BY_ONE, calling(arguments))[0] == [f"<f=weather><a>{text}</a></f><|im_end|>\n"]
    whole = PLAIN.replace("{{ m.content }}", "{{ m }}")
    assert "writes Python's own form of 'content' of message 1 of" in refusal(read, whole, talk(*TALK))
    # So is a whole call that is written in Python.
    call = "c.function.name ~ '(' ~ (c.function.arguments.items() | map('join', '=') | join(', ')) ~ ')'"
    intended = TOOLS.replace("c.function | tojson", call)
    assert read(intended, calling(arguments))[0] == [f"<call>weather(a={arguments['a']})</call><|im_end|>\n"]
    # A text in Python's form is a text.
    assert read(python, talk({**USER, "content": str(arguments)}, ANSWER))[0] == ["Four.<|im_end|>\n"]


@pytest.mark.parametrize("value", [{"type": "object", "required": ["a"]}, [True], {"a": None}])
def test_what_is_within_a_tool_and_written_as_python_is_refused(read: Read, value: Any) -> None:
    tool = {"name": "f", "description": "d", "parameters": {"type": "object", "properties": {"x": {"default": value}}}}
    python = TOOLS.replace("{{ t | tojson }}", "{{ t.function.name }} d {{ t.function.parameters.properties }}")
    assert "writes Python's own form of tools[1] of" in refusal(read, python, talk(*TALK, tools=[tool]))


# What the template leaves out, and what it learns


def without(template: str, *removed: str) -> str:
    for each in removed:
        assert each in template
        template = template.replace(each, "")
    return template


CALLS_LOST = without(TOOLS, "{% for c in m.tool_calls or [] %}<call>{{ c.function | tojson }}</call>{% endfor %}")
ARGUMENTS_LOST = TOOLS.replace("c.function | tojson", "c.function.name")
TOOLS_LOST = without(TOOLS, "{% for t in tools %}{{ t | tojson }}\n{% endfor %}")
RESULTS_LOST = TOOLS.replace("{{ m.content }}", "{{ '' if m.role == 'tool' else m.content }}")
WEATHER = {"role": "system", "content": 'weather city Ulm description, {"city": "Ulm"}, 21, 5'}


@pytest.mark.parametrize(
    ("template", "record", "lost"),
    [
        (CALLS_LOST, talk(WEATHER, *AGENT), "'tool_calls' of message 3"),
        (ARGUMENTS_LOST, talk(WEATHER, *AGENT), "'tool_calls' of message 3"),
        (TOOLS_LOST, talk(WEATHER, *TALK, tools=[SCHEMA]), "tools[1]"),
        # Of all forms, the one in which most is written
        (PARTS, talk(*TALK, tools=[SCHEMA]), "tools[1]"),
        (RESULTS_LOST, talk(WEATHER, *AGENT[:2], {**AGENT[2], "content": "5"}, AGENT[3]), "'content' of message 4"),
        (RESULTS_LOST, talk(*AGENT[:2], {**AGENT[2], "content": "a"}, AGENT[3]), "'content' of message 3"),
        (RESULTS_LOST, talk(*AGENT[:2], {**AGENT[2], "content": "..."}, AGENT[3]), "'content' of message 3"),
        # One of two that are the same
        (PLAIN.replace("in messages", "in messages[2:]"), talk(*TALK[:2], *TALK[:2]), "'content' of message 1"),
        # The last of the text, its beginning, one of its parts, one of the arguments, or their names
        (PLAIN.replace("m.content", "m.content[:8]"), talk(USER, ANSWER), "'content' of message 1"),
        (PLAIN.replace("m.content", "m.content[8:]"), talk(USER, {**ANSWER, "content": "?" * 9}),
         "'content' of message 1"),
        (PLAIN.replace("m.content", "m.content.split('\n')[0]"), assistant(content="a\nb"), "'content' of message 2"),
        (PARTS.replace("in m.content", "in m.content[:1]"),
         talk(*({**each, "content": [{"type": "text", "text": x} for x in "ab"]} for each in TALK[:2])),
         "'content' of message 1"),
        (TOOLS.replace("c.function | tojson", "c.function.name ~ c.function.arguments.a"), calling({"a": "x", "b": 2}),
         "'tool_calls' of message 2"),
        (TOOLS.replace("c.function | tojson", "c.function.name ~ c.function.arguments.values() | list | tojson"),
         calling({"a": "x"}), "'tool_calls' of message 2"),
        # The text beside a call
        (HEADED, talk(USER, {**AGENT[1], "content": "Let me see."}), "'content' of message 2"),
        # Reasoning that no turn keeps
        (PLAIN.replace("m.content", "m.content.split('</think>')[-1]"), assistant(content="<think>Sum</think>Four."),
         "the reasoning in 'content' of message 2"),
        (without(REASONS, "loop.index0 > ns.last and "), assistant(content="a", thinking="b", reasoning="c"),
         "'reasoning' of message 2"),
    ],
)  # fmt: skip
def test_what_the_template_leaves_out_is_refused_though_its_words_stand_elsewhere(
    read: Read, template: str, record: dict[str, Any], lost: str
) -> None:
    assert refusal(read, template, record).startswith(f"The chat template of the tokenizer leaves out {lost} of line 1")


CITY = {"type": "string", "description": "Of Europe."}


@pytest.mark.parametrize(
    "change", ["upper", "striptags", "replace('\n', ' ')", "replace('two', '')", "wordwrap(9)", "indent", "title"]
)
def test_what_the_template_changes_within_a_text_is_refused(read: Read, change: str) -> None:
    said = refusal(
        read, PLAIN.replace("m.content", f"m.content | {change}"), assistant(content="One <b>two</b>\n  three.")
    )
    assert "of message 2 of line 1" in said or "of message 1 of line 1" in said
    assert " changes 'content' of " in said or " leaves out 'content' of " in said


TOOL = {
    "name": "weather",
    "description": "How warm it is.",
    "parameters": {"type": "object", "properties": {"city": CITY}, "required": ["city"]},
}


@pytest.mark.parametrize(
    ("removed", "lost"),
    [
        ("{{ f.description }}", "the description of tools[1]"),
        ("{{ f.name }}", "tools[1]"),
        ("{{ name }}", "the parameter 'city' of tools[1]"),
        ("{{ about.description }}", "the description of 'city' of tools[1]"),
    ],
)
def test_a_tool_is_written_with_its_parameters_and_what_describes_them(read: Read, removed: str, lost: str) -> None:
    record = talk(WEATHER, *TALK, tools=[{"type": "function", "function": TOOL}])
    assert "type weather = (_: (// Of Europe.\ncity: string, ))" in read(ONE_BY_ONE, record)[1]
    assert f"leaves out {lost} of line 1" in refusal(read, ONE_BY_ONE.replace(removed, "", 1), record)
    bare = {"name": "weather", "description": "", "parameters": {"city": {"type": "str", "description": "Of Europe."}}}
    assert '"parameters": {"city": {"type": "str", ' in read(TOOLS, talk(*TALK, tools=[bare]))[1]
    assert "leaves out the parameter 'city' of tools[1]" in refusal(read, ONE_BY_ONE, talk(*TALK, tools=[bare]))


@pytest.mark.parametrize("value", [5, 1.5, True, {"b": [False]}])
def test_a_number_that_the_template_does_not_write_is_refused(read: Read, value: Any) -> None:
    names = TOOLS.replace("c.function | tojson", "c.function.name ~ (c.function.arguments | list | tojson)")
    assert "leaves out 'tool_calls' of message 2 of line 1" in refusal(read, names, calling({"a": value}))
    assert json.dumps(value) in read(TOOLS, calling({"a": value}))[0][0]


def test_templates_that_escape_and_strip_and_look_at_a_text_are_taken(read: Read) -> None:
    odd = ' "It\'s" \\ <b> & 21\n\N{DEGREE SIGN}C '
    for template in (TOOLS, HEADED, ONE_BY_ONE, TOOLS.replace("tojson", "tojson(ensure_ascii=True)")):
        record = talk({**USER, "content": odd}, AGENT[1], {**AGENT[2], "content": odd}, {**ANSWER, "content": odd})
        record["tools"] = [{"type": "function", "function": TOOL}]
        assert len(read(template, record)[0]) == 2
        assert len(read(template, calling({odd: odd, "a": [odd, {"b": [1, True, None]}]}))[0]) == 1
    ordered = TOOLS.replace("c.function | tojson", "c.function | tojson(sort_keys=True)")
    assert '{"arguments": {"a": 1, "a0": 2, "ab": 3}, ' in read(ordered, calling({"ab": 3, "a0": 2, "a": 1}))[0][0]
    switched = PLAIN.replace("{{ m.content }}", "{{ m.content.replace('/no_think', '').rstrip() }}")
    for text in ("Two and two? /no_think", "/no_think Two and two?", "Two /no_think\n and two?"):
        assert "/no_think" not in read(switched, talk({**USER, "content": text}, ANSWER))[1]
    numbered = [{**AGENT[1], "tool_calls": [{**CALL, "id": "123456789"}]}, {**AGENT[2], "tool_call_id": "123456789"}]
    assert len(read(NUMBERED, talk(USER, *numbered, ANSWER))[0]) == 2


def test_the_reasoning_of_earlier_turns_alone_may_be_left_out(read: Read) -> None:
    def thought(**fields: str) -> list[dict[str, Any]]:
        return [USER, {"role": "assistant", **fields}] * 2

    for fields in ({"content": "<think>\nSum.\n</think>\n\nFour."}, {"content": "Four.", "reasoning": "Sum."}):
        said = read(REASONS, talk(*thought(**fields)))[0]
        assert said == ["Four.<|im_end|>", "<think>\nSum.\n</think>\n\nFour.<|im_end|>"]
        assert "leaves out " in refusal(read, REASONS.replace("> ns.last", "< 0"), talk(*thought(**fields)))
    assert "leaves out 'reasoning' of message 2" in refusal(read, PLAIN, talk(*thought(**fields)))
    wrapped = [
        USER,
        {**ANSWER, "content": "<think>Sum</think>Four."},
        {"role": "user", "content": "<r>\n5\n</r>"},
        ANSWER,
    ]
    assert read(REASONS, talk(*wrapped))[0][0] == "<think>\nSum\n</think>\n\nFour.<|im_end|>"


def test_marks_hold_nothing_that_another_says(read: Read) -> None:
    around = "{% generation %}" + without(MARKED, "{% generation %}", "{% endgeneration %}") + "{% endgeneration %}"
    assert " have 'content' of message 1 of line 1 of a.jsonl learnt, which the assistant does not say: " in refusal(
        read, around, talk(*TALK)
    )


def test_of_a_conversation_that_the_assistant_begins_nothing_else_is_learnt(read: Read) -> None:
    spoken = (
        without(PLAIN, "<|im_start|>", "<|im_end|>").replace("assistant\n", "assistant: ").replace("}}\n{", "}}: {")
    )
    begun = [{"role": "assistant", "content": "assistant: hello"}, USER]
    tool = {"name": "f", "description": "assistant: bye"}
    listed = "{% for t in tools or [] %}{{ t | tojson }}{% endfor %}" + spoken
    assert read(listed, talk(*begun, tools=[tool]))[0][0].startswith("assistant: hello")
    for template in (without(PLAIN, "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"),
                     PLAIN.replace("%}<|im_start|>assistant\n", "%}<|im_start|>model\n")):  # fmt: skip
        said = refusal(read, template, talk(*begun))
        assert said.startswith(
            "The tokenizer's chat template does not write message 1 of line 1 of a.jsonl behind what "
        )


def test_the_proof_costs_one_text_more(read: Read, monkeypatch: pytest.MonkeyPatch) -> None:
    counted: list[int] = []
    text = ChatEncoder._text

    def counting(self: ChatEncoder, *given: Any, **more: Any) -> str:
        counted.append(1)
        return text(self, *given, **more)

    monkeypatch.setattr(ChatEncoder, "_text", counting)
    read(TOOLS, talk(*AGENT, tools=[SCHEMA]))
    # The whole and the proof, and of each answer the text before it and with it.
    assert len(counted) == 2 + 2 * 2
