"""Facts of a program: what its names, classes and variables are to a migration."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import libcst as cst

from gaudi3_migration.arguments import BY_ARGUMENT
from gaudi3_migration.names import Name, lookup

HABANA = "optimum.habana"


def dotted(node: cst.CSTNode | None) -> str:
    """`a.b.c` of a name or an attribute; empty for anything else."""
    if isinstance(node, cst.Name):
        return node.value
    if isinstance(node, cst.Attribute):
        before = dotted(node.value)
        return f"{before}.{node.attr.value}" if before else ""
    return ""


def string(node: cst.CSTNode | None) -> str | None:
    """The value of a plain string literal."""
    if isinstance(node, cst.SimpleString) and isinstance(node.evaluated_value, str):
        return node.evaluated_value
    return None


def literal(node: cst.CSTNode | None) -> object:
    """The value of True, False or None; the node itself for anything else."""
    known: dict[str, object] = {"True": True, "False": False, "None": None}
    return known.get(node.value, node) if isinstance(node, cst.Name) else node


def aliases(node: cst.Import | cst.ImportFrom) -> Iterator[tuple[str, str, cst.ImportAlias]]:
    """Of each imported thing its local name, its qualified one, and the node; nothing of a star."""
    if isinstance(node.names, cst.ImportStar):
        return
    module = "." * len(node.relative) + dotted(node.module) if isinstance(node, cst.ImportFrom) else ""
    for alias in node.names:
        name = dotted(alias.name)
        given = alias.asname.name.value if alias.asname and isinstance(alias.asname.name, cst.Name) else ""
        if isinstance(node, cst.ImportFrom):
            yield given or name, f"{module}.{name}" if module.strip(".") else f"{module}{name}", alias
        else:
            yield given or name.partition(".")[0], name if given else name.partition(".")[0], alias


@dataclass
class Kind:
    """What a class is to a migration."""

    role: str
    """trainer, arguments, pipeline, accelerator, config or class."""
    name: str
    """In optimum-habana."""


@dataclass
class Facts:
    """What was read of one file."""

    imports: dict[str, str] = field(default_factory=dict)
    """Qualified names by local ones; what comes from optimum-habana has precedence."""
    modules: set[str] = field(default_factory=set)
    """Modules that are imported as a whole, by dotted name."""
    kinds: dict[str, Kind] = field(default_factory=dict)
    """Local classes, and variables that hold one."""
    fields: dict[str, set[str]] = field(default_factory=dict)
    """Annotated fields of each class."""
    options: set[str] = field(default_factory=set)
    """Options of the program's own argparse."""
    parsers: dict[str, list[str]] = field(default_factory=dict)
    """Classes of each HfArgumentParser."""
    arguments: set[str] = field(default_factory=set)
    """Variables that hold training arguments."""
    trainers: set[str] = field(default_factory=set)
    """Variables that hold a trainer."""
    pipelines: set[str] = field(default_factory=set)
    """Variables that hold a pipeline."""
    configs: set[str] = field(default_factory=set)
    """Variables that hold a GaudiConfig."""
    dicts: dict[str, str] = field(default_factory=dict)
    """What dictionaries are given to by `**`, as a role."""
    contents: dict[str, dict[str, cst.BaseExpression]] = field(default_factory=dict)
    """Keys and values of dictionaries."""
    wrappers: dict[str, str] = field(default_factory=dict)
    """Functions that hand all their keywords on, and to what role."""
    functions: dict[str, set[str]] = field(default_factory=dict)
    """Parameters of the program's functions and methods."""
    seconds: dict[str, str] = field(default_factory=dict)
    """Second positional parameters of functions, and of the constructors of classes; `*` where any number is taken."""
    settings: dict[str, bool] = field(default_factory=dict)
    """Known values of gaudi_config.json."""
    unread: set[str] = field(default_factory=set)
    """Calls that make a GaudiConfig of what is not known, such as a file or a variable, as the program writes them."""
    closed: set[str] = field(default_factory=set)
    """Classes that take no other keywords than those they name."""
    reads: set[str] = field(default_factory=set)
    """Arguments that are no more and that the program reads of its training arguments."""
    loads: Counter[str] = field(default_factory=Counter)
    """How often each qualified name of optimum-habana is used."""
    removable: Counter[str] = field(default_factory=Counter)
    """Of these, as a call or an assignment that can go."""
    calls: Counter[str] = field(default_factory=Counter)
    """Of these, called directly."""
    bound: set[str] = field(default_factory=set)
    """Names that the program binds by anything but an import."""
    strings: set[str] = field(default_factory=set)
    names: Counter[str] = field(default_factory=Counter)
    """How often each name is used at all."""
    lazy: Counter[str] = field(default_factory=Counter)
    """How often a module of the vendor's is used for a call of lazy mode alone."""
    configured: Counter[str] = field(default_factory=Counter)
    """How often a GaudiConfig is used for what goes: keys, a keyword, the assignment itself."""
    causal: bool = False
    configurations: dict[str, str] = field(default_factory=dict)
    """By function, the last variable that is given a model's configuration there."""
    saved: set[tuple[str, str]] = field(default_factory=set)
    """Functions, and the folders that they save parts into, as the program writes them."""

    hidden: list[set[str]] = field(default_factory=list)
    """Of each function around, names that its parameters hide; while a walk is in it."""

    def _is_hidden(self, name: str) -> bool:
        return any(name in each for each in self.hidden)

    def qualified(self, node: cst.CSTNode | None) -> str:
        """The qualified name of an expression that is a name or an attribute of something imported."""
        name = dotted(node)
        if not name:
            return ""
        first, _, rest = name.partition(".")
        found = self.imports.get(first)
        if found is None or self._is_hidden(first):
            return ""
        return f"{found}.{rest}" if rest else found

    def row(self, node: cst.CSTNode | None) -> Name | None:
        """The table's row of an expression."""
        return lookup(self.qualified(node))

    def kind(self, node: cst.CSTNode | None) -> Kind | None:
        """What class an expression is, through variables and conditions."""
        if isinstance(node, cst.IfExp):
            return self.kind(node.body) or self.kind(node.orelse)
        if isinstance(node, cst.BooleanOperation):
            return self.kind(node.left) or self.kind(node.right)
        row = self.row(node)
        if row is not None:
            role = row.role or ("config" if row.kind == "config" else "class" if row.kind == "class" else "")
            return Kind(role, row.name) if role else None
        name = dotted(node)
        return None if self._is_hidden(name.partition(".")[0]) else self.kinds.get(name)

    def takes_configuration(self, function: cst.BaseExpression) -> bool:
        """Whether the second positional argument of a trainer, or of what makes one, is the Gaudi configuration."""
        name = dotted(function).removeprefix("self.")
        if self.kind(function) is None and name in self.wrappers:
            return self.seconds.get(name) == "*"
        return self.seconds.get(name, "gaudi_config") in ("gaudi_config", "*")

    @property
    def _argument_fields(self) -> set[str]:
        return set().union(
            *(self.fields.get(name, set()) for name, kind in self.kinds.items() if kind.role == "arguments")
        )

    @property
    def renamed_fields(self) -> dict[str, str]:
        """Fields of the program's own classes of training arguments that transformers 5 reads by another name.

        One that the program reads itself stays as it is.
        """
        own, found = self._argument_fields, {}
        for name in own & BY_ARGUMENT.keys() - self.reads:
            successor = BY_ARGUMENT[name].successor
            if successor.isidentifier() and successor not in own:
                found[name] = successor
        return found

    @property
    def own_arguments(self) -> set[str]:
        """Fields of the program's own classes of training arguments that keep their names."""
        return self._argument_fields - self.renamed_fields.keys()

    @property
    def own(self) -> set[str]:
        """Fields and options that the program defines itself, and that keep their names."""
        return self.options.union(*self.fields.values()) - self.renamed_fields.keys()
