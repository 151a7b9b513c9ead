"""Keywords of calls, and keys of the dictionaries that are given to them: what becomes of each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import libcst as cst

from gaudi3_migration import arguments as table
from gaudi3_migration.comments import Gap, behind, moved, with_gap
from gaudi3_migration.facts import Facts, literal, string
from gaudi3_migration.findings import Certainty
from gaudi3_migration.names import ACCELERATOR_KEYWORDS, PIPELINE_CALL_KEYWORDS, PIPELINE_KEYWORDS

Note = Callable[[str, str, Certainty, bool], None]
"""Takes what was met, what follows, how sure that is, and whether the line means something else now."""


@dataclass
class Pair:
    """A keyword or a key, and its value."""

    name: str
    value: cst.BaseExpression


@dataclass
class Decision:
    """What takes the place of a pair."""

    pairs: list[Pair] = field(default_factory=list)
    device: cst.BaseExpression | None = None
    """What decides about the device of a pipeline."""


def expression(text: str) -> cst.BaseExpression:
    return cst.parse_expression(text)


class _Uncommented(cst.CSTTransformer):
    def leave_Comment(  # type: ignore[override]
        self, original_node: cst.Comment, updated_node: cst.Comment
    ) -> cst.RemovalSentinel:
        return cst.RemoveFromParent()


def code(node: cst.CSTNode) -> str:
    """An expression as text on one line, without its comments."""
    plain = node.visit(_Uncommented())
    return " ".join(cst.Module([]).code_for_node(plain).split()) if isinstance(plain, cst.CSTNode) else ""


def negated(value: cst.BaseExpression) -> cst.BaseExpression:
    """The opposite of a value."""
    known = literal(value)
    if isinstance(known, bool):
        return cst.Name(str(not known))
    simple = isinstance(value, cst.Name | cst.Attribute | cst.Call | cst.Subscript)
    return expression(f"not {code(value)}" if simple else f"not ({code(value)})")


def is_default(row: table.Argument, value: cst.BaseExpression) -> bool:
    return code(value) == row.default


def argument(pair: Pair, present: set[str], facts: Facts, note: Note) -> Decision | None:
    """The place of a training argument; None where it stays as it is. `present` are the keywords beside it."""
    row = table.BY_ARGUMENT.get(pair.name)
    if row is None:
        if pair.name == "fsdp_config" and isinstance(pair.value, cst.Dict):
            return _fsdp(pair.value, note)
        if pair.name in table.FILES and literal(pair.value) is not None:
            note(f"{pair.name}={code(pair.value)}", table.FILES[pair.name], "likely", False)
            return None
        if pair.name in ("attn_implementation",) and string(pair.value) == "gaudi_fused_sdpa":
            note("attn_implementation='gaudi_fused_sdpa'", "'sdpa'", "sure", True)
            return Decision([Pair(pair.name, expression('"sdpa"'))])
        return None
    if pair.name in facts.own_arguments:
        return None
    kept = pair.name in facts.reads and not row.read
    value, text = pair.value, code(pair.value)
    if kept:
        acts = row.where != "optimum-habana" and row.do != "drop" and not is_default(row, value)
        own = "it is the program's own argument now, which transformers does not know"
        then = f"no successor: {own}: {row.do}" if acts else own
        note(f"{pair.name}={text}", then, "person" if acts else "sure", acts)
        return Decision([pair])
    what = f"{pair.name}={text}"
    if is_default(row, value) and row.name != "use_habana":
        note(what, f"{row.do} (it is the default)", "sure", False)
        return Decision()
    changes = row.changes in ("yes", "rounding") or row.person
    certain: Certainty = "person" if row.person else "sure"
    target = row.successor
    if row.name == "use_habana":
        if literal(value) is True or "use_cpu" in present or "no_cuda" in present:
            note(what, row.do, "sure", False)
            return Decision()
        note(what, "use_cpu, its opposite", "sure", False)
        return Decision([Pair("use_cpu", negated(value))])
    if not target:
        then = row.do if row.do.startswith(("drop", "no successor")) else f"no successor: {row.do}"
        note(what, then, certain, changes)
        return Decision()
    name, _, fixed = target.partition("=")
    if name in present:
        note(what, f"no successor: decide about {name}=, which is given too", "person", True)
        return Decision()
    if row.name == "warmup_ratio":
        note(what, row.do, "sure", False)
        return Decision([Pair(name, value)])
    if not fixed:
        note(what, f"{name}=", certain, False)
        return Decision([Pair(name, value)])
    if literal(value) is True:
        note(what, target, "sure", False)
        return Decision([Pair(name, expression(fixed))])
    note(what, f"no successor: set {target} where it was true", "person", True)
    return Decision()


class _Wrapped(cst.CSTTransformer):
    """Names of classes without Gaudi before them."""

    def leave_SimpleString(self, original_node: cst.SimpleString, updated_node: cst.SimpleString) -> cst.BaseExpression:
        name = string(original_node) or ""
        if not name.startswith("Gaudi"):
            return updated_node
        return updated_node.with_changes(value=updated_node.value.replace("Gaudi", "", 1))


def _fsdp(value: cst.Dict, note: Note) -> Decision | None:
    """A configuration of FSDP, whose classes transformers has without Gaudi before their names."""
    elements = []
    for each in value.elements:
        if isinstance(each, cst.DictElement) and string(each.key) in table.WRAPPED:
            plain = each.value.visit(_Wrapped())
            if isinstance(plain, cst.BaseExpression) and not plain.deep_equals(each.value):
                note(f"{code(each.key)}: {code(each.value)}", code(plain), "sure", False)
                each = each.with_changes(value=plain)
        elements.append(each)
    return Decision([Pair("fsdp_config", value.with_changes(elements=elements))])


def other(role: str, pair: Pair, present: set[str], facts: Facts, note: Note) -> Decision | None:
    """The place of a keyword of a trainer, a pipeline, its call or an accelerator; None where it stays as it is."""
    text = f"{pair.name}={code(pair.value)}"
    if role == "trainer":
        if pair.name == "gaudi_config":
            note(text, "drop; its keys: see GaudiConfig", "sure", False)
            return Decision()
        if pair.name == "tokenizer" and "processing_class" in present:
            note(text, "no successor: processing_class= is given too: remove one", "person", True)
            return None
        if pair.name == "tokenizer":
            note(text, "processing_class=", "sure", False)
            return Decision([Pair("processing_class", pair.value)])
        return None
    if role == "pipeline" and pair.name in PIPELINE_KEYWORDS:
        note(
            text,
            ".to('hpu')" if pair.name == "use_habana" else "drop",
            "sure",
            pair.name in ("gaudi_config", "sdp_on_bf16"),
        )
        return Decision(device=pair.value if pair.name == "use_habana" else None)
    if role == "call":
        if pair.name in PIPELINE_CALL_KEYWORDS:
            note(text, "drop; figures of throughput and traces are not diffusers'", "sure", False)
            return Decision()
        if pair.name == "batch_size":
            note(text, "no successor: call it once a batch; num_images_per_prompt is something else", "person", True)
            return Decision()
    if role == "accelerator" and pair.name in ACCELERATOR_KEYWORDS:
        note(text, "drop", "sure", pair.name == "force_autocast")
        return Decision()
    return None


def decide(role: str, pair: Pair, present: set[str], facts: Facts, note: Note) -> Decision | None:
    """What becomes of a keyword of a call with this role; None where it stays as it is."""
    if role == "arguments":
        return argument(pair, present, facts, note)
    return other(role, pair, present, facts, note)


def uncommented(comma: cst.Comma | cst.MaybeSentinel) -> cst.Comma:
    """A comma and the line break behind it, without the comments there."""
    if not isinstance(comma, cst.Comma) or not isinstance(comma.whitespace_after, cst.ParenthesizedWhitespace):
        return cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
    space = comma.whitespace_after
    line = space.first_line.with_changes(comment=None, whitespace=cst.SimpleWhitespace(""))
    return comma.with_changes(whitespace_after=space.with_changes(first_line=line, empty_lines=[]))


def without(args: list[cst.Arg], gone: cst.Arg, before: Gap) -> tuple[list[cst.Arg], Gap]:
    """The arguments and the space before them without one of them, whose comments stay."""
    number = next(place for place, each in enumerate(args) if each is gone)
    closing = number == len(args) - 1
    space = moved(behind(args[number - 1]) if number else before, behind(gone), closing)
    rest = [each for each in args if each is not gone]
    if number == 0:
        return rest, space
    rest[number - 1] = with_gap(rest[number - 1], gone if closing else rest[number - 1], space)
    return rest, before


def rewritten_arguments(
    role: str, args: list[cst.Arg], before: Gap, facts: Facts, note: Note
) -> tuple[list[cst.Arg], Gap, cst.BaseExpression | None]:
    """The arguments of a call without what is no more, the space before them, and what decides about the device."""
    present = {each.keyword.value for each in args if each.keyword}
    result = list(args)
    device: cst.BaseExpression | None = None
    for each in args:
        place = next(number for number, one in enumerate(result) if one is each or one.value is each.value)
        if each.star == "**" and isinstance(each.value, cst.Dict):
            changed, found = rewritten_dict(role, each.value, facts, note)
            device = device if found is None else found
            result[place] = result[place].with_changes(value=changed)
            continue
        if each.star == "**" and role == "pipeline" and isinstance(each.value, cst.Name):
            device = facts.contents.get(each.value.value, {}).get("use_habana", device)
        if each.keyword is None:
            continue
        decision = decide(role, Pair(each.keyword.value, each.value), present, facts, note)
        if decision is None:
            continue
        device = device if decision.device is None else decision.device
        if decision.pairs:
            [pair] = decision.pairs
            result[place] = result[place].with_changes(keyword=cst.Name(pair.name), value=pair.value)
        else:
            result, before = without(result, result[place], before)
    return result, before, device


def rewritten_dict(role: str, node: cst.Dict, facts: Facts, note: Note) -> tuple[cst.Dict, cst.BaseExpression | None]:
    """A dictionary without what is no more, and what decides about the device of a pipeline."""
    present = {key for each in node.elements if isinstance(each, cst.DictElement) and (key := string(each.key))}
    result: list[cst.BaseDictElement] = []
    first, last = node.lbrace.whitespace_after, node.rbrace.whitespace_before
    device: cst.BaseExpression | None = None
    for number, each in enumerate(node.elements):
        key = string(each.key) if isinstance(each, cst.DictElement) else None
        decision = None if key is None else decide(role, Pair(key, each.value), present, facts, note)
        if decision is None or not isinstance(each, cst.DictElement):
            result.append(each)
            continue
        device = device if decision.device is None else decision.device
        for pair in decision.pairs:
            name = each.key if pair.name == key else cst.SimpleString(f'"{pair.name}"')
            result.append(each.with_changes(key=name, value=pair.value))
        if decision.pairs:
            continue
        closing = number == len(node.elements) - 1
        space = moved(behind(result[-1]) if result else first, last if closing else behind(each), closing)
        if closing:
            last = space
            if result:
                result[-1] = result[-1].with_changes(comma=each.comma)
        elif result:
            result[-1] = with_gap(result[-1], result[-1], space)
        else:
            first = space
    braces = {
        "lbrace": node.lbrace.with_changes(whitespace_after=first),
        "rbrace": node.rbrace.with_changes(whitespace_before=last),
    }
    return node.with_changes(elements=result, **braces), device


def with_keywords(args: list[cst.Arg], more: list[tuple[str, str]], opening: Gap | None = None) -> list[cst.Arg]:
    """The arguments and more keywords behind them, each on a line of its own where the last one is.

    `opening` is the space before the arguments, which has the indent where there is one of them alone.
    """
    for name, text in more:
        made = cst.Arg(
            expression(text),
            keyword=cst.Name(name),
            equal=cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace("")),
        )
        if not args:
            args = [made]
            continue
        last = args[-1]
        broken = isinstance(last.comma, cst.Comma) and isinstance(
            last.comma.whitespace_after, cst.ParenthesizedWhitespace
        )
        before = (
            uncommented(
                args[-2].comma
                if len(args) > 1
                else cst.Comma(whitespace_after=opening)
                if isinstance(opening, cst.ParenthesizedWhitespace)
                else last.comma
            )
            if broken
            else cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
        )
        made = made.with_changes(
            comma=uncommented(last.comma) if broken else last.comma, whitespace_after_arg=last.whitespace_after_arg
        )
        if (
            broken
            and isinstance(last.comma, cst.Comma)
            and isinstance(last.comma.whitespace_after, cst.ParenthesizedWhitespace)
        ):
            inner = before.whitespace_after
            if isinstance(inner, cst.ParenthesizedWhitespace):  # the comment at the end of its line stays with it
                before = before.with_changes(
                    whitespace_after=inner.with_changes(first_line=last.comma.whitespace_after.first_line)
                )
        args = [*args[:-1], last.with_changes(comma=before, whitespace_after_arg=cst.SimpleWhitespace("")), made]
    return args
