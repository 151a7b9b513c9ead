"""What a statement still names of optimum-habana although nothing was said of it: said at its end, for a person."""

from __future__ import annotations

from dataclasses import dataclass, field

import libcst as cst

from gaudi3_migration import arguments as table
from gaudi3_migration.facts import Facts, dotted, string
from gaudi3_migration.findings import Certainty
from gaudi3_migration.said import COMPOUND, Said

LAZY = {"mark_step": "remove it: of lazy mode alone"}
ELSEWHERE = ("attn_implementation", *table.MODEL_SETTINGS)
"""What calls besides those of training arguments take."""


@dataclass
class _Statement:
    """One that is being walked over, its blocks left out."""

    named: dict[str, str] = field(default_factory=dict)
    """What it names, and how."""
    said: list[str] = field(default_factory=list)


class Mentions(Said):
    """Collects what each statement names; `facts` are those of the file."""

    def __init__(self, facts: Facts) -> None:
        super().__init__()
        self.facts = facts
        self.statements = [_Statement()]
        self.calls: list[cst.Call] = []
        """Calls around."""
        self.strange: list[bool] = []
        """Of each class around, whether it is of one that nothing here defines or imports."""

    def note(
        self, node: cst.CSTNode, what: str, then: str, certainty: Certainty = "sure", changes: bool = False
    ) -> None:
        self.statements[-1].said.append(f"{what}: {then}")
        super().note(node, what, then, certainty, changes)

    def on_visit(self, node: cst.CSTNode) -> bool:
        if isinstance(node, (*COMPOUND, cst.SimpleStatementLine)):
            self.statements.append(_Statement())
        if isinstance(node, cst.Call):
            self.calls.append(node)
        if isinstance(node, cst.ClassDef):
            names = [dotted(each.value).partition(".")[0] for each in node.bases]
            known = self.facts.imports.keys() | self.facts.fields.keys() | {"object"}
            self.strange.append(any(each not in known for each in names))
        self._named(node)
        return super().on_visit(node)

    def on_leave(  # type: ignore[override]
        self, original_node: cst.CSTNode, updated_node: cst.CSTNode
    ) -> cst.CSTNode | cst.RemovalSentinel | cst.FlattenSentinel[cst.CSTNode]:
        if isinstance(original_node, cst.Call):
            self.calls.pop()
        if isinstance(original_node, cst.ClassDef):
            self.strange.pop()
        if isinstance(original_node, COMPOUND):
            self.say_rest(original_node)
        result = super().on_leave(original_node, updated_node)
        if isinstance(original_node, (*COMPOUND, cst.SimpleStatementLine)):
            self.statements.pop()
        return result

    def say_rest(self, node: cst.CSTNode) -> None:
        """Say what the statement names and nothing was said of."""
        here = self.statements[-1]
        said = " ".join(here.said)
        for word, how in here.named.items():
            if word not in said:
                row = table.BY_ARGUMENT.get(word)
                ask = f"look what it is for; {row.do.removeprefix('no successor: ')}" if row else "look what takes it"
                self.note(node, how, f"no successor: {LAZY.get(word, ask)}", "person")

    def _named(self, node: cst.CSTNode) -> None:
        """What a node names."""
        if isinstance(node, cst.Arg) and node.keyword is not None and self.calls:
            called = dotted(self.calls[-1].func).rpartition(".")[2]
            own = self.facts.functions.get(called, set()) | self.facts.fields.get(called, set())
            if node.keyword.value not in own and called != "add_argument":
                self._name(node.keyword.value, f"the keyword {node.keyword.value}=")
        elif isinstance(node, cst.Arg) and dotted(node.value) == "gaudi_config":
            self._name("gaudi_config", "the argument gaudi_config")
        elif isinstance(node, cst.Arg | cst.Element) and (name := dotted(node.value)) in self.facts.configs:
            self.statements[-1].named.setdefault(name, f"{name}, the Gaudi configuration, which is None now")
        elif isinstance(node, cst.Tuple) and len(node.elements) == 2 and (key := string(node.elements[0].value)):
            self._name(key, f"the pair of {key!r}")
        elif isinstance(node, cst.DictElement | cst.Index) and (
            key := string(node.key if isinstance(node, cst.DictElement) else node.value)
        ):
            self._name(key, f"the key {key!r}")
        elif isinstance(node, cst.SimpleString) and (text := string(node)):
            word = text.removeprefix("--").replace("-", "_") if text.startswith("--") else text
            if (text.startswith("--") or "_" in word) and not self._option():
                self._name(word, f"the text {text!r}")
        elif isinstance(node, cst.Attribute) and (node.attr.value in LAZY or self._of_arguments(dotted(node.value))):
            self._name(node.attr.value, dotted(node))
        elif isinstance(node, cst.AssignTarget | cst.AnnAssign) and self.strange and self.strange[-1]:
            if dotted(node.target) in table.BY_ARGUMENT:
                self.statements[-1].named.setdefault(dotted(node.target), f"the field {dotted(node.target)}")
        elif isinstance(node, cst.Param) and node.name.value == "gaudi_config":
            self._name("gaudi_config", "the parameter gaudi_config")

    def _of_arguments(self, base: str) -> bool:
        """Whether something may be training arguments: neither a member of an object here nor of a module."""
        first = base.partition(".")[0]
        return base == "self.args" or (bool(base) and first != "self" and first not in self.facts.imports)

    def _option(self) -> bool:
        """Whether the call around defines an option of the program's own."""
        return bool(self.calls) and dotted(self.calls[-1].func).endswith("add_argument")

    def _name(self, word: str, how: str) -> None:
        known = word in table.BY_ARGUMENT or word in LAZY or word == "gaudi_config"
        if known and word not in self.facts.own and word not in ELSEWHERE:
            self.statements[-1].named.setdefault(word, how)
