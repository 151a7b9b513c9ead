# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Which cards a job of Slurm has on its node, and what its processes get to know of them."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .._cards.module_sets import SETS
from .._cards.pci import listing, read

#: Variables of a job's or a step's cards, as places in gres.conf; a step's are some of its job's.
OF_STEP, OF_JOB = "SLURM_STEP_GPUS", "SLURM_JOB_GPUS"
_LINE = re.compile(r"(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)=(.*)")


@dataclass(frozen=True)
class Allocation:
    """The cards of a job: module ids, and the indices of the same cards."""

    modules: tuple[int, ...]
    indices: tuple[int, ...]

    @property
    def is_supported(self) -> bool:
        """Whether the vendor supports these modules together; a job without cards has nothing to support."""
        return not self.modules or self.modules in SETS.get(len(self.modules), ())

    @property
    def can_be_supported(self) -> bool:
        """Whether another set of as many cards is supported."""
        return len(self.modules) in SETS


def modules_of_node(sysfs: str = "/sys") -> dict[int, int]:
    """The index of each card by its module id, as the driver shows them now; a card without an id is left out."""
    found: dict[int, int] = {}
    root = os.path.join(sysfs, "class", "accel")
    for name in listing(root):
        module = read(root, name, "device", "module_id")
        if name.startswith("accel") and name[5:].isdigit() and module is not None and module.isdigit():
            found[int(module)] = int(name[5:])
    return found


def places(environment: Mapping[str, str]) -> tuple[int, ...]:
    """The places of the job's cards in gres.conf, as Slurm names them: 0 to 7, or ranges of them."""
    text = environment.get(OF_STEP) or environment.get(OF_JOB) or ""
    found: list[int] = []
    for part in text.split(","):
        first, _dash, last = part.strip().partition("-")
        if first.isdigit() and (not last or last.isdigit()):
            found += range(int(first), min(int(last or first), 1000) + 1)
    return tuple(sorted(set(found)))


def allocation(found: Sequence[int], files: Sequence[int], modules: Mapping[int, int]) -> Allocation:
    """The cards at these places; ``files`` are the indices in the order of gres.conf, ``modules`` as the node has them.

    A place that there is not, or whose card has no module id now, is left out.
    """
    by_index = {index: module for module, index in modules.items()}
    indices = [files[place] for place in found if place < len(files)]
    pairs = sorted((by_index[index], index) for index in indices if index in by_index)
    return Allocation(tuple(module for module, _index in pairs), tuple(index for _module, index in pairs))


def files_of(gres_conf: str) -> list[int]:
    """The indices of the cards in the order of a gres.conf."""
    return [int(index) for index in re.findall(r"^Name=\S+ .*?/dev/accel/accel(\d+)", gres_conf, re.MULTILINE)]


def exports(cards: Allocation, environment_files: Sequence[str]) -> list[str]:
    """What a task prolog prints: the variables of the node's files, then those of the cards, which nothing overrides.

    Slurm takes ``export NAME=value`` at the beginning of a line, keeps quotes and expands nothing (seen with 22.05.8).
    """
    known: dict[str, str] = {}
    for text in environment_files:
        for line in text.splitlines():
            found = _LINE.fullmatch(line.strip())
            if found is not None:
                known[found[1]] = found[2].strip().strip('"')
    if cards.modules:
        known["HABANA_VISIBLE_MODULES"] = ",".join(map(str, cards.modules))
        known["HABANA_VISIBLE_DEVICES"] = ",".join(map(str, cards.indices))
    return [f"export {name}={value}" for name, value in known.items()]
