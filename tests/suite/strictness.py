"""Writes the rules of simulator/strictness.yml to where the simulated node and device, and people, read them."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "simulator" / "strictness.yml"
NODE = ROOT / "simulator" / "src" / "gaudi3_simulator" / "node"
DEVICE = ROOT / "simulator" / "torch" / "src" / "gaudi3_hpu_simulator"
STATUS = ROOT / "docs" / "hardware-status.md"
BEGIN, END = "<!-- guesses: written by `make strictness` -->\n", "<!-- end of guesses -->\n"
HEADER = "# Written by `make strictness`; edit {} instead.\n"


@dataclass(frozen=True)
class Rule:
    """One row."""

    id: str
    where: str
    rule: str
    source: str
    state: bool
    test: str


def rules() -> list[Rule]:
    """Every row, checked; ValueError names the first that is wrong."""
    rows = yaml.safe_load(SOURCE.read_text())
    for row in rows:
        if row["state"] not in ("on", "off"):
            raise ValueError(f'{row["id"]}: state is {row["state"]!r}, but it has to be "on" or "off", in quotes.')
    found = [Rule(**{**row, "state": row["state"] == "on"}) for row in rows]
    for rule in found:
        if rule.where not in ("device", "node"):
            raise ValueError(f"{rule.id}: where is {rule.where!r}, but it has to be device or node.")
        if rule.source.startswith("guess") and not rule.source.startswith("guess: "):
            raise ValueError(f"{rule.id}: a guess needs its reason: write `guess: why`.")
        if [other.id for other in found].count(rule.id) > 1:
            raise ValueError(f"{rule.id} stands twice in {SOURCE.name}.")
    return found


def guesses() -> str:
    """The rules without a source, as a table."""
    rows = [rule for rule in rules() if rule.source.startswith("guess")]
    lines = [f"| `{rule.id}` | {rule.rule} | {rule.source.partition(':')[2].strip()} |\n" for rule in rows]
    return "| rule | the simulator | why |\n|---|---|---|\n" + "".join(lines)


def written() -> dict[Path, str]:
    """The files that follow from the rows, and from the node's reader of them."""
    before, rest = STATUS.read_text().split(BEGIN)
    status = before + BEGIN + guesses() + END + rest.partition(END)[2]
    states = {rule.id: rule.state for rule in rules()}
    table = "RULES: dict[str, bool] = {\n" + "".join(f'    "{name}": {on},\n' for name, on in states.items()) + "}\n"
    if not states:
        table = "RULES: dict[str, bool] = {}\n"
    text = '"""The rules and their defaults."""\n\n' + HEADER.format("simulator/strictness.yml") + "\n" + table
    reader = (NODE / "strictness.py").read_text()
    first, body = reader.split('\n"""\n', 1)
    copy = first + '\n"""\n' + HEADER.format("simulator/src/gaudi3_simulator/node/strictness.py") + body
    return {
        STATUS: status,
        NODE / "strictness_rules.py": text,
        DEVICE / "strictness_rules.py": text,
        DEVICE / "strictness.py": copy.replace("from .strictness_rules", "from gaudi3_hpu_simulator.strictness_rules"),
    }


if __name__ == "__main__":
    for path, content in written().items():
        if not path.exists() or path.read_text() != content:
            path.write_text(content)
            sys.stdout.write(f"{path.relative_to(ROOT)} written\n")
