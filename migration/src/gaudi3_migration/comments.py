"""Comments at arguments and statements that go: they stay, on lines of their own at the place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TypeVar

import libcst as cst
from libcst import matchers

from gaudi3_migration.facts import dotted

GONE_NAME = "__gaudi3_migrate_gone__"
"""Stands where a statement was until the block around takes its comments to the next one."""
Gap = cst.BaseParenthesizableWhitespace
Element = TypeVar("Element", cst.Arg, cst.BaseDictElement)


def behind(element: cst.Arg | cst.BaseDictElement) -> Gap:
    """The space behind an argument or a key, its comma left out."""
    if isinstance(element.comma, cst.Comma):
        return element.comma.whitespace_after
    return element.whitespace_after_arg if isinstance(element, cst.Arg) else cst.SimpleWhitespace("")


def with_gap(element: Element, like: Element, gap: Gap) -> Element:
    """An argument or a key with another space behind it, and a comma where `like` has one."""
    if isinstance(like.comma, cst.Comma):
        return element.with_changes(comma=like.comma.with_changes(whitespace_after=gap))
    changed = element.with_changes(comma=cst.MaybeSentinel.DEFAULT)
    return changed.with_changes(whitespace_after_arg=gap) if isinstance(changed, cst.Arg) else changed


def has_comments(gap: Gap) -> bool:
    return isinstance(gap, cst.ParenthesizedWhitespace) and (
        gap.first_line.comment is not None or any(each.comment is not None for each in gap.empty_lines)
    )


def moved(before: Gap, after: Gap, closing: bool) -> Gap:
    """The space between what stands before something that goes and what stands behind it; `closing`: a bracket."""
    if not isinstance(before, cst.ParenthesizedWhitespace):
        return after if closing or has_comments(after) else before
    if not isinstance(after, cst.ParenthesizedWhitespace):
        return after if closing and not has_comments(before) else before
    lines = [each for each in after.empty_lines if each.comment is not None]
    if after.first_line.comment is not None:
        lines.insert(0, cst.EmptyLine(before.indent, before.last_line, after.first_line.comment))
    result = before.with_changes(empty_lines=[*before.empty_lines, *lines])
    return result.with_changes(indent=after.indent, last_line=after.last_line) if closing else result


def lost(before: cst.CSTNode, after: Iterable[cst.CSTNode]) -> list[str]:
    """Comments within a statement, such as between its brackets, that what took its place has not, in their order."""
    there = Counter(text for each in after for text in _texts(each))
    result = []
    for text in _texts(before):
        if there[text] > 0:
            there[text] -= 1
        else:
            result.append(text)
    return result


def _texts(node: cst.CSTNode) -> list[str]:
    return [each.value for each in matchers.findall(node, matchers.Comment()) if isinstance(each, cst.Comment)]


def gone(lines: Sequence[cst.EmptyLine]) -> cst.SimpleStatementLine:
    return cst.SimpleStatementLine(body=[cst.Expr(cst.Name(GONE_NAME))], leading_lines=lines)


def is_gone(node: cst.CSTNode) -> bool:
    return (
        isinstance(node, cst.SimpleStatementLine)
        and isinstance(node.body[0], cst.Expr)
        and dotted(node.body[0].value) == GONE_NAME
    )


def without_gone(body: Sequence[cst.BaseStatement]) -> tuple[list[cst.BaseStatement], list[cst.EmptyLine]]:
    """The statements that are left, each with the comments of those gone before it, and the comments at the end."""
    result: list[cst.BaseStatement] = []
    waiting: list[cst.EmptyLine] = []
    for each in body:
        lines: Sequence[cst.EmptyLine] = getattr(each, "leading_lines", ())
        if is_gone(each):
            waiting += [line for line in lines if line.comment is not None]
        elif waiting:
            blank = [line for line in lines if line.comment is None]
            rest = [line for line in lines if line.comment is not None]
            result.append(each.with_changes(leading_lines=[*blank, *waiting, *rest]))
            waiting = []
        else:
            result.append(each)
    return result, waiting
