"""Run the blocks of the pages that are named: python -m tests.walks docs/use/plan.md."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from pathlib import Path

from . import plan
from .markdown import ROOT, blocks
from .places import cluster
from .walk import go


def main(names: list[str]) -> int:
    """How many of the pages do not hold."""
    wrong = 0
    with ExitStack() as stack:
        walks = [plan.read().walk(str(Path(name).resolve().relative_to(ROOT))) for name in names]
        if any(walk.kind == "cluster" for walk in walks):
            stack.enter_context(cluster(ROOT / ".cache/walks-cluster.log"))
        for walk in walks:
            outcome = go(walk, blocks((ROOT / walk.page).read_text(encoding="utf-8"), walk.page))
            for where, printed in outcome.printed:
                print(f"--- {where}\n{printed}", end="")
            print(*(f"!!! {fault}" for fault in outcome.faults), sep="\n")
            print(f"{walk.page} ({walk.kind}): {outcome.row()}", flush=True)
            wrong += bool(outcome.faults)
    return wrong


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
