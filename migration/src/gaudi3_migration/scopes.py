"""Parameters that hide what a program imports or calls by the same name."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst
from libcst import matchers

from gaudi3_migration.facts import Facts, dotted


def parameters(given: cst.Parameters) -> set[str]:
    """All names that a function or a lambda takes."""
    plain = [*given.posonly_params, *given.params, *given.kwonly_params]
    return {each.name.value for each in plain} | _gathered(given)


def _gathered(given: cst.Parameters) -> set[str]:
    """Names of what gathers the rest, as ``*args`` and ``**kwargs`` do."""
    return {each.name.value for each in (given.star_arg, given.star_kwarg) if isinstance(each, cst.Param)}


def brings_its_own(args: Sequence[cst.Arg], functions: Sequence[cst.FunctionDef]) -> bool:
    """Whether a call unpacks what the function around was not given itself; the callers of that one are looked at."""
    own = _gathered(functions[-1].params) if functions else set()
    return any(each.star and dotted(each.value) not in own for each in args)


class Scopes:
    """Of a visitor or transformer: keeps what the functions around hide in `facts.hidden`."""

    facts: Facts

    def visit_FunctionDef_body(self, node: cst.FunctionDef) -> None:
        self._hide(node)

    def leave_FunctionDef_body(self, node: cst.FunctionDef) -> None:
        self.facts.hidden.pop()

    def visit_Lambda_body(self, node: cst.Lambda) -> None:
        self._hide(node)

    def leave_Lambda_body(self, node: cst.Lambda) -> None:
        self.facts.hidden.pop()

    def _hide(self, node: cst.FunctionDef | cst.Lambda) -> None:
        hidden = parameters(node.params) & (self.facts.imports.keys() | self.facts.kinds.keys())
        if hidden:  # what the function gives a value itself is that
            made = matchers.findall(node.body, matchers.AssignTarget())
            hidden -= {dotted(each.target) for each in made if isinstance(each, cst.AssignTarget)}
        self.facts.hidden.append(hidden)
