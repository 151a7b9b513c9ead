"""Completion in the user's shell: the script, and the names that it asks for while one types.

The script has commands and options in it. Names of clusters, nodes and stages change, so it asks
``gaudi3-simulator completion --names KIND --line LINE`` for them, where LINE is the command line so far.
"""

from __future__ import annotations

import argparse
import re

from . import SimulatorError
from .home import clusters, home, load_cluster
from .node import faults

SHELLS = ("bash", "zsh", "fish")
NAMES = ("clusters", "nodes", "stages", "faults")
_PROGRAM = "gaudi3-simulator"


def names_of(kind: str) -> dict[str, object]:
    """What shtab wants to know of an argument whose values are ``kind``: a function or a call for each shell."""
    call = f"{_PROGRAM} completion --names {kind} --line"
    function = f"_gaudi3_simulator_{kind}"
    return {
        "bash": function,
        "zsh": function,
        "fish": f"({call} (commandline -cp) 2>/dev/null)",
        "preamble": {
            "bash": f'{function}() {{ compgen -W "$({call} "${{COMP_WORDS[*]}}" 2>/dev/null)" -- "$1"; }}\n',
            "zsh": f'{function}() {{ compadd -- ${{(f)"$({call} "${{words[*]}}" 2>/dev/null)"}} }}\n',
        },
    }


def script(parser: argparse.ArgumentParser, shell: str) -> str:
    """The script for one of ``SHELLS``. Raises SimulatorError where the library that writes it is missing."""
    try:
        import shtab
    except ImportError:
        raise SimulatorError(
            "The script is written by the library shtab, which this Python lacks: install it "
            "(requirements/controller.txt has its version), and run this again."
        ) from None
    return str(shtab.complete(parser, shell)).rstrip()


def names(kind: str, line: str, default: str) -> list[str]:
    """Names of one of ``NAMES``. Nodes are those of the cluster that ``line`` names with --name, or of ``default``."""
    if kind == "clusters":
        return [each.name for each in clusters()]
    if kind == "stages":
        return sorted(path.parent.name for path in (home() / "stages").glob("*/stage.json"))
    if kind == "faults":
        return list(faults.REGISTRY)
    named = re.search(r"\s--name[\s=]+([\w.-]+)", line)
    found = load_cluster(named[1] if named else default)
    return [node.name for node in found.all_nodes()] if found else []
