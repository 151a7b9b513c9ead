"""What a conversation says and the chat template does not write as it is, or does not have learnt, is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
from chats import ANSWER, HEADED, NUMBERED, ONE_BY_ONE, REASONS, USER, assistant, calling, read, refusal, talk
from test_chat import AGENT, CALL, MARKED, PARTS, PLAIN, SCHEMA, TALK, TOOLS

from gaudi3_scale.data.chat_template import ChatEncoder


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
    template: str, record: dict[str, Any], lost: str
) -> None:
    assert refusal(template, record).startswith(f"The chat template of the tokenizer leaves out {lost} of line 1")


CITY = {"type": "string", "description": "Of Europe."}


@pytest.mark.parametrize(
    "change", ["upper", "striptags", "replace('\n', ' ')", "replace('two', '')", "wordwrap(9)", "indent", "title"]
)
def test_what_the_template_changes_within_a_text_is_refused(change: str) -> None:
    said = refusal(PLAIN.replace("m.content", f"m.content | {change}"), assistant(content="One <b>two</b>\n  three."))
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
def test_a_tool_is_written_with_its_parameters_and_what_describes_them(removed: str, lost: str) -> None:
    record = talk(WEATHER, *TALK, tools=[{"type": "function", "function": TOOL}])
    assert "type weather = (_: (// Of Europe.\ncity: string, ))" in read(ONE_BY_ONE, record)[1]
    assert f"leaves out {lost} of line 1" in refusal(ONE_BY_ONE.replace(removed, "", 1), record)
    bare = {"name": "weather", "description": "", "parameters": {"city": {"type": "str", "description": "Of Europe."}}}
    assert '"parameters": {"city": {"type": "str", ' in read(TOOLS, talk(*TALK, tools=[bare]))[1]
    assert "leaves out the parameter 'city' of tools[1]" in refusal(ONE_BY_ONE, talk(*TALK, tools=[bare]))


@pytest.mark.parametrize("value", [5, 1.5, True, {"b": [False]}])
def test_a_number_that_the_template_does_not_write_is_refused(value: Any) -> None:
    names = TOOLS.replace("c.function | tojson", "c.function.name ~ (c.function.arguments | list | tojson)")
    assert "leaves out 'tool_calls' of message 2 of line 1" in refusal(names, calling({"a": value}))
    assert json.dumps(value) in read(TOOLS, calling({"a": value}))[0][0]


def test_templates_that_escape_and_strip_and_look_at_a_text_are_taken() -> None:
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


def test_the_reasoning_of_earlier_turns_alone_may_be_left_out() -> None:
    def thought(**fields: str) -> list[dict[str, Any]]:
        return [USER, {"role": "assistant", **fields}] * 2

    for fields in ({"content": "<think>\nSum.\n</think>\n\nFour."}, {"content": "Four.", "reasoning": "Sum."}):
        said = read(REASONS, talk(*thought(**fields)))[0]
        assert said == ["Four.<|im_end|>", "<think>\nSum.\n</think>\n\nFour.<|im_end|>"]
        assert "leaves out " in refusal(REASONS.replace("> ns.last", "< 0"), talk(*thought(**fields)))
    assert "leaves out 'reasoning' of message 2" in refusal(PLAIN, talk(*thought(**fields)))
    wrapped = [
        USER,
        {**ANSWER, "content": "<think>Sum</think>Four."},
        {"role": "user", "content": "<r>\n5\n</r>"},
        ANSWER,
    ]
    assert read(REASONS, talk(*wrapped))[0][0] == "<think>\nSum\n</think>\n\nFour.<|im_end|>"


def test_marks_hold_nothing_that_another_says() -> None:
    around = "{% generation %}" + without(MARKED, "{% generation %}", "{% endgeneration %}") + "{% endgeneration %}"
    assert " have 'content' of message 1 of line 1 of a.jsonl learnt, which the assistant does not say: " in refusal(
        around, talk(*TALK)
    )


def test_of_a_conversation_that_the_assistant_begins_nothing_else_is_learnt() -> None:
    spoken = (
        without(PLAIN, "<|im_start|>", "<|im_end|>").replace("assistant\n", "assistant: ").replace("}}\n{", "}}: {")
    )
    begun = [{"role": "assistant", "content": "assistant: hello"}, USER]
    tool = {"name": "f", "description": "assistant: bye"}
    listed = "{% for t in tools or [] %}{{ t | tojson }}{% endfor %}" + spoken
    assert read(listed, talk(*begun, tools=[tool]))[0][0].startswith("assistant: hello")
    for template in (without(PLAIN, "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"),
                     PLAIN.replace("%}<|im_start|>assistant\n", "%}<|im_start|>model\n")):  # fmt: skip
        said = refusal(template, talk(*begun))
        assert said.startswith(
            "The tokenizer's chat template does not write message 1 of line 1 of a.jsonl behind what "
        )


def test_the_proof_costs_one_text_more(monkeypatch: pytest.MonkeyPatch) -> None:
    counted: list[int] = []
    text = ChatEncoder._text

    def counting(self: ChatEncoder, *given: Any, **more: Any) -> str:
        counted.append(1)
        return text(self, *given, **more)

    monkeypatch.setattr(ChatEncoder, "_text", counting)
    read(TOOLS, talk(*AGENT, tools=[SCHEMA]))
    # The whole and the proof, and of each answer the text before it and with it.
    assert len(counted) == 2 + 2 * 2


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
def test_what_is_within_the_arguments_and_written_as_python_is_refused(arguments: dict[str, Any]) -> None:
    python = ONE_BY_ONE.replace(
        "value | tojson if value is mapping or value is sequence and value is not string else ", ""
    )
    assert "writes Python's own form of 'tool_calls' of message 2 of" in refusal(python, calling(arguments))
    pairs = TOOLS.replace("c.function | tojson", "c.function.name ~ (c.function.arguments.items() | list)")
    assert "writes Python's own form of 'tool_calls' of message 2 of" in refusal(pairs, calling(arguments))
    text = json.dumps(arguments["a"], ensure_ascii=False)
    assert read(ONE_BY_ONE, calling(arguments))[0] == [f"<f=weather><a>{text}</a></f><|im_end|>\n"]
    whole = PLAIN.replace("{{ m.content }}", "{{ m }}")
    assert "writes Python's own form of 'content' of message 1 of" in refusal(whole, talk(*TALK))
    # So is a whole call that is written in Python.
    call = "c.function.name ~ '(' ~ (c.function.arguments.items() | map('join', '=') | join(', ')) ~ ')'"
    intended = TOOLS.replace("c.function | tojson", call)
    assert read(intended, calling(arguments))[0] == [f"<call>weather(a={arguments['a']})</call><|im_end|>\n"]
    # A text in Python's form is a text.
    assert read(python, talk({**USER, "content": str(arguments)}, ANSWER))[0] == ["Four.<|im_end|>\n"]


@pytest.mark.parametrize("value", [{"type": "object", "required": ["a"]}, [True], {"a": None}])
def test_what_is_within_a_tool_and_written_as_python_is_refused(value: Any) -> None:
    tool = {"name": "f", "description": "d", "parameters": {"type": "object", "properties": {"x": {"default": value}}}}
    python = TOOLS.replace("{{ t | tojson }}", "{{ t.function.name }} d {{ t.function.parameters.properties }}")
    assert "writes Python's own form of tools[1] of" in refusal(python, talk(*TALK, tools=[tool]))


def test_results_in_another_order_than_their_calls_are_refused_where_the_template_writes_no_numbers() -> None:
    names = ("sun", "rain")
    calls = [{"id": f"{name:9}", "function": {"name": name}} for name in names]
    results = [{"role": "tool", "content": "5", "tool_call_id": f"{name:9}", "name": name} for name in names]
    begin = [USER, {"role": "assistant", "tool_calls": calls}]
    assert len(read(TOOLS, talk(*begin, *results, ANSWER))[0]) == 2
    assert len(read(NUMBERED, talk(*begin, *reversed(results), ANSWER))[0]) == 2
    for field in ("tool_call_id", "name"):
        few = [{name: each[name] for name in ("role", "content", field)} for each in results]
        said = refusal(TOOLS, talk(*begin, *reversed(few), ANSWER))
        assert f"{field!r} of message 3 of line 1 of a.jsonl is not that of the call at its place, 'sun" in said
        assert f"{field!r} of message 3 of " in refusal(TOOLS, talk(*begin, few[1], ANSWER))


def test_a_name_says_who_speaks_and_of_a_result_its_call_does() -> None:
    named = [{**USER, "name": "Ada"}, ANSWER]
    assert "leaves out 'name' of message 1 of line 1" in refusal(PLAIN, talk(*named))
    template = PLAIN.replace("{{ m.role }}", "{{ m.role }}{{ ' ' ~ m.name if m.name else '' }}")
    assert read(template, talk(*named))[1].startswith("<|im_start|>user Ada\nTwo")
    result = {**AGENT[2], "name": "weather"}
    assert len(read(TOOLS, talk(*AGENT[:2], result, AGENT[3]))[0]) == 2
