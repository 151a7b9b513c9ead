"""Blocks whose statements went: what is left of them, and what stands behind a colon."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from gaudi3_migration.comments import gone, is_gone, without_gone
from gaudi3_migration.keywords import code
from gaudi3_migration.rewrite import Rewriter

Part = tuple[cst.BaseSmallStatement | None, list[cst.BaseStatement]]
"""What is left of a small statement, and statements that take its place or follow it."""


def suite(node: cst.SimpleStatementSuite, parts: Sequence[Part]) -> cst.BaseSuite:
    """The statements behind a colon out of what is left of each: on its line, or in a block where that has no room."""
    if all(kept is not None and not after for kept, after in parts):
        return node.with_changes(body=[kept for kept, _after in parts])
    lines: list[cst.BaseStatement] = []
    for kept, after in parts:
        lines += [] if kept is None else [cst.SimpleStatementLine(body=[_alone(kept)])]
        lines += after
    if all(isinstance(each, cst.SimpleStatementLine) for each in lines):
        small = [_alone(part) for each in lines if isinstance(each, cst.SimpleStatementLine) for part in each.body]
        return node.with_changes(body=small or [cst.Pass()])
    header = node.trailing_whitespace
    return cst.IndentedBlock(body=lines, header=header)


def _alone(node: cst.BaseSmallStatement) -> cst.BaseSmallStatement:
    return node.with_changes(semicolon=cst.MaybeSentinel.DEFAULT)


class Blocks(Rewriter):
    """What becomes of the blocks around statements that go."""

    def leave_IndentedBlock(
        self, original_node: cst.IndentedBlock, updated_node: cst.IndentedBlock
    ) -> cst.IndentedBlock:
        if not any(is_gone(each) for each in updated_node.body):
            return updated_node
        body, waiting = without_gone(updated_node.body)
        if not body:
            body = [cst.SimpleStatementLine(body=[cst.Pass()], leading_lines=waiting)]
            waiting = []
        return updated_node.with_changes(body=body, footer=[*waiting, *updated_node.footer])

    def leave_Module(self, original_node: cst.Module, updated_node: cst.Module) -> cst.Module:
        if not any(is_gone(each) for each in updated_node.body):
            return updated_node
        body, waiting = without_gone(updated_node.body)
        return updated_node.with_changes(body=body, footer=[*waiting, *updated_node.footer])

    def leave_Try(self, original_node: cst.Try, updated_node: cst.Try) -> cst.BaseStatement:
        """A try that only imports what is no more goes, with what it defines in its place."""
        block = updated_node.body
        empty = isinstance(block, cst.IndentedBlock) and all(
            isinstance(each, cst.SimpleStatementLine) and isinstance(each.body[0], cst.Pass) for each in block.body
        )
        catches = all(
            "ImportError" in code(h.type) or "ModuleNotFound" in code(h.type) for h in original_node.handlers if h.type
        )
        small = all(
            isinstance(each, cst.FunctionDef | cst.SimpleStatementLine)
            for handler in original_node.handlers
            for each in handler.body.body
        )
        if empty and catches and small and updated_node.finalbody is None and updated_node.orelse is None:
            defined = {
                each.name.value
                for h in original_node.handlers
                for each in h.body.body
                if isinstance(each, cst.FunctionDef)
            }
            assigned = any(
                not isinstance(part, cst.Pass)
                for h in original_node.handlers
                for each in h.body.body
                if isinstance(each, cst.SimpleStatementLine)
                for part in each.body
            )
            used = any(self.facts.imports.get(name, "") in self.plan.kept for name in defined)
            if defined and not used and not assigned:
                return gone(updated_node.leading_lines)
        return updated_node
