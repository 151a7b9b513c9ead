"""Two processes of one job, each with a card of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from conftest import HERE, environment


def run(script: str, folder: Path, *arguments: str) -> list[dict[str, Any]]:
    """Run `script RANK FOLDER ...` twice; what each wrote to `seen-RANK.json`."""
    processes = [
        subprocess.Popen(
            [sys.executable, str(HERE / script), str(rank), str(folder), *arguments],
            env=environment(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE="2"),
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )
        for rank in range(2)
    ]  # fmt: skip
    try:
        outputs = [process.communicate(timeout=180)[0] for process in processes]
    finally:
        for process in processes:
            process.kill()
    assert [process.returncode for process in processes] == [0, 0], "\n".join(outputs)
    return [{**json.loads((folder / f"seen-{rank}.json").read_text()), "output": outputs[rank]} for rank in range(2)]
