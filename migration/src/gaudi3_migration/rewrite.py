"""The rewriting itself: one walk over the syntax tree, in which comments and the form of the rest stay."""

from __future__ import annotations

import re

import libcst as cst
from libcst.metadata import ExpressionContext, ExpressionContextProvider

from gaudi3_migration import arguments as table
from gaudi3_migration import calls
from gaudi3_migration.comments import Gap
from gaudi3_migration.facts import HABANA, Kind, dotted, literal, string
from gaudi3_migration.findings import Certainty
from gaudi3_migration.imports import Plan, then
from gaudi3_migration.keywords import code, expression, rewritten_arguments, with_keywords, without
from gaudi3_migration.mentions import Mentions
from gaudi3_migration.names import CONFIGURATION, REMOVED, TRAINER_MEMBERS, lookup
from gaudi3_migration.reading import LAZY_CALLS, Reader
from gaudi3_migration.scopes import Scopes, brings_its_own

OWN_LOSSES = ("GaudiDPOTrainer", "GaudiGRPOTrainer", "GaudiRewardTrainer", "GaudiPPOTrainer", "GaudiDDPOTrainer")
"""Trainers that do not take the loss of a causal model itself."""
LAZY_ONLY = {"wrap_in_hpu_graph", "ModuleCacher", "enable_compiled_autograd", "hpu_initialize", "hpu_set_env"}


class Rewriter(Scopes, Mentions):
    """Rewrites one file; what it met is in `findings`."""

    def __init__(self, plan: Plan) -> None:
        super().__init__(plan.facts)
        self.plan = plan
        self.reader = Reader(self.facts, lambda _name: {})
        self.untouched: set[int] = set()
        """Names that are an attribute's or a keyword's, by id."""
        self.optimizer = ""
        """What a trainer that takes no optimizer gets once it is made."""

    # -- names ----------------------------------------------------------------------------------------------------

    def visit_Module(self, node: cst.Module) -> None:
        self.header = {each.comment.value for each in node.header if each.comment}

    def visit_Import(self, node: cst.Import) -> bool:
        return False

    def visit_ImportFrom(self, node: cst.ImportFrom) -> bool:
        return False

    def visit_Attribute(self, node: cst.Attribute) -> None:
        self.untouched.add(id(node.attr))

    def visit_Assign(self, node: cst.Assign) -> None:
        for each in node.targets:
            self.untouched.add(id(each.target))
            name = dotted(each.target)
            if name.endswith((".add_bos_token", ".add_eos_token")) and not name.startswith("self."):
                self.note(node, name, "every fast tokenizer obeys it now: texts may have a token more", "likely", True)

    def visit_Arg(self, node: cst.Arg) -> None:
        if node.keyword is not None:
            self.untouched.add(id(node.keyword))

    def leave_Name(self, original_node: cst.Name, updated_node: cst.Name) -> cst.BaseExpression:
        if id(original_node) in self.untouched:
            return updated_node
        self._config_used(original_node)
        new = self.plan.renamed.get(original_node.value)
        return updated_node if new is None else updated_node.with_changes(value=new)

    def _config_used(self, node: cst.BaseExpression) -> None:
        """Say where GaudiConfig is used otherwise than called, which stays: nothing imports it any more."""
        row = self.facts.row(node)
        if row is not None and row.kind == "config":
            self.note(node, code(node), "no successor: nothing imports it any more: remove it here", "person")

    def leave_Attribute(self, original_node: cst.Attribute, updated_node: cst.Attribute) -> cst.BaseExpression:
        qualified = self.facts.qualified(original_node)
        if qualified in self.plan.replaced:
            row = lookup(qualified)
            if row is not None:
                self.note(
                    original_node, dotted(original_node), then(row), "person" if row.person else "sure", row.changes
                )
            return expression(self.plan.replaced[qualified])
        self._config_used(original_node)
        if qualified in REMOVED:
            self.note(original_node, dotted(original_node), f"no successor: {REMOVED[qualified]}", "person")
        if qualified in self.plan.kept and "." in dotted(original_node):
            row = lookup(qualified)
            self.note(original_node, dotted(original_node), then(row) if row else "no successor", "person")
            return updated_node
        name, base = original_node.attr.value, dotted(original_node.value)
        read = self.get_metadata(ExpressionContextProvider, original_node, None) == ExpressionContext.LOAD
        if base in self.facts.configs and name in table.CONFIG_KEYS:
            if not read:
                if id(original_node) not in self.untouched:
                    self.note(original_node, f"{base}.{name}", f"no successor: {table.CONFIG_KEYS[name][0]}", "person")
                return updated_node
            known = self.facts.settings.get(name, False)
            self.note(original_node, f"{base}.{name}", f"{known}: {table.CONFIG_KEYS[name][0]}", "sure", True)
            return cst.Name(str(known))
        if read and name in CONFIGURATION and base.rpartition(".")[2] == "config":
            asked = f'getattr({base}, "{name}", {CONFIGURATION[name]})'
            self.note(original_node, f"{base}.{name}", asked)
            return expression(asked)
        return self._member(original_node, updated_node, name, base)

    def _member(self, original: cst.Attribute, updated: cst.Attribute, name: str, base: str) -> cst.BaseExpression:
        row = table.BY_ARGUMENT.get(name)
        inside = base == "self.args" and self._trainer_around()
        if row is not None and (base in self.facts.arguments or inside) and name not in self.facts.own_arguments:
            if row.read or inside:
                value = (row.read or row.default).format(base)
                self.note(original, f"{base}.{name}", f"{value}: {row.do}", "sure", row.changes == "yes")
                return expression(f"({value})" if value.startswith("not") else value)
            self.note(original, f"{base}.{name}", "read as the program's own argument")
        elif (
            row is not None
            and row.where == HABANA.replace(".", "-")
            and (base or isinstance(original.value, cst.Subscript | cst.Call))
            and name not in self.facts.own
            and name not in table.MODEL_SETTINGS
            and not self._foreign(base)
            and (base.partition(".")[0] != "self" or inside or (base == "self" and self._around() == "arguments"))
        ):
            of = base or code(original.value)
            self.note(original, f"{of}.{name}", f"no successor: look what {of} is; {row.do}", "person")
        if base in self.facts.trainers or (base == "self" and self._trainer_around()):
            if name == "tokenizer":
                self.note(original, f"{base}.tokenizer", "processing_class")
                return updated.with_changes(attr=cst.Name("processing_class"))
            if name in TRAINER_MEMBERS and id(original) not in self.untouched:
                near = TRAINER_MEMBERS[name]
                self.note(
                    original, f"{base}.{name}", "no successor: " + (f"see {near}" if near else "remove it"), "person"
                )
        return updated

    def _foreign(self, base: str) -> bool:
        """Whether something is of an imported module that is not optimum-habana's."""
        return not self.facts.imports.get(base.partition(".")[0], HABANA).startswith(HABANA)

    def _around(self) -> str:
        """What the class around is to a migration."""
        kind = self.facts.kinds.get(self.reader.classes[-1]) if self.reader.classes else None
        return "" if kind is None else kind.role

    def _trainer_around(self) -> bool:
        return self._around() == "trainer"

    def visit_IfExp(self, node: cst.IfExp) -> None:
        if isinstance(node.test, cst.Attribute) and node.test.attr.value == "use_legacy_prediction_loop":
            self.untouched.add(id(node.body))

    def leave_IfExp(self, original_node: cst.IfExp, updated_node: cst.IfExp) -> cst.BaseExpression:
        if id(original_node.body) in self.untouched and literal(updated_node.test) is False:
            return updated_node.orelse
        return updated_node

    # -- classes and calls ----------------------------------------------------------------------------------------

    def visit_ClassDef(self, node: cst.ClassDef) -> None:
        self.reader.classes.append(node.name.value)

    def leave_ClassDef(self, original_node: cst.ClassDef, updated_node: cst.ClassDef) -> cst.ClassDef:
        self.reader.classes.pop()
        return updated_node

    def visit_FunctionDef(self, node: cst.FunctionDef) -> None:
        self.reader.functions.append(node)

    def leave_FunctionDef(self, original_node: cst.FunctionDef, updated_node: cst.FunctionDef) -> cst.FunctionDef:
        self.reader.functions.pop()
        if original_node.name.value != "__init__" or not self._trainer_around():
            return updated_node
        given = updated_node.params
        fewer = [each for each in given.params if each.name.value != "gaudi_config"]
        if len(fewer) < len(given.params):
            self.note(original_node, "the parameter gaudi_config", "drop")
            return updated_node.with_changes(params=given.with_changes(params=fewer))
        return updated_node

    def visit_Call(self, node: cst.Call) -> bool:
        kind = self._config_call(node)
        return kind is None

    def _config_call(self, node: cst.Call) -> Kind | None:
        function = node.func
        if isinstance(function, cst.Attribute) and function.attr.value in ("from_pretrained", "from_dict"):
            function = function.value
        kind = self.facts.kind(function)
        return kind if kind is not None and kind.role == "config" else None

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:
        if self._config_call(original_node) is not None:
            self._noted_config(original_node)
            return cst.Name("None")
        role = self.reader.role(original_node)

        def note(what: str, then: str, certainty: Certainty, changes: bool) -> None:
            self.note(original_node, what, then, certainty, changes)

        if not role:
            return self._foreign_call(original_node, updated_node)
        for each in original_node.args:
            self._handed_on(original_node, each, role)
        before = updated_node.whitespace_before_args
        args, before, device = rewritten_arguments(role, list(updated_node.args), before, self.facts, note)
        if role == "trainer":
            args, before = self._trainer_call(original_node, args, before)
        if role == "arguments":
            args = self._arguments_call(original_node, args)
        result = updated_node.with_changes(args=args, whitespace_before_args=before)
        if role == "pipeline" and device is not None:
            known = literal(device)
            if known is False:
                return result
            place = '"hpu"' if known is True else f'"hpu" if {code(device)} else "cpu"'
            return expression("x.to(y)").with_changes(
                func=cst.Attribute(result, cst.Name("to")), args=[cst.Arg(expression(place))]
            )
        return result

    def _handed_on(self, call: cst.Call, argument: cst.Arg, role: str) -> None:
        """Say where keywords come from somewhere that is not seen."""
        if argument.star != "**" or isinstance(argument.value, cst.Dict):
            return
        name = dotted(argument.value)
        if name in self.facts.contents or (name in ("kwargs", "kw") and (self.facts.wrappers or role == "trainer")):
            return
        if role in ("call", "accelerator") or dotted(call.func).endswith("from_pretrained"):
            self.note(
                call,
                f"**{code(argument.value)}",
                f"not seen: no {role} keyword of optimum-habana may be in it",
                "likely",
            )
            return
        self.note(call, f"**{code(argument.value)}", "no successor: look which keywords are in it", "person")

    def _foreign_call(self, original: cst.Call, updated: cst.Call) -> cst.BaseExpression:
        name = dotted(original.func)
        last = name.rpartition(".")[2]

        def note(what: str, then: str, certainty: Certainty, changes: bool) -> None:
            self.note(original, what, then, certainty, changes)

        if last == "getattr" and len(original.args) > 1 and string(original.args[1].value) in table.BY_ARGUMENT:
            self.note(
                original, code(original), "read as the program's own argument, or the default given here", "likely"
            )
        if last in ("hasattr", "setattr") and len(original.args) > 1:
            row = table.BY_ARGUMENT.get(string(original.args[1].value) or "")
            if row is not None and row.where == "optimum-habana" and row.name not in self.facts.own:
                self.note(original, code(original), f"no successor: look what it is for; {row.do}", "person")
        away = last in LAZY_ONLY or (last in LAZY_CALLS and id(original) not in self.untouched)
        if away and self.facts.qualified(original.func).startswith("habana_frameworks"):
            self.note(original, f"{last}()", "no successor: remove it: of lazy mode alone", "person")
        self._dictionary_call(original, name)
        if last == "generate" and last not in self.facts.functions:
            updated = calls.generation(updated, note)
        updated = calls.processor(updated, self.reader.function, self.facts, note)
        own = self.facts.functions.get(last, set()) | self.facts.fields.get(last, set())
        for each in original.args:
            key = each.keyword.value if each.keyword else ""
            row = table.BY_ARGUMENT.get(key)
            meant = key == "gaudi_config" or (
                row is not None and row.where == "optimum-habana" and key.startswith(("use_h", "use_lazy", "gaudi_"))
            )
            if meant and key not in own and last != "dict":
                self.note(
                    original,
                    f"{last or code(original.func)}({key}=)",
                    "no successor: look what is called here",
                    "person",
                )
            if key == "attn_implementation" and string(each.value) == "gaudi_fused_sdpa":
                self.note(original, "attn_implementation='gaudi_fused_sdpa'", "'sdpa'", "sure", True)
                args = [
                    a.with_changes(value=expression('"sdpa"')) if a.keyword and a.keyword.value == key else a
                    for a in updated.args
                ]
                updated = updated.with_changes(args=args)
        return updated

    def say_rest(self, node: cst.CSTNode) -> None:
        super().say_rest(node)
        if self.optimizer:  # of a trainer that no variable is given
            self.optimizer = ""
            self.note(node, "use_fused_adam", "no successor: set optimizer_cls_and_kwargs of the trainer", "person")

    def visit_Expr(self, node: cst.Expr) -> None:
        self.untouched.add(id(node.value))

    def visit_AugAssign(self, node: cst.AugAssign) -> None:
        if dotted(node.target) in self.facts.dicts:
            self._keys_unseen(node, node.value, dotted(node.target))

    def _dictionary_call(self, call: cst.Call, name: str) -> None:
        """Say where a dictionary of keywords gets more of them."""
        owner, _, method = name.rpartition(".")
        if method in ("update", "setdefault") and owner in self.facts.dicts:
            self._keys_unseen(call, call, owner)

    def _keys_unseen(self, node: cst.CSTNode, given: cst.CSTNode, name: str) -> None:
        words = set(re.findall(r"\w+", code(given)))
        keys = sorted(words & table.BY_ARGUMENT.keys())
        if keys:
            role = self.facts.dicts[name]
            self.note(node, f"{name}, given to {role}", f"no successor: look at {', '.join(keys)} in it", "person")

    def _noted_config(self, node: cst.Call) -> None:
        known = ", ".join(f"{key}={value}" for key, value in self.facts.settings.items())
        if cst.Module([]).code_for_node(node) in self.facts.unread:
            file = dotted(node.func).endswith(".from_pretrained")
            ask = "give the file with --gaudi-config" if file else "look what is in it"
            ask = f"no successor: {ask}: it decides about optimizer and bf16"
            self.note(node, code(node), ask, "person", True)
        else:
            self.note(node, code(node), f"removed; {known or 'all keys have their defaults'}", "sure", True)
        for key in ("autocast_bf16_ops", "autocast_fp32_ops"):
            if any(each.keyword and each.keyword.value == key for each in node.args):
                self.note(node, key, f"no successor: {table.CONFIG_KEYS[key][0]}", "person")

    def _arguments_call(self, node: cst.Call, args: list[cst.Arg]) -> list[cst.Arg]:
        if sum(1 for each in args if each.keyword is None and not each.star) > 1:
            self.note(node, "positional arguments", "no successor: name them: their order has changed", "person")
        kind = self.facts.kind(node.func)
        direct = self.facts.row(node.func)
        given = {each.keyword.value for each in args if each.keyword}
        hidden = any(each.star for each in args)
        if kind is None or kind.name in self.plan.subclassed or direct is None or hidden:
            if hidden and direct is not None and direct.name not in self.plan.subclassed:
                self.note(node, "adam_epsilon", "was 1e-6 unless it is given: set it", "likely", True)
            return args
        more = []
        if "adam_epsilon" not in given:
            self.note(node, "adam_epsilon", "1e-6, optimum-habana's default (transformers has 1e-8)", "sure", True)
            more.append(("adam_epsilon", "1e-6"))
        if self.facts.settings.get("use_torch_autocast") and "bf16" not in given:
            self.note(node, "use_torch_autocast of the Gaudi configuration", "bf16=True", "sure", True)
            more.append(("bf16", "True"))
        return with_keywords(args, more, node.whitespace_before_args)

    def _trainer_call(self, node: cst.Call, args: list[cst.Arg], before: Gap) -> tuple[list[cst.Arg], Gap]:
        positional = [each for each in args if each.keyword is None and not each.star]
        offset = 1 if dotted(node.func).rpartition(".")[2] in ("partial", "__init__") else 0
        starred = any(each.star == "*" for each in args)
        if starred:
            named = [code(each.value) for each in args if each.star == "*"]
            around = self.reader.functions[-1].params.star_arg if self.reader.functions else None
            handed = isinstance(around, cst.Param) and named == [around.name.value]
            if not handed:
                then = "no successor: the second argument was the Gaudi configuration: look what is in it"
                self.note(node, f"*{named[0]}", then, "person")
        if len(positional) > 1 + offset and self.facts.takes_configuration(node.func):
            second = positional[1 + offset]
            self.note(node, f"the second argument, {code(second.value)}", "drop: it is the Gaudi configuration")
            args, before = without(args, second, before)
            positional = [each for each in args if each.keyword is None and not each.star]
        given = {each.keyword.value: each.value for each in args if each.keyword}
        training = given.get("args") or (positional[1 + offset].value if len(positional) > 1 + offset else None)
        if "model" in given or "args" in given or positional:
            self.note(
                node,
                "the trainer",
                "the last batch of an epoch may be short: optimum-habana filled it up",
                "sure",
                True,
            )
            kind = self.facts.kind(node.func)
            if self.facts.causal and (kind is None or kind.name not in OWN_LOSSES):
                self.note(
                    node,
                    "the loss of a causal model",
                    "larger by tokens / (tokens - 1) of a block: labels are shifted before they are counted",
                    "sure",
                    True,
                )
        if self.facts.settings.get("use_fused_adam") and not self.plan.fused:
            self.note(node, "use_fused_adam", "no successor: give optimizer_cls_and_kwargs where it is true", "person")
        if not self.plan.fused or "optimizers" in given or "optimizer_cls_and_kwargs" in given or training is None:
            if self.plan.fused and training is None and (given or brings_its_own(args, self.reader.functions)):
                self.note(
                    node, "use_fused_adam", "no successor: give optimizer_cls_and_kwargs=(FusedAdamW, ...)", "person"
                )
            return args, before
        name, kind = code(training), self.facts.kind(node.func)
        self.note(node, "use_fused_adam of the Gaudi configuration", "optimizer_cls_and_kwargs", "sure", True)
        value = (
            f'(FusedAdamW, {{"lr": {name}.learning_rate, "betas": ({name}.adam_beta1, {name}.adam_beta2), '
            f'"eps": {name}.adam_epsilon}})'
        )
        closed = dotted(node.func) in self.facts.closed
        if closed or (kind is not None and kind.name == "GaudiSeq2SeqTrainer"):  # whose successor takes no such keyword
            self.optimizer = value
            return args, before
        return with_keywords(args, [("optimizer_cls_and_kwargs", value)], before), before
