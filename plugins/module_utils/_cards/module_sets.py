# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Which cards of a node a job may use, by module id.

A card's module id is its place on the board and stays; its index may change at a reboot. For a part of a node the
vendor supports two and four cards, and recommends the sets of modules below (docs.habana.ai, "Multiple Workloads on a
Single Docker"; HabanaAI/Model-References, PyTorch/examples/multi_tenants). A process finds its card by the place of its
local rank in HABANA_VISIBLE_MODULES; without that variable the local rank is the module id.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from .._refusal import Refusal

#: Sets of modules by number of processes on a node; one process may have any card, and each card is a set of its own.
SETS: dict[int, tuple[tuple[int, ...], ...]] = {
    8: (tuple(range(8)),),
    4: ((0, 1, 2, 3), (4, 5, 6, 7)),
    2: ((0, 1), (2, 3), (4, 5), (6, 7)),
    1: tuple((module,) for module in range(8)),
}
PROCESSES = "trainer_processes_per_node"
PARTIAL = "trainer_allow_partial_nodes"


@dataclass(frozen=True)
class ModuleChoice:
    """The modules of a job on each of its nodes, and all sets that would do, the chosen one first."""

    modules: tuple[int, ...]
    sets: tuple[tuple[int, ...], ...]
    supported: bool = True

    @property
    def visible(self) -> str:
        """The value of HABANA_VISIBLE_MODULES."""
        return ",".join(map(str, self.modules))


def module_sets(operational_modules: Iterable[int], processes: int, allow_partial: bool = False) -> ModuleChoice:
    """The modules for ``processes`` processes on a node with these operational cards, or an error with what is left.

    ``allow_partial`` takes any number of cards that are there, which the vendor does not support.
    """
    return _choose(_checked(operational_modules, "this node"), processes, allow_partial, "this node")


def module_sets_of_nodes(
    operational_modules: Mapping[str, Iterable[int]], processes: int, allow_partial: bool = False
) -> ModuleChoice:
    """The modules that a job over several nodes uses on each of them: nodes with unequal cards are refused.

    The same modules are used on all nodes, since the ports of a module are wired to those of the same module elsewhere.
    """
    nodes = {name: _checked(modules, name) for name, modules in sorted(operational_modules.items())}
    if not nodes:
        raise Refusal("a job needs at least one node with operational cards and none was given: name its nodes")
    if len(nodes) == 1:
        name, modules = nodes.popitem()
        return _choose(modules, processes, allow_partial, name)
    most = max(len(modules) for modules in nodes.values())
    fewer = {name: modules for name, modules in nodes.items() if len(modules) < most}
    if fewer and not allow_partial:
        named = ", ".join(f"{name} has {len(modules)} ({_described(modules)})" for name, modules in fewer.items())
        raise Refusal(
            f"the other nodes of the job have {most} operational cards and {named}, where a job over several nodes "
            f"needs equally many on each: take such a node out of the job, repair it, or set {PARTIAL} to true"
        )
    common = set.intersection(*(set(modules) for modules in nodes.values()))
    return _choose(tuple(sorted(common)), processes, allow_partial, f"each of the {len(nodes)} nodes")


def _checked(modules: Iterable[int], node: str) -> tuple[int, ...]:
    found = tuple(sorted(modules))
    odd = sorted({module for module in found if not 0 <= module < 8 or found.count(module) > 1})
    if odd:
        raise Refusal(
            f"{node} names its modules {', '.join(map(str, found))}, where each is from 0 to 7 and occurs once: see "
            "'hl-smi -Q index,module_id,bus_id -f csv'"
        )
    return found


def _choose(operational: tuple[int, ...], processes: int, allow_partial: bool, node: str) -> ModuleChoice:
    left = [modules for modules in SETS.get(processes, ()) if set(modules) <= set(operational)]
    if left:
        return ModuleChoice(left[0], tuple(left))
    if allow_partial and 0 < processes <= len(operational):
        modules = operational[:processes]
        return ModuleChoice(modules, (modules,), supported=False)
    raise Refusal(_refusal(operational, processes, allow_partial, node))


def _refusal(operational: tuple[int, ...], processes: int, allow_partial: bool, node: str) -> str:
    have = f"{len(operational)} operational card{'s' * (len(operational) != 1)}"
    if operational:
        have += f" ({_described(operational)})"
    said = f"{node} has {have} and {PROCESSES} is {processes}"
    if processes not in SETS and not allow_partial:
        said += ", where 1, 2, 4 or 8 are supported"
    elif processes > len(operational):
        said += ", more than there are"
    elif processes > 0:
        said += f", for which the vendor names {_joined([_described(modules) for modules in SETS[processes]])}"
    remedies = []
    for count in (8, 4, 2):
        sets = [_described(modules) for modules in SETS[count] if set(modules) <= set(operational)]
        if sets:
            remedies.append(f"{count} ({_joined(sets)})")
    if operational:
        remedies.append("1 (any card)")
    asks = [f"set it to {_joined(remedies)}"] if remedies else []
    asks.append("repair the node")
    if not allow_partial and 0 < processes <= len(operational):
        asks.append(f"set {PARTIAL} to true to try what is not supported")
    return f"{said}: {_joined(asks)}"


def _described(modules: tuple[int, ...]) -> str:
    """Modules for a sentence: ``modules 0 to 2, 4 and 5``."""
    if not modules:
        return "none works"
    if len(modules) == 1:
        return f"module {modules[0]}"
    runs: list[list[int]] = []
    for module in modules:
        if runs and module == runs[-1][-1] + 1:
            runs[-1].append(module)
        else:
            runs.append([module])
    parts: list[str] = []
    for run in runs:
        parts += [f"{run[0]} to {run[-1]}"] if len(run) > 2 else [str(module) for module in run]
    return "modules " + (parts[0] if len(parts) == 1 else ", ".join(parts[:-1]) + " and " + parts[-1])


def _joined(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else ", ".join(parts[:-1]) + " or " + parts[-1]
