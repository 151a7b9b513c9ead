"""What takes the place of optimum-habana's imports: other imports, classes with its defaults, small functions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import libcst as cst

from gaudi3_migration import arguments as table
from gaudi3_migration.facts import Facts, aliases
from gaudi3_migration.names import GONE as GONE
from gaudi3_migration.names import MOVED as MOVED
from gaudi3_migration.names import REMOVED as REMOVED
from gaudi3_migration.names import Name, lookup
from gaudi3_migration.snippets import SNIPPETS

FUSED = "from habana_frameworks.torch.hpex.optimizers import FusedAdamW"


def subclass_of(row: Name) -> str:
    """The name of the class of arguments that keeps optimum-habana's defaults."""
    return f"Migrated{row.successor.rpartition('.')[2]}"


@dataclass
class Plan:
    """How the names of one file are called from now on."""

    facts: Facts
    renamed: dict[str, str] = field(default_factory=dict)
    """Local names that change."""
    replaced: dict[str, str] = field(default_factory=dict)
    """Qualified names that are reached through a module, and what is written for them."""
    kept: set[str] = field(default_factory=set)
    """Qualified names of optimum-habana that stay imported, as nothing follows them."""
    subclassed: set[str] = field(default_factory=set)
    """Classes of arguments that are more than called: rows' names."""
    snippets: set[str] = field(default_factory=set)
    fused: bool = False

    def stays(self, qualified: str, row: Name) -> bool:
        """Whether a use of a name is left that nothing can be written for."""
        if row.kind == "none":
            return True
        return row.kind == "remove" and self.facts.loads[qualified] > self.facts.removable[qualified]

    def target(self, row: Name) -> str:
        """The local name of what follows a class."""
        return subclass_of(row) if row.name in self.subclassed else row.successor.rpartition(".")[2]


def plan(facts: Facts, config_known: bool) -> Plan:
    """Names that are renamed, kept and defined, out of what was read."""
    made = Plan(facts)
    made.fused = facts.settings.get("use_fused_adam", False) and config_known
    rows = {
        qualified: row
        for qualified in (*facts.imports.values(), *facts.loads)
        if (row := lookup(qualified)) is not None
    }
    for qualified, row in rows.items():
        if row.role == "arguments":
            parsed = facts.loads[qualified] > facts.calls[qualified]
            if parsed or any(not table.BY_ARGUMENT[each].read for each in facts.reads - facts.own_arguments):
                made.subclassed.add(row.name)
        if made.stays(qualified, row):
            made.kept.add(qualified)
    for local, qualified in facts.imports.items():
        row = rows.get(qualified)
        if row is not None and row.kind == "class" and local == row.name:
            new = made.target(row)
            taken = facts.imports.get(new, row.successor) not in (row.successor, qualified) or new in facts.bound
            if new != local and local not in facts.bound and local not in facts.strings and not taken:
                made.renamed[local] = new
    for qualified in facts.loads:
        row = rows[qualified]
        if qualified not in facts.imports.values() and row.kind in ("class", "snippet"):
            made.replaced[qualified] = made.target(row) if row.kind == "class" else row.name
    return made


def definition(row: Name, local: str, made: Plan) -> list[cst.BaseStatement]:
    """The class of arguments with optimum-habana's defaults and the program's own fields."""
    facts = made.facts
    lines = [f"{name}: {_type(default)} = {default}" for name, (default, _new, _changes) in table.DEFAULTS.items()]
    if facts.settings.get("use_torch_autocast"):
        lines.append("bf16: bool = True")
    for name in sorted(facts.reads - facts.own_arguments):
        old = table.BY_ARGUMENT[name]
        if not old.read:
            lines.append(f"{name}: {old.type if old.default != 'None' else f'{old.type} | None'} = {old.default}")
    for name in clashes(facts):
        default = table.ADDED_DEFAULTS.get(name, "None")
        lines.append(f"{name}: object = dataclasses.field(default={default}, init=False)")
    body = "".join(f"    {line}\n" for line in lines)
    text = f"@dataclasses.dataclass\nclass {local}({row.successor.rpartition('.')[2]}):\n{body}"
    head = ["# migrate: optimum-habana's defaults, which transformers 5 has changed"]
    if facts.reads - facts.own_arguments:
        head.append("# migrate: and arguments that this program reads, which transformers 5 does not know")
    if clashes(facts):
        head.append(f"# migrate: and {', '.join(clashes(facts))}, which stays this program's own option")
    module = cst.parse_module("import dataclasses\n\n\n" + "\n".join(head) + f"\n{text}\n\n")
    return [statement for statement in module.body if isinstance(statement, cst.BaseStatement)]


def _type(default: str) -> str:
    return {'"': "str", "F": "bool", "T": "bool"}.get(
        default[0], "float" if "e" in default or "." in default else "int"
    )


def clashes(facts: Facts) -> list[str]:
    """New fields of transformers' arguments that another class of the same parser has already."""
    beside = {name for classes in facts.parsers.values() for name in classes}
    kinds = {name for name, kind in facts.kinds.items() if kind.role == "arguments"}
    own = set().union(*(facts.fields.get(name, set()) for name in beside - kinds))
    return [name for name in table.ADDED if name in own]


def imported(names: Iterable[tuple[str, str]]) -> list[cst.BaseStatement]:
    """One import of each module for these dotted names and their local ones."""
    modules: dict[str, list[str]] = {}
    for successor, local in names:
        module, _, name = successor.rpartition(".")
        wanted = name if name == local else f"{name} as {local}"
        if wanted not in modules.setdefault(module, []):
            modules[module].append(wanted)
    return [cst.parse_statement(f"from {module} import {', '.join(sorted(each))}") for module, each in modules.items()]


def from_habana(node: cst.ImportFrom, made: Plan) -> tuple[list[cst.BaseStatement], list[tuple[str, str]]]:
    """The statements that take the place of a `from optimum.habana... import`, and what it has to keep importing."""
    classes: list[tuple[str, str]] = []
    kept: list[tuple[str, str]] = []
    after: list[cst.BaseStatement] = []
    for local, qualified, _alias in aliases(node):
        row = lookup(qualified)
        if row is None or qualified in made.kept:
            kept.append((qualified, local))
        elif row.kind == "class":
            new = made.renamed.get(local, local)
            if row.name in made.subclassed:
                base = row.successor.rpartition(".")[2]
                classes.append((row.successor, base))
                after += definition(row, new, made)
            else:
                classes.append((row.successor, new))
        elif row.kind == "snippet":
            after += list(cst.parse_module(SNIPPETS[row.name].format(name=local)).body)
    return [*imported(classes), *after], kept


def through_module(made: Plan) -> list[cst.BaseStatement]:
    """What takes the place of an `import optimum.habana`, for all that is reached through it."""
    classes: list[tuple[str, str]] = []
    after: list[cst.BaseStatement] = []
    for qualified, new in made.replaced.items():
        row = lookup(qualified)
        if row is None:
            continue
        if row.kind == "snippet":
            after += list(cst.parse_module(SNIPPETS[row.name].format(name=new)).body)
        elif row.name in made.subclassed:
            classes.append((row.successor, row.successor.rpartition(".")[2]))
            after += definition(row, new, made)
        else:
            classes.append((row.successor, new))
    return [*imported(classes), *after]


def then(row: Name) -> str:
    """What follows a name, in the words of a report."""
    if row.kind == "none":
        return f"no successor: {row.do}" if row.do else "no successor"
    if row.kind == "class":
        return f"{row.successor}; {row.do}" if row.do else row.successor
    if row.kind == "snippet":
        return f"defined in the program ({row.do})"
    return f"removed: {row.do}"
