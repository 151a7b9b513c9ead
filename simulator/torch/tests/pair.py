"""Two processes of one job, each with a card of its own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from conftest import HERE, environment
from forks import Forks


def run(forks: Forks, script: str, folder: Path, *arguments: str) -> list[dict[str, Any]]:
    """Run `script RANK FOLDER ...` twice; what each wrote to `seen-RANK.json`."""
    children = []
    for rank in range(2):
        command = [str(HERE / script), str(rank), str(folder), *arguments]
        code = f"import runpy, sys; sys.argv = {command!r}; runpy.run_path(sys.argv[0], run_name='__main__')"
        children.append(forks.start(code, environment(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE="2")))
    try:
        done = [child.wait() for child in children]
    finally:
        for child in children:
            child.kill()
    assert [one.returncode for one in done] == [0, 0], "\n".join(one.stderr for one in done)
    return [json.loads((folder / f"seen-{rank}.json").read_text()) for rank in range(2)]
