"""Chat templates in the manner of several families of models, and what is read of a record by one."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_chat import PLAIN, TALK, folder

from gaudi3_scale.config import DataConfig
from gaudi3_scale.data.chat_template import ChatEncoder
from gaudi3_scale.data.conversation import conversation
from gaudi3_scale.data.piece import Piece
from gaudi3_scale.data.sources import START
from gaudi3_scale.data.tokenizer import load_tokenizer
from gaudi3_scale.errors import ConfigError

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


@cache
def encoder() -> ChatEncoder:
    with tempfile.TemporaryDirectory() as home:
        config = DataConfig(content="chat", tokenizer=str(folder(Path(home) / "tokenizer", PLAIN)))
        return ChatEncoder(config, load_tokenizer(config))


def read(template: str, record: dict[str, Any]) -> tuple[list[str], str]:
    """What is learnt of a record by a template, and the whole text."""
    tokenizer = encoder()._tokenizer
    tokenizer.chat_template = template
    given = conversation(record, next(iter(record)), "Line 1 of a.jsonl")
    (ids, marks), *_ = encoder().encode([Piece(given.dumps(), True, START)], [True])
    assert marks is not None
    edges = np.flatnonzero(np.diff(np.concatenate([[0], marks, [0]]))).reshape(-1, 2)
    return [tokenizer.decode(ids[a:b]) for a, b in edges], tokenizer.decode(ids)


def refusal(template: str, record: dict[str, Any]) -> str:
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
