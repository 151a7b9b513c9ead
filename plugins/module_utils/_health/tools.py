# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""The tests that put load on cards: modes of hl_qual, collectives of hccl_demo. They need free cards.

A mode that fails on all cards at once is run again card by card, as what hl_qual prints of the card that failed is not
published. A call that ends without a report is a failure of the check, not of a card.
"""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Callable, Iterable, Sequence

from .._hl_smi.command import HlSmiHung
from .readings import ToolResult

Run = Callable[[list[str]], "tuple[int, str, str]"]

#: Modes of the standard depth: name, arguments. The vendor's page has all of them.
MODES: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("functional", ("-f2", "-l", "extreme")),
    ("power", ("-s",)),
    ("pcie", ("-p", "-b")),
    ("memory-bandwidth", ("-mb", "-memOnly")),
    ("hbm", ("-full_hbm_data_check_test", "-i", "1")),
    ("nic", ("-nic_base", "-test_type", "pairs")),
    ("link-errors", ("-ser",)),
)
_RESULT = re.compile(r"^(passed|failed)\s*$", re.I)
_BANDWIDTH = re.compile(r"NW Bandwidth\s*:\s*([\d.]+)\s*([KMGT]?B)/s")
_UNITS = {"B": 1e-9, "KB": 1e-6, "MB": 1e-3, "GB": 1.0, "TB": 1e3}


def qual_result(mode: str, code: int, output: str, error: str, card: int | None = None) -> ToolResult:
    """What a call of hl_qual ended with: the last line that says so, else no result."""
    last = next((line for line in reversed(output.splitlines()) if line.strip()), "")
    match = _RESULT.match(last.strip())
    if match is None:
        said = next((line for line in (error + "\n" + output).splitlines() if line.strip()), "nothing was printed")
        return ToolResult(f"hl_qual {mode}", None, f"exit code {code}: {said.strip()}", card)
    return ToolResult(f"hl_qual {mode}", match.group(1).lower() == "passed", "", card)


def qualify(
    run: Run, executable: str, generation: str, cards: Iterable[tuple[int, str]], modes: Sequence[str] = ()
) -> list[ToolResult]:
    """Run modes of hl_qual on all cards, given as (index, PCI address), and name the card where one fails."""
    known = list(cards)
    results = []
    for mode, arguments in MODES:
        if modes and mode not in modes:
            continue
        whole = _qual(run, [executable, f"-{generation}", "-c", "all", "-rmod", "parallel", *arguments], mode, None)
        if whole.passed is not False:
            results.append(whole)
            continue
        single = [
            _qual(run, [executable, f"-{generation}", "-c", bus_id, "-rmod", "serial", *arguments], mode, index)
            for index, bus_id in known
        ]
        bad = [result for result in single if result.passed is False]
        results += bad or [whole]
    return results


def _qual(run: Run, command: list[str], mode: str, card: int | None) -> ToolResult:
    try:
        code, output, error = run(command)
    except (OSError, HlSmiHung) as caught:
        return ToolResult(f"hl_qual {mode}", None, str(caught), card)
    return qual_result(mode, code, output, error, card)


#: Collectives of the standard depth, and the call that the program's own page shows for one node.
COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "all2all")
_DEMO = ("--node_id", "0", "--size", "32m", "--loop", "1000")


def measure(run: Run, folder: str, cards: int, python: str = "python3") -> list[ToolResult]:
    """Run the collectives of hccl_demo over all cards of this node. ``run`` has ``HCCL_COMM_ID`` in its environment."""
    results = []
    for test in COLLECTIVES:
        ranks = ("--nranks", str(cards), "--ranks_per_node", str(cards))
        command = ["env", "-C", folder, python, "run_hccl_demo.py", *ranks, *_DEMO, "--test", test]
        try:
            code, output, _error = run(command)
        except (OSError, HlSmiHung) as caught:
            results.append(ToolResult("hccl_demo", None, f"{test}: {caught}"))
            continue
        results.append(collective_result(test, code, output))
    return results


def last_line(output: str) -> str:
    """The last line with anything in it."""
    return next((line.strip() for line in reversed(output.splitlines()) if line.strip()), "nothing was printed")


def collective_result(test: str, code: int, output: str) -> ToolResult:
    """The network bandwidth in GB/s that hccl_demo printed for a collective."""
    match = _BANDWIDTH.search(output)
    figure = None
    if match is not None:
        with contextlib.suppress(ValueError):
            figure = float(match.group(1)) * _UNITS[match.group(2)]
    if figure is None or not math.isfinite(figure) or code != 0:
        return ToolResult("hccl_demo", None, f"{test}: exit code {code}: {last_line(output)}")
    return ToolResult("hccl_demo", True, figures={test: figure})
