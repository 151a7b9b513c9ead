"""What is said of a file while it is rewritten: findings, and comments above what means something else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import libcst as cst
from libcst.metadata import ExpressionContextProvider, PositionProvider

from gaudi3_migration.facts import HABANA, string
from gaudi3_migration.findings import Certainty, Finding

COMPOUND = (cst.If, cst.For, cst.While, cst.With, cst.Try, cst.ClassDef, cst.FunctionDef, cst.Match)


class Said(cst.CSTTransformer):
    """Collects what a walk over one file met in `findings`, and comments what means something else now."""

    METADATA_DEPENDENCIES = (PositionProvider, ExpressionContextProvider)

    def __init__(self) -> None:
        super().__init__()
        self.findings: list[Finding] = []
        self.comments: list[list[str]] = []
        self.header: set[str] = set()
        """Comments at the top of the file, which are not the first statement's in the tree."""

    def note(
        self, node: cst.CSTNode, what: str, then: str, certainty: Certainty = "sure", changes: bool = False
    ) -> None:
        line = self.get_metadata(PositionProvider, node).start.line
        finding = Finding(
            line, what if len(what) <= 160 else f"{what[:157]}...", then, certainty, changes or certainty == "person"
        )
        if finding in self.findings:
            return
        self.findings.append(finding)
        if finding.changes and self.comments:
            short = what if len(what) <= 70 else f"{what[:67]}..."
            self.comments[-1].append(f"# migrate: {short}: {then}")

    def _push(self) -> None:
        self.comments.append([])

    def _commented(self, updated: cst.BaseStatement) -> cst.BaseStatement:
        lines = cast(Sequence[cst.EmptyLine], getattr(updated, "leading_lines", ()))
        made = self._new_comments(lines)
        return updated.with_changes(leading_lines=[*lines, *made]) if made else updated

    def _new_comments(self, lines: Sequence[cst.EmptyLine]) -> list[cst.EmptyLine]:
        """Those of the innermost statement that it does not have yet."""
        there = {each.comment.value for each in lines if each.comment} | self.header
        new = [text for text in dict.fromkeys(self.comments.pop()) if text not in there]
        return [cst.EmptyLine(comment=cst.Comment(text)) for text in new]

    def on_visit(self, node: cst.CSTNode) -> bool:
        if isinstance(node, COMPOUND):
            self._push()
        return super().on_visit(node)

    def on_leave(  # type: ignore[override]
        self, original_node: cst.CSTNode, updated_node: cst.CSTNode
    ) -> cst.CSTNode | cst.RemovalSentinel | cst.FlattenSentinel[cst.CSTNode]:
        result = super().on_leave(original_node, updated_node)
        if isinstance(original_node, COMPOUND):
            if isinstance(result, cst.BaseStatement):
                return self._commented(result)
            self.comments.pop()
        return cast(cst.CSTNode, result)

    def leave_SimpleString(self, original_node: cst.SimpleString, updated_node: cst.SimpleString) -> cst.BaseExpression:
        value = string(original_node) or ""
        if HABANA in value and len(value) < 100 and " " not in value:
            self.note(original_node, f"the text {value!r}", "no successor: look where it is imported by name", "person")
        elif "gaudi_spawn" in value and "\n" not in value:
            self.note(
                original_node, f"the text {value!r}", "no successor: start by torchrun --nproc_per_node", "person"
            )
        return updated_node

    def leave_FormattedStringText(
        self, original_node: cst.FormattedStringText, updated_node: cst.FormattedStringText
    ) -> cst.FormattedStringText:
        if "gaudi_spawn.py" in original_node.value:
            self.note(
                original_node, "the text 'gaudi_spawn.py'", "no successor: start by torchrun --nproc_per_node", "person"
            )
        return updated_node
