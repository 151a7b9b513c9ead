"""What a record of a conversation says is read whole, or refused in a sentence that names its place."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from chats import ANSWER, NUMBERED, REASONS, USER, assistant, read, refusal, talk
from test_chat import CALL, PLAIN, TALK, TOOLS, write

from gaudi3_scale.config import DataConfig
from gaudi3_scale.data.conversation import BOOKKEEPING, MEDIA, NOT_TAKEN, PREFERENCES, SYSTEMS, UNREAD
from gaudi3_scale.data.sources import START, open_source
from gaudi3_scale.errors import ConfigError

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
                ConfigError, match=r"Row 0 of .* has a value in 'messages' that JSON cannot hold \(Object "
            ):
                next(open_source(config).pieces(START))


@pytest.mark.parametrize("name", NOT_TAKEN)
@pytest.mark.parametrize("form", [ANSWER, {"from": "gpt", "value": "Four."}])
def test_what_a_message_has_beside_its_text_is_refused_where_it_says_something(name: str, form: dict[str, str]) -> None:
    assert read(PLAIN, talk(USER, {**form, name: None}))[0] == ["Four.<|im_end|>\n"]
    assert f"has '{name}' of message 2 of 'messages': " in refusal(PLAIN, talk(USER, {**form, name: ["a"]}))


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
def test_a_system_text_beside_the_messages_is_written_once_or_refused(form: str) -> None:
    def record(*messages: dict[str, str], **beside: Any) -> dict[str, Any]:
        given = [{"from": each["role"], "value": each["content"]} for each in messages]
        return {form: list(messages) if form == "messages" else given, **beside}

    begin = "<|im_start|>system\nRhyme.<|im_end|>\n<|im_start|>user\nTwo"
    assert read(PLAIN, record(USER, ANSWER, system="Rhyme."))[1].startswith(begin)
    rhyme = {"role": "system", "content": "Rhyme."}
    assert read(PLAIN, record(rhyme, USER, ANSWER, system="Rhyme."))[1].startswith(begin)
    assert "system" not in read(PLAIN, record(USER, ANSWER, system=""))[1]
    assert read(PLAIN, record(USER, ANSWER, system_prompt="Rhyme.", system="Rhyme."))[1].startswith(begin)
    said = refusal(PLAIN, record(USER, ANSWER, system_prompt="Rhyme.", system="Be short."))
    assert "has two texts in 'system' and 'system_prompt': delete one of the two." in said
    for messages in ([rhyme, USER, ANSWER], [USER, ANSWER, USER, rhyme, ANSWER]):
        said = refusal(PLAIN, record(*messages, system="Be short."))
        assert f"has 'system' and message {messages.index(rhyme) + 1} of the role 'system': " in said
    assert "has a number in 'system': it has to be a string." in refusal(PLAIN, record(USER, ANSWER, system=0))


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
def test_a_weight_that_is_neither_0_nor_1_is_refused(form: dict[str, str], weight: Any) -> None:
    for messages in ([USER, {**form, "weight": weight}], [{**USER, "weight": weight}, form]):
        said = refusal(PLAIN, talk(*messages))
        assert " in 'weight' of message " in said and "it has to be 0, for a message that is not learnt, or 1" in said
    for taken in (None, 1, 1.0):
        assert read(PLAIN, talk(USER, {**form, "weight": taken}))[0] == ["Four.<|im_end|>\n"]
    assert read(PLAIN, talk(USER, {**form, "weight": 0.0}, *TALK[2:]))[0] == ["Always.<|im_end|>\n"]


def test_a_message_of_share_gpt_has_all_that_one_of_openai_has() -> None:
    def last(template: str, **fields: Any) -> dict[str, Any]:
        return {"conversations": [{"from": "human", "value": "Two and two?"}, {"from": "gpt", **fields}]}

    said, _ = read(TOOLS, last(TOOLS, value=None, tool_calls=[CALL]))
    assert said == ['<call>{"name": "weather", "arguments": {"city": "Ulm"}}</call><|im_end|>\n']
    said, _ = read(REASONS, last(REASONS, value="Four.", reasoning_content="Sum."))
    assert said == ["<think>\nSum.\n</think>\n\nFour.<|im_end|>"]
    assert "leaves out 'reasoning_content' of message 2 of line 1" in refusal(
        PLAIN, last(PLAIN, value="Four.", reasoning_content="Sum.")
    )
    for name, value in (("role", "assistant"), ("content", "Five.")):
        said_so = refusal(PLAIN, last(PLAIN, value="Four.", **{name: value}))
        assert f"has {name!r} beside 'from' of message 2 of 'conversations': write a message in one form" in said_so
    both = {"from": "function_call", "value": json.dumps(CALL["function"]), "tool_calls": [CALL]}
    assert "has 'tool_calls' beside 'from'" in refusal(TOOLS, {"conversations": [both]})


@pytest.mark.parametrize("form", [ANSWER, {"from": "gpt", "value": "Four."}])
def test_a_field_of_a_message_that_the_template_does_not_read_is_refused(form: dict[str, str]) -> None:
    for name, value in (("train", False), ("loss", 0), ("plan", "add"), ("steps", [1]), ("prefix", True)):
        said = refusal(PLAIN, talk(USER, {**form, name: value}))
        assert f"leaves out {name!r} of message 2 of line 1 of a.jsonl: give a tokenizer whose template writes " in said
        assert said.endswith(f"or delete {name!r} from the record.")
    whole = PLAIN.replace("{{ m.content }}", "{{ m | tojson }}")
    assert '"train": false' in read(whole, talk(USER, {**form, "train": False, "plan": "add"}))[1]
    planned = PLAIN.replace("{{ m.content }}", "{{ m.plan }}{{ m.content }}")
    assert read(planned, talk(USER, {**form, "plan": "add: "}))[0] == ["add: Four.<|im_end|>\n"]
    listed = PLAIN.replace(
        "{{ m.content }}", "{% for f in m.functions or [] %}{{ f.name }} {% endfor %}{{ m.content }}"
    )
    record = talk({**USER, "functions": [{"name": "f"}]}, form)
    assert "<|im_start|>user\nf Two" in read(listed, record)[1]
    assert "leaves out 'functions' of message 1" in refusal(PLAIN + "{# m.functions #}", record)
    assert "leaves out 'tools' of message 1" in refusal(TOOLS, talk({**USER, "tools": [{"name": "f"}]}, form))
    kept = {"id": "7", "timestamp": "2026", "tool_call_id": "1", "name": None, "plan": "", "steps": []}
    assert read(PLAIN, talk(USER, {**form, **kept}))[0] == ["Four.<|im_end|>\n"]


def test_the_documentation_names_all_bookkeeping_fields() -> None:
    page = (Path(__file__).parents[2] / "docs" / "use" / "data.md").read_text()
    assert [name for name in (*BOOKKEEPING, *UNREAD, *SYSTEMS, *PREFERENCES) if f"`{name}`" not in page] == [*MEDIA]


def test_a_part_of_a_text_with_more_than_the_text_is_refused() -> None:
    part = {"type": "text", "text": "Four.", "index": 0, "image": None}
    assert read(PLAIN, talk(USER, {**ANSWER, "content": [part]}))[0] == ["Four.<|im_end|>\n"]
    said = refusal(PLAIN, talk(USER, {**ANSWER, "content": [part, {**part, "image": "a.png"}]}))
    assert "has 'image' in part 2 of 'content' of message 2 of 'messages': write it as text, or delete it." in said


@pytest.mark.parametrize(
    "role", ["gpt", "model", "Assistant", "bot", "human", "function_call", "observation", "System"]
)
def test_a_role_by_another_name_is_refused(role: str) -> None:
    assert f"has {role!r} in 'role' of message 1 of 'messages': write it as '" in refusal(
        PLAIN, talk({"role": role, "content": "a"}, USER, ANSWER)
    )
    assert "<|im_start|>developer\nRhyme." in read(PLAIN, talk({"role": "developer", "content": "Rhyme."}, *TALK))[1]


# Calls of tools


def test_what_a_function_is_called_with_is_taken_by_its_two_names() -> None:
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
def test_a_call_with_more_than_a_name_and_its_arguments_is_refused(call: dict[str, Any]) -> None:
    assert " tool_calls[1]" in refusal(TOOLS, assistant(tool_calls=[call]))
