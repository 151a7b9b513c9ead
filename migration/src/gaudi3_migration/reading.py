"""What a program does with optimum-habana, read before anything is changed: imports, classes, variables."""

from __future__ import annotations

from collections.abc import Callable

import libcst as cst

from gaudi3_migration import arguments as table
from gaudi3_migration.facts import HABANA, Facts, Kind, aliases, dotted, literal, string
from gaudi3_migration.names import lookup
from gaudi3_migration.scopes import Scopes

LAZY_CALLS = {"mark_step"}
"""Calls of the vendor's core that only lazy mode needs."""


class Reader(Scopes, cst.CSTVisitor):
    """Fills the facts; a second walk knows what stands further below."""

    def __init__(self, facts: Facts, read_config: Callable[[str], dict[str, bool] | None]) -> None:
        self.facts = facts
        self.read_config = read_config
        self.inside: list[str] = []
        """Classes and functions around."""
        self.classes: list[str] = []
        self.functions: list[cst.FunctionDef] = []
        self.defining: set[int] = set()
        """Names that define something, by id: no use of what they hide."""

    @property
    def function(self) -> str:
        """The function around, by name; empty outside of all."""
        return self.functions[-1].name.value if self.functions else ""

    def visit_Import(self, node: cst.Import) -> bool:
        for local, qualified, alias in aliases(node):
            self.facts.imports.setdefault(local, qualified)
            self.facts.modules.add(dotted(alias.name))
        return False

    def visit_ImportFrom(self, node: cst.ImportFrom) -> bool:
        for local, qualified, _alias in aliases(node):
            before = self.facts.imports.get(local, "")
            if before.startswith(HABANA) and not qualified.startswith(HABANA):
                self.facts.bound.add(local)
                continue
            if before and before != qualified:
                self.facts.bound.add(local)
            self.facts.imports[local] = qualified
        return False

    def visit_ClassDef(self, node: cst.ClassDef) -> None:
        name = node.name.value
        self.defining.add(id(node.name))
        self.facts.bound.add(name)
        self.classes.append(name)
        self.inside.append(name)
        for base in node.bases:
            kind = self.facts.kind(base.value)
            if kind is not None:
                self.facts.kinds[name] = kind
        own = self.facts.fields.setdefault(name, set())
        for line in node.body.body:
            for small in line.body if isinstance(line, cst.SimpleStatementLine) else ():
                if isinstance(small, cst.AnnAssign) and isinstance(small.target, cst.Name):
                    own.add(small.target.value)

    def leave_ClassDef(self, original_node: cst.ClassDef) -> None:
        self.classes.pop()
        self.inside.pop()

    def visit_FunctionDef(self, node: cst.FunctionDef) -> None:
        self.functions.append(node)
        self.defining.add(id(node.name))
        self.inside.append(node.name.value)
        self.facts.bound.add(node.name.value)
        given = node.params
        names = {each.name.value for each in (*given.posonly_params, *given.params, *given.kwonly_params)}
        self.facts.functions.setdefault(node.name.value, set()).update(names)
        positional = [each.name.value for each in (*given.posonly_params, *given.params)]
        if positional[:1] == ["self"]:
            positional = positional[1:]
        star = ["*", "*"] if isinstance(given.star_arg, cst.Param) else []
        second = [*positional, *star, "", ""][1]
        made = self.classes[-1] if node.name.value == "__init__" and self.classes else node.name.value
        self.facts.seconds[made] = second
        if node.name.value == "__init__" and self.classes and given.star_kwarg is None:
            self.facts.closed.add(self.classes[-1])

    def leave_FunctionDef(self, original_node: cst.FunctionDef) -> None:
        self.functions.pop()
        self.inside.pop()

    def visit_Param(self, node: cst.Param) -> None:
        self.facts.bound.add(node.name.value)
        self.defining.add(id(node.name))
        kind = self.facts.kind(node.annotation.annotation) if node.annotation else None
        if kind is not None and kind.role == "arguments":
            self.facts.arguments.add(node.name.value)

    def visit_NamedExpr(self, node: cst.NamedExpr) -> None:
        self._assigned(node.target, node.value)

    def visit_AnnAssign(self, node: cst.AnnAssign) -> None:
        self._assigned(node.target, node.value)
        kind = self.facts.kind(node.annotation.annotation)
        if kind is not None and kind.role == "arguments" and not self.classes:
            self.facts.arguments.add(dotted(node.target))

    def visit_Assign(self, node: cst.Assign) -> None:
        for target in node.targets:
            self._assigned(target.target, node.value)
            if isinstance(target.target, cst.Attribute):
                self.defining.add(id(target.target))
        row = self.facts.row(node.value)
        if row is not None and row.kind == "remove":
            self.facts.removable[self.facts.qualified(node.value)] += 1

    def _assigned(self, target: cst.BaseExpression, value: cst.BaseExpression | None) -> None:
        facts, name = self.facts, dotted(target)
        self._bind(target)
        if value is None:
            return
        if isinstance(target, cst.Tuple | cst.List) and isinstance(value, cst.Call):
            parts = facts.parsers.get(dotted(value.func).rpartition(".")[0], [])
            for element, part in zip(target.elements, parts, strict=False):
                kind = facts.kinds.get(part) or facts.kind(cst.parse_expression(part)) if part else None
                if kind is not None and kind.role == "arguments":
                    facts.arguments.add(dotted(element.value))
        if not name:
            return
        if isinstance(target, cst.Attribute) and dotted(target.value) in facts.configs:
            if isinstance(literal(value), bool):
                facts.settings[target.attr.value] = bool(literal(value))
            return
        kind = facts.kind(value)
        if kind is not None:
            inside = self.classes[-1] if self.classes and not self.functions else ""
            for called in (f"{inside}.{name}", f"self.{name}") if inside else (name,):
                facts.kinds[called] = kind
        if name in facts.configs:
            facts.configured[name] += 1
        if isinstance(value, cst.Dict):
            facts.contents.setdefault(name, {}).update(
                {
                    key: each.value
                    for each in value.elements
                    if isinstance(each, cst.DictElement) and (key := string(each.key))
                }
            )
        call = value
        while isinstance(call, cst.IfExp):
            call = call.body
        if isinstance(call, cst.Call):
            self._called(name, call)

    def _called(self, name: str, call: cst.Call) -> None:
        facts = self.facts
        function = call.func
        if dotted(function).endswith("AutoConfig.from_pretrained"):
            facts.configurations[self.function] = name
        if isinstance(function, cst.Attribute) and function.attr.value in (
            "from_pretrained",
            "from_config",
            "from_dict",
        ):
            kind = facts.kind(function.value)
        else:
            kind = facts.kind(function)
            if dotted(function) == "dict":
                facts.contents.setdefault(name, {}).update(
                    {each.keyword.value: each.value for each in call.args if each.keyword}
                )
            if dotted(function).rpartition(".")[2] == "HfArgumentParser" and call.args:
                given = call.args[0].value
                listed = [each.value for each in given.elements] if isinstance(given, cst.Tuple | cst.List) else [given]
                facts.parsers[name] = [dotted(each) for each in listed]
        if kind is None:
            return
        {
            "arguments": facts.arguments,
            "trainer": facts.trainers,
            "pipeline": facts.pipelines,
            "config": facts.configs,
        }.get(kind.role, set()).add(name)

    def _bind(self, target: cst.CSTNode) -> None:
        if isinstance(target, cst.Name):
            self.facts.bound.add(target.value)
        elif isinstance(target, cst.Tuple | cst.List):
            for each in target.elements:
                self._bind(each.value)

    def visit_For(self, node: cst.For) -> None:
        self._bind(node.target)

    def visit_AsName(self, node: cst.AsName) -> None:
        self._bind(node.name)

    def visit_Global(self, node: cst.Global) -> None:
        self.facts.bound.update(each.name.value for each in node.names)

    def visit_SimpleString(self, node: cst.SimpleString) -> None:
        value = string(node)
        if value is not None and len(value) < 200:
            self.facts.strings.add(value)

    def visit_Expr(self, node: cst.Expr) -> None:
        if isinstance(node.value, cst.Call):
            row = self.facts.row(node.value.func)
            if row is not None and row.kind == "remove":
                self.facts.removable[self.facts.qualified(node.value.func)] += 1
            name = dotted(node.value.func)
            if name.rpartition(".")[2] in LAZY_CALLS:
                self.facts.lazy[name.partition(".")[0]] += 1

    def visit_Call(self, node: cst.Call) -> bool:
        facts, function = self.facts, node.func
        if dotted(function).endswith(".save_pretrained") and node.args:
            facts.saved.add((self.function, cst.Module([]).code_for_node(node.args[0].value)))
        if dotted(function).endswith(".add_argument"):
            for argument in node.args:
                if (option := string(argument.value)) and option.startswith("--"):
                    facts.options.add(option[2:].replace("-", "_"))
        if dotted(function) == "getattr" and len(node.args) > 1 and dotted(node.args[0].value) in facts.arguments:
            name = string(node.args[1].value)
            if name in table.BY_ARGUMENT:
                facts.reads.add(name)
        role = self.role(node)
        second = [each for each in node.args if not each.keyword and not each.star][1:2]
        for argument in node.args:
            given = argument.keyword.value if argument.keyword else ""
            if role in ("trainer", "pipeline") and (
                given == "gaudi_config" or (role == "trainer" and argument in second)
            ):
                facts.configured[dotted(argument.value)] += 1
            if argument.star == "**" and role:
                name = dotted(argument.value)
                around = self.functions[-1] if self.functions else None
                own = around.params.star_kwarg.name.value if around and around.params.star_kwarg else ""
                if around is not None and name and name == own:
                    facts.wrappers[
                        self.classes[-1] if around.name.value == "__init__" and self.classes else around.name.value
                    ] = role
                elif name:
                    facts.dicts[name] = role
        row = facts.row(function)
        if row is not None:
            facts.calls[facts.qualified(function)] += 1
        kind = facts.kind(function.value) if isinstance(function, cst.Attribute) else None
        config = kind if kind is not None and kind.role == "config" else facts.kind(function)
        if config is not None and config.role == "config":
            self._config(node)
            self._use(function)
            return False  # what it is given goes with it
        return True

    def _config(self, node: cst.Call) -> None:
        facts, given = self.facts, list(node.args)
        if dotted(node.func).endswith(".from_pretrained"):
            known = self.read_config(string(given[0].value) or "" if given else "")
            facts.settings.update(known or {})
            given = given[1:] if known is not None else [cst.Arg(cst.Name("_"), star="**")]
        pairs: list[tuple[str | None, cst.BaseExpression]] = []
        for each in given:
            if isinstance(each.value, cst.Dict) and each.keyword is None:
                pairs += [
                    (string(one.key) if isinstance(one, cst.DictElement) else None, one.value)
                    for one in each.value.elements
                ]
            else:
                pairs.append((each.keyword.value if each.keyword else None, each.value))
        for key, value in pairs:
            known_value = literal(value)
            if isinstance(known_value, bool) and key is not None:
                facts.settings[key] = known_value
            elif key is None or key in table.CONFIG_SWITCHES:
                facts.unread.add(cst.Module([]).code_for_node(node))

    def role(self, node: cst.Call) -> str:
        """What a call gives its keywords to: trainer, arguments, pipeline, call (of one), accelerator; or nothing."""
        facts, function = self.facts, node.func
        if dotted(function).rpartition(".")[2] == "partial" and node.args:
            kind = facts.kind(node.args[0].value)
            return kind.role if kind and kind.role != "class" else ""
        if isinstance(function, cst.Attribute) and function.attr.value in ("from_pretrained", "from_config"):
            kind = facts.kind(function.value)
            return "pipeline" if kind is not None and kind.role in ("pipeline", "class") else ""
        if isinstance(function, cst.Attribute) and function.attr.value == "__init__" and self.classes:
            kind = facts.kinds.get(self.classes[-1])
            return kind.role if kind is not None and kind.role in ("trainer", "arguments") else ""
        if dotted(function) in facts.pipelines:
            return "call"
        kind = facts.kind(function)
        if kind is not None:
            return "" if kind.role in ("class", "config") else kind.role
        return facts.wrappers.get(dotted(function).removeprefix("self."), "")

    def visit_Attribute(self, node: cst.Attribute) -> bool:
        set_here = id(node) in self.defining
        if node.attr.value in table.BY_ARGUMENT and dotted(node.value) in self.facts.arguments and not set_here:
            self.facts.reads.add(node.attr.value)
        if node.attr.value in table.CONFIG_KEYS:
            self.facts.configured[dotted(node.value)] += 1
        self._use(node)
        node.value.visit(self)
        return False

    def visit_Arg(self, node: cst.Arg) -> bool:
        node.value.visit(self)
        return False

    def visit_Name(self, node: cst.Name) -> None:
        if id(node) in self.defining:
            return
        self.facts.names[node.value] += 1
        if node.value == "AutoModelForCausalLM":
            self.facts.causal = True
        self._use(node)

    def _use(self, node: cst.BaseExpression) -> None:
        qualified = self.facts.qualified(node)
        if lookup(qualified) is not None:
            self.facts.loads[qualified] += 1


def read(
    module: cst.Module,
    read_config: Callable[[str], dict[str, bool] | None],
    kinds: dict[str, Kind],
    fields: dict[str, set[str]],
) -> Facts:
    """The facts of a file; `kinds` and `fields` are of helpers in its folder, by the names that it has for them."""
    facts = Facts(kinds=dict(kinds), fields=dict(fields))
    module.visit(Reader(facts, read_config))
    if any(each.role == "arguments" for each in facts.kinds.values()) or any(
        (row := lookup(each)) is not None and row.role == "arguments" for each in facts.imports.values()
    ):
        facts.arguments.add("training_args")
    for counter in (facts.loads, facts.removable, facts.calls, facts.names, facts.lazy, facts.configured):
        counter.clear()
    module.visit(Reader(facts, read_config))
    return facts
