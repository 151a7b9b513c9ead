"""The command line and the JSON file that a program was started with: launcher and arguments."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from typing import Any

from gaudi3_migration import arguments as table
from gaudi3_migration.findings import Finding

DEEPSPEED = "zero_optimization"
"""A key that DeepSpeed's files have."""
WRAPPED = "transformer_layer_cls_to_wrap"


def _launcher(command: Sequence[str]) -> tuple[list[str], list[str], list[Finding]]:
    """What starts the program in the place of gaudi_spawn.py, what is behind it, and what was met."""
    place = next((number for number, word in enumerate(command) if word.endswith("gaudi_spawn.py")), None)
    if place is None:
        head = next((number + 1 for number, word in enumerate(command) if word.endswith(".py")), 0)
        return list(command[:head]), list(command[head:]), []
    cards, port, rest = "1", "", list(command[place + 1 :])
    found = []
    start = ["torchrun"]
    while rest and rest[0].startswith("--"):
        name, _, value = rest.pop(0).removeprefix("--").replace("-", "_").partition("=")
        if name in ("world_size", "hostfile", "master_port") and not value and rest:
            value = rest.pop(0)
        if name == "world_size":
            cards = value
        elif name == "master_port":
            port = value
        elif name == "use_mpi":
            found.append(Finding(0, "--use_mpi", "torchrun starts the processes"))
        elif name == "use_deepspeed":
            start = ["accelerate", "launch", "--use_deepspeed"]
            found.append(Finding(0, "--use_deepspeed", "accelerate launch --use_deepspeed"))
        else:
            found.append(
                Finding(
                    0,
                    f"--{name} {value}".strip(),
                    "no successor: gaudi3.scale starts more nodes",
                    "person",
                )
            )
    found.append(Finding(0, "gaudi_spawn.py", " ".join(start)))
    start += [*(["--num_processes", cards] if start[0] == "accelerate" else ["--nproc_per_node", cards])]
    if port:
        start += ["--main_process_port" if start[0] == "accelerate" else "--master_port", port]
    return [*start, *rest[:1]], rest[1:], found


def migrated_command(command: Sequence[str], own: Collection[str]) -> tuple[list[str], list[Finding]]:
    """A command line for the rewritten program, and what was met; `own` are the program's own options."""
    result, rest, found = _launcher(command)
    number = 0
    while number < len(rest):
        word = rest[number]
        number += 1
        name, equal, value = word.removeprefix("--").partition("=")
        row = table.BY_ARGUMENT.get(name.replace("-", "_")) if word.startswith("--") else None
        values = [value] if equal else []
        while not equal and row is not None and number < len(rest) and not rest[number].startswith("--") and not values:
            values.append(rest[number])
            number += 1
        if name in table.FILES:
            found.append(Finding(0, word, table.FILES[name], "likely"))
        if row is None or row.name in own:
            result += [word, *([] if equal else values)]
            continue
        given = values[0] if values else "True"
        pairs, finding = _argument(row, given, word)
        found.append(finding)
        for key, new in pairs:
            result += [f"--{key}", *([] if new is True else [str(new)])]
    return result, found


def _argument(row: table.Argument, given: Any, word: str) -> tuple[list[tuple[str, Any]], Finding]:
    """What takes the place of one argument with its value."""
    true = str(given).lower() in ("true", "1", "yes")
    name, _, fixed = row.successor.partition("=")
    if row.name == "use_habana":
        return ([] if true else [("use_cpu", True)]), Finding(0, word, row.do)
    if row.name == "gaudi_config_name":
        return [], Finding(0, word, "removed: its keys are in the program, where --gaudi-config gave them")
    if fixed:
        if not true:
            return [], Finding(0, word, row.do)
        value = fixed.strip('"').replace('["inputs"]', "inputs")
        return [(name, value)], Finding(0, word, f"--{name} {value}")
    if name and not name.startswith("not:"):
        return [(name, given if str(given) != "True" else True)], Finding(0, word, f"--{name}")
    then = row.do if row.do.startswith(("drop", "no successor")) else f"no successor: {row.do}"
    return [], Finding(0, word, then, "person" if row.person else "sure")


def _wrapped(given: Any, found: list[Finding]) -> Any:
    """The classes that FSDP wraps, which transformers has without Gaudi before their names."""
    names = [given] if isinstance(given, str) else given
    if not isinstance(names, list) or not any(str(each).startswith("Gaudi") for each in names):
        return given
    plain = [str(each).removeprefix("Gaudi") for each in names]
    found.append(Finding(0, f"{WRAPPED}: {', '.join(map(str, names))}", ", ".join(plain)))
    return plain[0] if isinstance(given, str) else plain


def migrated_json(text: str, own: Collection[str]) -> tuple[str, list[Finding]]:
    """A file of arguments (HfArgumentParser.parse_json_file) for the rewritten program, and what was met.

    A file of FSDP's or DeepSpeed's keys is taken too, by itself or within the arguments.
    """
    result: dict[str, Any] = {}
    found: list[Finding] = []
    given = json.loads(text)
    if not isinstance(given, dict):
        raise ValueError("it has no keys")
    if DEEPSPEED in given:
        return text, [Finding(0, DEEPSPEED, table.FILES["deepspeed"])]
    for key, value in given.items():
        if key in table.FILES and isinstance(value, str):
            found.append(Finding(0, f"{key}: {value}", table.FILES[key], "likely"))
        if key == WRAPPED:
            result[key] = _wrapped(value, found)
            continue
        if key == "fsdp_config" and isinstance(value, dict):
            result[key] = {name: _wrapped(each, found) if name == WRAPPED else each for name, each in value.items()}
            continue
        row = table.BY_ARGUMENT.get(key)
        if row is None or key in own:
            result[key] = value
            continue
        pairs, finding = _argument(row, value, key)
        found.append(finding)
        result.update(pairs)
    return json.dumps(result, indent=4) + "\n", found
