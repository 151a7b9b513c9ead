"""Statements that go, or whose place others take."""

from __future__ import annotations

import libcst as cst
from libcst.metadata import MetadataWrapper

from gaudi3_migration import arguments as table
from gaudi3_migration.blocks import Blocks, suite
from gaudi3_migration.comments import gone, lost
from gaudi3_migration.facts import HABANA, aliases, dotted, literal, string
from gaudi3_migration.findings import Certainty, Finding
from gaudi3_migration.imports import (
    FUSED,
    GONE,
    MOVED,
    REMOVED,
    Plan,
    clashes,
    from_habana,
    imported,
    then,
    through_module,
)
from gaudi3_migration.keywords import Pair, code, decide, expression, rewritten_arguments, rewritten_dict
from gaudi3_migration.names import lookup
from gaudi3_migration.reading import LAZY_CALLS


class Migration(Blocks):
    """The whole rewriting of one file."""

    def __init__(self, plan: Plan) -> None:
        super().__init__(plan)
        self.fused_imported = False
        self.functions = 0

    def visit_SimpleStatementLine(self, node: cst.SimpleStatementLine) -> None:
        self._push()

    def leave_SimpleStatementLine(
        self, original_node: cst.SimpleStatementLine, updated_node: cst.SimpleStatementLine
    ) -> cst.BaseStatement | cst.FlattenSentinel[cst.BaseStatement]:
        small: list[cst.BaseSmallStatement] = []
        after: list[cst.BaseStatement] = []
        inside: list[str] = []
        for old, new in zip(original_node.body, updated_node.body, strict=True):
            kept, more = self._statement(old, new)
            if kept is not None:
                small.append(kept)
            after += more
            inside += lost(old, [*([] if kept is None else [kept]), *more])
        self.say_rest(original_node)
        trailing = updated_node.trailing_whitespace
        if trailing.comment is None and (small or after) and (ignored := [each for each in inside if "noqa" in each]):
            trailing = trailing.with_changes(whitespace=cst.SimpleWhitespace("  "), comment=cst.Comment(ignored[0]))
        said = [cst.EmptyLine(comment=cst.Comment(each)) for each in inside if "noqa" not in each]
        lines = [*updated_node.leading_lines, *said, *self._new_comments(updated_node.leading_lines)]
        if small:
            small[-1] = (
                small[-1].with_changes(semicolon=cst.MaybeSentinel.DEFAULT)
                if len(small) < len(original_node.body)
                else small[-1]
            )
            updated_node = updated_node.with_changes(body=small, leading_lines=lines, trailing_whitespace=trailing)
            return cst.FlattenSentinel([updated_node, *after])
        if not after:
            last = trailing.comment
            return gone([*lines, cst.EmptyLine(comment=last)] if last and "noqa" not in last.value else lines)
        first = after[0].with_changes(leading_lines=lines)
        if isinstance(first, cst.SimpleStatementLine):
            first = first.with_changes(trailing_whitespace=trailing)
        return cst.FlattenSentinel([first, *after[1:]])

    def leave_SimpleStatementSuite(
        self, original_node: cst.SimpleStatementSuite, updated_node: cst.SimpleStatementSuite
    ) -> cst.BaseSuite:
        """`if lazy: mark_step()`: what takes the place of the statements behind a colon."""
        parts = [self._statement(old, new) for old, new in zip(original_node.body, updated_node.body, strict=True)]
        return suite(updated_node, parts)

    def _statement(
        self, old: cst.BaseSmallStatement, new: cst.BaseSmallStatement
    ) -> tuple[cst.BaseSmallStatement | None, list[cst.BaseStatement]]:
        """What is left of a small statement, and statements that take its place or follow it."""
        if isinstance(old, cst.ImportFrom):
            return self._import_from(old)
        if isinstance(old, cst.Import):
            return self._import(old)
        if isinstance(old, cst.Expr):
            return (None if self._call_goes(old) else new), []
        if isinstance(old, cst.Assign) and isinstance(new, cst.Assign):
            return self._assign(old, new), self._optimizer(old)
        if isinstance(old, cst.AnnAssign) and isinstance(new, cst.AnnAssign) and new.value is not None:
            changed = new.with_changes(value=self._value(dotted(old.target), old.value, new.value))
            return self._field(old, changed), []
        return new, []

    def _field(self, old: cst.AnnAssign, new: cst.AnnAssign) -> cst.AnnAssign:
        """A default in the program's own class of training arguments, under the name that transformers reads."""
        name = dotted(old.target)
        row = table.BY_ARGUMENT.get(name)
        kind = self.facts.kinds.get(self.reader.classes[-1]) if self.reader.classes and not self.functions else None
        if row is None or kind is None or kind.role != "arguments":
            return new
        if name in self.facts.renamed_fields:
            self.note(old, f"the field {name}", row.do, "sure", True)
            return new.with_changes(target=cst.Name(self.facts.renamed_fields[name]))
        if row.person or row.where != "optimum-habana":
            self.note(old, f"the field {name}", f"transformers does not read it any more: {row.do}", "person")
        else:
            self.note(old, f"the field {name}", f"this program's own now, which transformers does not read: {row.do}")
        return new

    def _optimizer(self, old: cst.Assign) -> list[cst.BaseStatement]:
        """The optimizer of a trainer that was made in this statement and takes none as a keyword."""
        name = dotted(old.targets[0].target)
        if not self.optimizer or not name or not isinstance(old.value, cst.Call) or not self._makes_trainer(old.value):
            return []
        value, self.optimizer = self.optimizer, ""
        return [cst.parse_statement(f"{name}.optimizer_cls_and_kwargs = {value}")]

    def _makes_trainer(self, call: cst.Call) -> bool:
        return self.reader.role(call) == "trainer" and dotted(call.func).rpartition(".")[2] != "partial"

    # -- imports --------------------------------------------------------------------------------------------------

    def _import_from(self, node: cst.ImportFrom) -> tuple[cst.BaseSmallStatement | None, list[cst.BaseStatement]]:
        module = dotted(node.module)
        if module != HABANA and not module.startswith(f"{HABANA}.") and not (module == "optimum" and not node.relative):
            return self._moved(node)
        if isinstance(node.names, cst.ImportStar):
            self.note(node, code(node), "no successor: name what is imported", "person")
            return node, []
        if module == "optimum":
            given = list(aliases(node))
            if not any(qualified == HABANA for _local, qualified, _alias in given):
                return node, []
            if len(given) > 1 or self._module_kept(given[0][0]):
                self.note(node, code(node), "no successor: import what is needed by name", "person")
                return node, through_module(self.plan)
            return None, self._with_fused(through_module(self.plan))
        after, kept = from_habana(node, self.plan)
        for _local, qualified, _alias in aliases(node):
            row = lookup(qualified)
            if row is None or qualified in self.plan.kept:
                self.note(
                    node,
                    qualified,
                    then(row) if row and row.kind == "none" else "no successor: remove its uses",
                    "person",
                )
            else:
                changes = row.changes and row.kind not in ("config", "remove")
                certainty = "person" if row.person else "sure"
                self.note(node, qualified, then(row), "person" if certainty == "person" else "sure", changes)
                if row.role == "arguments" and row.name in self.plan.subclassed:
                    self._noted_defaults(node)
        found = [lookup(qualified) for _local, qualified, _alias in aliases(node)]
        after = self._with_fused(after, any(row is not None and row.role == "trainer" for row in found))
        if not kept:
            return None, after
        if len(kept) == len(node.names):
            return node, after
        names = [
            cst.ImportAlias(cst.Name(name), cst.AsName(cst.Name(local)) if local != name else None)
            for qualified, local in kept
            if (name := qualified.rpartition(".")[2])
        ]
        last = names[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
        return node.with_changes(names=[*names[:-1], last]), after

    def _noted_defaults(self, node: cst.CSTNode) -> None:
        for name, (old, new, _changes) in table.DEFAULTS.items():
            self.note(node, name, f"{old}, optimum-habana's default, is kept (transformers has {new})", "sure", False)
        for name in clashes(self.facts):
            self.note(
                node, name, "an argument of transformers 5 too: it stays this program's own option", "sure", False
            )

    def _with_fused(self, after: list[cst.BaseStatement], trainer: bool = False) -> list[cst.BaseStatement]:
        """With the import of the optimizer: once in the file, or in a function beside the `trainer` that takes it."""
        if not self.plan.fused or self.fused_imported or "FusedAdamW" in self.facts.imports:
            return after
        if self.functions and not trainer:
            return after
        self.fused_imported = not self.functions
        return [cst.parse_statement(FUSED), *after]

    def _module_kept(self, local: str) -> bool:
        """Whether a module of optimum-habana is used for more than what is replaced."""
        found = [each for each in self.facts.loads if each not in self.facts.imports.values()]
        replaced = sum(self.facts.loads[each] for each in found if each in self.plan.replaced)
        removed = sum(
            self.facts.removable[each]
            for each in found
            if each not in self.plan.kept and each not in self.plan.replaced
        )
        configs = sum(
            self.facts.loads[each] for each in found if (row := lookup(each)) is not None and row.kind == "config"
        )
        return self.facts.names[local] > replaced + removed + configs

    def _import(self, node: cst.Import) -> tuple[cst.BaseSmallStatement | None, list[cst.BaseStatement]]:
        kept: list[cst.ImportAlias] = []
        after: list[cst.BaseStatement] = []
        for local, _qualified, alias in aliases(node):
            name = dotted(alias.name)
            if name == HABANA or name.startswith(f"{HABANA}."):
                if self._module_kept(local):
                    kept.append(alias)
                    self.note(node, f"import {name}", "no successor: import what is needed by name", "person")
                else:
                    self.note(node, f"import {name}", "imports of what follows")
                after += through_module(self.plan)
            elif name.startswith("habana_frameworks") and self._only_lazy(local, alias):
                self.note(node, f"import {name}", "removed: nothing uses it any more")
            else:
                kept.append(alias)
        if not kept:
            return None, self._with_fused(after)
        if len(kept) == len(node.names):
            return node, after
        return node.with_changes(names=[*kept[:-1], kept[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)]), after

    def _only_lazy(self, local: str, alias: cst.ImportAlias) -> bool:
        """Whether a module of the vendor's is used for calls alone that go."""
        used = self.facts.names[local]
        return alias.asname is not None and used > 0 and used == self.facts.lazy[local]

    def _moved(self, node: cst.ImportFrom) -> tuple[cst.BaseSmallStatement | None, list[cst.BaseStatement]]:
        if isinstance(node.names, cst.ImportStar):
            return node, []
        module = dotted(node.module)
        if module in MOVED:
            self.note(node, module, MOVED[module])
            return node.with_changes(module=expression(MOVED[module])), []
        stays: list[cst.ImportAlias] = []
        moved: list[tuple[str, str]] = []
        for local, qualified, alias in aliases(node):
            lazy = module.startswith("habana_frameworks") and self.facts.names[local] == self.facts.lazy[local] > 0
            if lazy:
                self.note(node, qualified, "removed: nothing uses it any more")
            elif qualified in GONE:
                self.note(node, qualified, f"removed: {GONE[qualified]}")
            elif qualified in MOVED:
                self.note(node, qualified, MOVED[qualified])
                moved.append((MOVED[qualified], local))
            elif qualified in REMOVED:
                self.note(node, qualified, f"no successor: {REMOVED[qualified]}", "person")
                stays.append(alias)
            else:
                stays.append(alias)
        if len(stays) == len(node.names):
            return node, []
        after = imported(moved)
        if not stays:
            return None, after
        return node.with_changes(names=[*stays[:-1], stays[-1].with_changes(comma=node.names[-1].comma)]), after

    # -- calls and assignments ------------------------------------------------------------------------------------

    def _call_goes(self, node: cst.Expr) -> bool:
        if not isinstance(node.value, cst.Call):
            return False
        function = node.value.func
        qualified = self.facts.qualified(function)
        row = lookup(qualified)
        if row is not None and row.kind == "remove" and qualified not in self.plan.kept:
            self.note(node, code(node), then(row), "sure", row.changes)
            return True
        if qualified in GONE:
            self.note(node, code(node), f"removed: {GONE[qualified]}")
            return True
        if qualified.startswith("habana_frameworks.") and qualified.rpartition(".")[2] in LAZY_CALLS:
            self.note(node, code(node), "removed: of lazy mode alone")
            return True
        return False

    def _assign(self, old: cst.Assign, new: cst.Assign) -> cst.BaseSmallStatement | None:
        target = old.targets[0].target
        name = dotted(target)
        self._class_attribute(old, name)
        row = self.facts.row(old.value)
        if row is not None and row.kind == "remove" and self.facts.qualified(old.value) not in self.plan.kept:
            self.note(old, code(old), then(row), "sure", row.changes)
            return None
        if isinstance(target, cst.Attribute):
            base, attribute = dotted(target.value), target.attr.value
            if base in self.facts.configs:
                then_do = table.CONFIG_KEYS.get(attribute, ("no such key", ""))[0]
                if attribute in table.CONFIG_SWITCHES and not isinstance(literal(old.value), bool):
                    self.note(old, code(old), f"no successor: {then_do}", "person")
                else:
                    self.note(old, code(old), f"removed: {then_do}")
                return None
            if (
                base in self.facts.arguments
                and attribute in table.BY_ARGUMENT
                and attribute not in self.facts.own_arguments
            ):
                return self._argument_set(old, new, target)
            if attribute in table.MODEL_SETTINGS and base.rpartition(".")[2] in (
                "generation_config",
                "config",
                "model_config",
            ):
                self.note(old, code(old), "no effect: only optimum-habana's model classes read it", "sure", True)
        if isinstance(target, cst.Subscript):
            return self._key(old, new, target)
        if name in self.facts.configs and literal(new.value) is None and len(old.targets) == 1:
            rest = self.facts.names[name.rpartition(".")[2]] - self.facts.configured[name]
            if rest <= 0:
                return None
            self.note(old, f"{name}, which is used besides", "None", "likely", True)
        return new.with_changes(value=self._value(name, old.value, new.value))

    def _class_attribute(self, node: cst.Assign, name: str) -> None:
        """`use_lazy_mode = False` in the program's own class of training arguments, which is no field of it."""
        row = table.BY_ARGUMENT.get(name)
        if row is not None and not self.functions and self._around() == "arguments":
            self.note(node, f"the class's {name}", f"no successor: transformers does not read it: {row.do}", "person")

    def _value(self, name: str, old: cst.BaseExpression | None, new: cst.BaseExpression) -> cst.BaseExpression:
        """The value of a variable, without the keys of a dictionary that are no more."""
        role = self.facts.dicts.get(name, "")
        if not role or old is None:
            return new

        def note(what: str, then: str, certainty: object, changes: bool) -> None:
            self.note(old, what, then, certainty, changes)  # type: ignore[arg-type]

        if isinstance(new, cst.Dict):
            return rewritten_dict(role, new, self.facts, note)[0]
        if isinstance(new, cst.Call) and dotted(new.func) == "dict":
            before = new.whitespace_before_args
            args, before, _device = rewritten_arguments(role, list(new.args), before, self.facts, note)
            return new.with_changes(args=args, whitespace_before_args=before)
        self.note(
            old, f"{name}, whose keys are given to {role}", "no successor: look which keywords are in it", "person"
        )
        return new

    def _argument_set(self, old: cst.Assign, new: cst.Assign, target: cst.Attribute) -> cst.BaseSmallStatement | None:
        """`training_args.use_lazy_mode = False`: what becomes of it."""
        name = target.attr.value
        row = table.BY_ARGUMENT[name]
        if row.read and not row.successor.isidentifier():
            certainty: Certainty = "person" if literal(old.value) is False else "sure"
            self.note(old, code(old), f"removed: {row.do}", certainty, True)
            return None

        def note(what: str, then: str, certainty: Certainty, changes: bool) -> None:
            self.note(old, f"{dotted(target.value)}.{what}", then, certainty, changes)

        decision = decide("arguments", Pair(name, new.value), set(), self.facts, note)
        if decision is None:
            return new
        if not decision.pairs:
            return None
        [pair] = decision.pairs
        changed = target.with_changes(attr=cst.Name(pair.name))
        return new.with_changes(targets=[new.targets[0].with_changes(target=changed)], value=pair.value)

    def _key(self, old: cst.Assign, new: cst.Assign, target: cst.Subscript) -> cst.BaseSmallStatement | None:
        """`kwargs["use_habana"] = ...` of a dictionary that is given to something of optimum-habana."""
        role = self.facts.dicts.get(dotted(target.value), "")
        index = target.slice[0].slice if len(target.slice) == 1 else None
        key = string(index.value) if isinstance(index, cst.Index) else None
        if not role or key is None:
            return new

        def note(what: str, then: str, certainty: object, changes: bool) -> None:
            self.note(old, what, then, certainty, changes)  # type: ignore[arg-type]

        decision = decide(role, Pair(key, new.value), set(), self.facts, note)
        if decision is None:
            return new
        if not decision.pairs:
            return None
        pair = decision.pairs[0]
        changed = target.with_changes(slice=[cst.SubscriptElement(cst.Index(cst.SimpleString(f'"{pair.name}"')))])
        return new.with_changes(targets=[new.targets[0].with_changes(target=changed)], value=pair.value)

    def visit_FunctionDef(self, node: cst.FunctionDef) -> None:
        super().visit_FunctionDef(node)
        self.functions += 1

    def leave_FunctionDef(self, original_node: cst.FunctionDef, updated_node: cst.FunctionDef) -> cst.FunctionDef:
        self.functions -= 1
        return super().leave_FunctionDef(original_node, updated_node)


def rewrite(module: cst.Module, plan: Plan) -> tuple[str, list[Finding]]:
    """The file after the rewriting, and what was met."""
    wrapper = MetadataWrapper(module, unsafe_skip_copy=True)
    migration = Migration(plan)
    return wrapper.visit(migration).code, sorted(migration.findings)
