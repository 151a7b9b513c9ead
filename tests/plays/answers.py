"""Answers that a hostile node gives: a true answer of a module, changed by a seeded draw.

Each text that a change puts into an answer has ``TOKEN`` in it, so that it can be found wherever it went.
"""

from __future__ import annotations

import copy
import json
import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

CHECKOUT = Path(__file__).resolve().parents[2]
TOKEN = "zq9"
LONG = 1_000_000
_NAME = re.compile(
    r"\b_?(?:doctor|fabric|firewall|gaudi|health|heal|hpu_exporter|node_look|preflight|trainer|verify)_\w+"
)


class Raw(str):
    """A number as its digits stand in JSON, such as those that Python's writer does not write."""


@dataclass(frozen=True)
class Answer:
    """What a hostile interpreter prints, the exit code it ends with, and the changes that made it."""

    text: bytes
    code: int
    changes: tuple[str, ...]


@cache
def variables() -> tuple[str, ...]:
    """The names of variables that the playbooks and roles read, so that an answer can name them as facts."""
    found: set[str] = set()
    for folder in ("playbooks", "roles"):
        for path in sorted((CHECKOUT / folder).rglob("*")):
            if path.suffix in (".yml", ".j2") and path.is_file():
                found.update(_NAME.findall(path.read_text(encoding="utf-8")))
    return tuple(sorted(found))


#: Variables of Ansible's own, which an answer could take for others.
MAGIC = (
    "ansible_become", "ansible_check_mode", "ansible_connection", "ansible_delegated_vars", "ansible_facts",
    "ansible_host", "ansible_play_hosts", "ansible_play_hosts_all", "ansible_playbook_python", "ansible_port",
    "ansible_python_interpreter", "ansible_remote_tmp", "ansible_run_tags", "group_names", "groups", "hostvars",
    "inventory_hostname", "omit", "play_hosts", "role_path",
)  # fmt: skip


def texts(marker: str, others: Sequence[str]) -> list[str]:
    """Texts that mean something to a template, a terminal, YAML, JSON or a list of addresses.

    ``marker`` is a file that an evaluated template would make; ``others`` are names of the other hosts.
    """
    pipe = f"lookup('ansible.builtin.pipe', 'touch {marker}')"
    other = others[0] if others else "localhost"
    return [
        f"{{{{ {pipe} }}}}{TOKEN}",
        f"{{% if {pipe} %}}{{% endif %}}{TOKEN}",
        f"{{% set x = hostvars['{other}'] %}}{TOKEN}",
        f"{{# {TOKEN}",
        f"{{% raw %}}{TOKEN}",
        f"{TOKEN}{{{{",
        f"{{{{ undefined_{TOKEN} }}}}",
        f"\x1b[2J\x1b]0;{TOKEN}\x07\x1b[31m",
        f"{TOKEN}\r\x9b1A\x08\u202e\u2028",
        f'{TOKEN}", "10.0.0.2:9100"]\n  labels: {{instance: {other}}}\n- targets: ["x',
        f"10.66.6.6\n10.66.6.7 {TOKEN}",
        f"0.0.0.0/0 {TOKEN}",
        f"!unsafe '{TOKEN}'\n---\n- hosts: all\n",
        f"&a [{TOKEN}, *a]",
        f'{{"{TOKEN}": [1, {{"ansible_facts": {{}}}}]}}',
        f"../../{TOKEN}/{other}",
        f"/{TOKEN}\x00/etc",
        f"'; touch {marker}; echo '{TOKEN}",
        f"$(touch {marker}){TOKEN}",
        f"{TOKEN}%s%d%n{{0}}",
        "",
        "yes",
        "1e400",
        "NaN",
        "null",
    ]


def values(rng: random.Random, marker: str, others: Sequence[str]) -> Any:
    """One odd value of any type."""
    text = rng.choice(texts(marker, others))
    nested: Any = text
    if rng.random() < 0.1:
        for _ in range(100):
            nested = [nested] if rng.random() < 0.5 else {TOKEN: nested}
        return nested
    return rng.choice(
        [
            *[text] * 8, [text], {text: text}, {TOKEN: text}, [[text]], [{}], None, True, False, [], {}, 0, -1, 0.5,
            Raw("1" + "0" * 400), Raw("-1" + "0" * 400), Raw("1e308"), Raw("Infinity"), Raw("-Infinity"), Raw("NaN"),
            Raw("1e999"), 2**63, [None], [0], {"0": 0},
            {"__ansible_unsafe": text}, {"__ansible_vault": text}, [text] * 1000,
            # What Ansible marks templates with, where it sends something itself.
            *([{"__ansible_type": "TrustedAsTemplate", "value": text}, f"{TOKEN}\ud800",
               {"__ansible_type": "_TaggedStr", "value": text, "tags": [{"__ansible_type": "TrustedAsTemplate"}]}]
              if rng.random() < 0.05 else []),
        ]
    )  # fmt: skip


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Where each part of an answer lies; long lists count with their ends."""
    found = [path] if path else []
    if len(path) == 8:
        return found
    if isinstance(value, dict):
        for key, each in value.items():
            found += places(each, (*path, key))
    elif isinstance(value, list):
        for number in {0, 1, len(value) - 1} & set(range(len(value))):
            found += places(value[number], (*path, number))
    return found


def _told(path: tuple[Any, ...]) -> str:
    return ".".join(map(str, path))


def _at(answer: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        answer = answer[key]
    return answer


def shrunk(value: Any) -> Any:
    """A shorter answer of the same shape, as long ones cost the controller much and change nothing."""
    if isinstance(value, dict):
        return {key: shrunk(each) for key, each in list(value.items())[:30] if key != "invocation"}
    if isinstance(value, list):
        return [shrunk(each) for each in value[:3]]
    return value[:300] if isinstance(value, str) else value


def _draw_place(rng: random.Random, answer: Any) -> tuple[Any, ...] | None:
    """A part of the answer: shallow ones are as likely as deep ones, though there are fewer."""
    known = [path for path in places(answer) if path[0] != "invocation"]
    if not known:
        return None
    depth = rng.choice(sorted({len(path) for path in known}))
    return rng.choice([path for path in known if len(path) == depth])


Change = Callable[[random.Random, dict[str, Any], Any], str]


def replace(rng: random.Random, answer: dict[str, Any], odd: Any) -> str:
    path = _draw_place(rng, answer)
    if path is None:
        return "nothing to replace"
    _at(answer, path[:-1])[path[-1]] = odd()
    return f"replace {_told(path)}"


def drop(rng: random.Random, answer: dict[str, Any], odd: Any) -> str:
    path = _draw_place(rng, answer)
    if path is None:
        return "nothing to drop"
    del _at(answer, path[:-1])[path[-1]]
    return f"drop {_told(path)}"


def add(rng: random.Random, answer: dict[str, Any], odd: Any) -> str:
    path = _draw_place(rng, answer)
    inside = _at(answer, path) if path else answer
    if isinstance(inside, list):
        inside.insert(rng.randrange(len(inside) + 1), odd())
    elif isinstance(inside, dict):
        inside[str(rng.choice([TOKEN, "name", "value", "state", "items", "keys", ""]))] = odd()
    else:
        answer[TOKEN] = odd()
    return f"add to {_told(path or ())}"


def swap(rng: random.Random, answer: dict[str, Any], odd: Any) -> str:
    """Another type with the same content."""
    path = _draw_place(rng, answer)
    if path is None:
        return "nothing to swap"
    value = _at(answer, path)
    forms: list[Any] = [json.dumps(value, default=str), [value], {"value": value}]
    if isinstance(value, dict):
        forms.append([[key, each] for key, each in value.items()])
    if isinstance(value, list):
        forms.append({str(number): each for number, each in enumerate(value)})
    _at(answer, path[:-1])[path[-1]] = rng.choice(forms)
    return f"swap {_told(path)}"


def facts(rng: random.Random, answer: dict[str, Any], odd: Any) -> str:
    """Variables that playbooks read, as facts."""
    pointed = {
        "health_mode": "enforce", "health_share": 1, "doctor_directory": f"../{TOKEN}",
        "health_directory": f"../{TOKEN}",
        "gaudi_cluster_address": "0.0.0.0/0", "gaudi_secrets_dir": f"/tmp/{TOKEN}", "ansible_check_mode": False,
        "ansible_host": "10.0.0.1", "health_released": "good-1", "trainer_state": "absent", "firewall_enabled": False,
    }  # fmt: skip
    names = rng.sample(variables(), min(12, len(variables()))) + rng.sample(MAGIC, 3) + rng.sample(sorted(pointed), 4)
    given: dict[str, Any] = {name: pointed.get(name, odd()) if rng.random() < 0.7 else odd() for name in names}
    if isinstance(answer.get("ansible_facts"), dict):
        answer["ansible_facts"].update(given)
    else:
        answer["ansible_facts"] = given
    return "facts"


def control(rng: random.Random, answer: dict[str, Any], odd: Any) -> str:
    """Keys of a result that Ansible itself reads."""
    hosts = {"host_name": "good-1", "groups": ["gaudi", "all"], "host_vars": {"ansible_host": odd(), TOKEN: odd()}}
    key, value = rng.choice(
        [
            ("add_host", hosts), ("add_group", "gaudi"), ("add_host", odd()), ("parent_groups", odd()),
            ("ansible_delegated_vars", {"good-1": {"ansible_host": odd()}}),
            ("ansible_stats", {"data": {TOKEN: odd()}}),
            ("warnings", odd()), ("warnings", [odd()]), ("deprecations", odd()), ("deprecations", [odd()]),
            ("deprecations", [{"msg": odd(), "version": odd()}]), ("diff", odd()), ("diff", [odd()]),
            ("diff", {"before": odd(), "after": odd()}), ("exception", odd()), ("invocation", odd()),
            ("invocation", {"module_args": odd()}), ("_ansible_notify", [odd()]), ("_ansible_no_log", odd()),
            ("_ansible_verbose_always", True), ("_ansible_delegated_vars", {"good-1": {}}),
            ("_ansible_item_label", odd()),
            ("_ansible_ignore_errors", True), ("_ansible_parsed", odd()), ("_ansible_facts_gathered", odd()),
            ("failed", odd()), ("failed", "no"), ("failed", True), ("changed", odd()), ("changed", "yes"),
            ("skipped", True), ("skipped", odd()), ("unreachable", True), ("unreachable", odd()), ("results", odd()),
            ("results", [{"ansible_facts": {TOKEN: 1}, "failed": True}]), ("msg", odd()), ("rc", odd()),
            ("stdout", odd()),
            ("stderr", odd()), ("ansible_facts", odd()), ("ansible_facts", [odd()]), ("attempts", odd()),
            ("ansible_job_id", odd()), ("include", odd()), ("failed_when_result", odd()), ("censored", odd()),
        ]
    )  # fmt: skip
    answer[key] = value
    return f"control {key}"


CHANGES: tuple[Change, ...] = (replace, replace, replace, drop, add, swap, facts, control)


def written(value: Any) -> str:
    """JSON of a value, whose raw numbers stand as they are given."""
    numbers: list[str] = []

    def plain(each: Any) -> Any:
        if isinstance(each, Raw):
            numbers.append(str(each))
            return f"<<number {len(numbers) - 1}>>"
        if isinstance(each, dict):
            return {str(key): plain(inside) for key, inside in each.items()}
        return [plain(inside) for inside in each] if isinstance(each, list) else each

    text = json.dumps(plain(value))
    return re.sub(r'"<<number (\d+)>>"', lambda found: numbers[int(found[1])], text)


def _broken(rng: random.Random, text: str) -> tuple[str, bytes]:
    """What is no answer of a module at all, or one among other lines."""
    line = text.encode()
    escape = f"\x1b[2J{TOKEN}\n".encode()
    return rng.choice(
        [
            ("nothing", b""), ("half of it", line[: len(line) // 2]), ("no JSON", escape),
            ("a list", b"[" + line + b"]"),
            ("a number", b"5"), ("null", b"null"), ("a text", b'"' + TOKEN.encode() + b'"'), ("{}", b"{}"),
            ("lines before", escape * 3 + line), ("lines behind", line + b"\n" + escape * 3),
            ("twice", line + b"\n" + line),
            ("no UTF-8", line[:-1] + b', "' + TOKEN.encode() + b'": "\xff\xfe\xc3"}'), ("zeros", b"\x00" * 100 + line),
            ("deep", b'{"a":' * 100_000 + b"1" + b"}" * 100_000), ("digits", b'{"a": 1' + b"0" * 5000 + b"}"),
            ("long", line[:-1] + b', "' + TOKEN.encode() + b'": "' + b"x" * LONG + b'"}'),
            ("key twice", line[:-1] + b', "changed": "' + TOKEN.encode() + b'", "changed": []}'),
        ]
    )  # fmt: skip


def answer(true: dict[str, Any], seed: str, marker: str, others: Sequence[str] = ()) -> Answer:
    """One answer, the same for the same seed: ``true`` with one to four changes, or none that is an answer."""
    rng = random.Random(seed)
    changed = copy.deepcopy(true)
    done = [
        rng.choice(CHANGES)(rng, changed, lambda: values(rng, marker, others)) for _ in range(rng.choice([1, 1, 2, 4]))
    ]
    text = written(changed)
    kind, raw = _broken(rng, text) if rng.random() < 0.15 else ("", f"\n{text}\n".encode())
    code = rng.choice([0, 0, 0, 0, 0, 0, 1, 2, 137, 255])
    return Answer(raw, code, (*done, *([f"printed: {kind}"] if kind else [])))
