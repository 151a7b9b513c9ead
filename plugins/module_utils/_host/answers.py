# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Texts out of the answers of several nodes, for what is compared or reported once for all of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from .._kinds import exact
from .._printable import LONGEST, few, printable

#: No module has more to remark on one node.
MOST = 64
#: Nodes that a remark is shown of.
SHOWN = 4
_LOOPBACK = re.compile(r"127\.|::1\s")


def exact_texts(answers: Iterable[object], *names: str) -> list[list[str]]:
    """The values of these names in each answer, each combination once; nothing of an answer in which one is odd.

    A value that counts is a text that is not empty and can be shown as it is.
    """
    found: list[list[str]] = []
    for answer in answers:
        given = answer if isinstance(answer, Mapping) else {}
        texts = [each for name in names if (each := exact(given.get(name)))]
        if len(texts) == len(names) and texts not in found:
            found.append(texts)
    return found


def remarks(answers: Mapping[str, object]) -> dict[str, list[str]]:
    """What modules remarked on nodes: each sentence with the nodes that it is said of. What is no text is left out."""
    found: dict[str, list[str]] = {}
    for node, said in answers.items():
        for each in said[:MOST] if isinstance(said, (list, tuple)) else ():
            if isinstance(each, str):
                nodes = found.setdefault(printable(each, LONGEST), [])
                if node not in nodes:
                    nodes.append(node)
    return found


def remark_lines(answers: Mapping[str, object]) -> list[str]:
    """The same as lines: each sentence behind the first of the nodes that it is said of."""
    return [f"{few(nodes, SHOWN)}: {remark}" for remark, nodes in remarks(answers).items()]


def loopbacks(answers: Mapping[str, object]) -> list[str]:
    """The hosts whose ``getent ahosts`` printed a loopback address first."""
    return [host for host, printed in answers.items() if isinstance(printed, str) and _LOOPBACK.match(printed)]
