# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""The fence that keeps jobs off a node which is out of service: where it lies, and what is read from it.

`gaudi_fence` writes it; a job's unit and `gaudi_train` start nothing where it is.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

FOLDER = "/var/lib/gaudi3-scale/health"
FENCE = "fence.json"
FENCE_PATH = f"{FOLDER}/{FENCE}"
#: In memory, for a node whose disk is full or read-only. It is gone with a reboot, after which the loop fences again.
RUNTIME, RUNTIME_FENCE = "/run/gaudi3-scale", "fence"
RUNTIME_FENCE_PATH = f"{RUNTIME}/{RUNTIME_FENCE}"


def read(folder: str = FOLDER, runtime: str = RUNTIME) -> dict[str, Any] | None:
    """Why the node is out of service; None where it is in service.

    A fence in ``runtime`` counts as well: it is there where the disk could not take one. A file that cannot be
    understood counts as a fence: whoever wrote it wanted the node out of service.
    """
    kept = _fence_in(os.path.join(folder, FENCE))
    return _fence_in(os.path.join(runtime, RUNTIME_FENCE)) if kept is None else kept


def _fence_in(path: str) -> dict[str, Any] | None:
    try:
        with open(path, encoding="utf-8", errors="replace") as stream:
            content = json.loads(stream.read(1 << 20))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError, RecursionError):
        content = None
    return content if isinstance(content, dict) else {"reason": "its fence cannot be read", "step": "", "jobs": []}


def refusal(found: Mapping[str, Any]) -> str:
    """Why no job may start on a node with this fence."""
    step = f" (step: {found['step']})" if found.get("step") else ""
    return (
        f"This node is out of service{step}: {str(found.get('reason') or 'no reason is given').rstrip('.')}; leave it "
        "out of the job, or give it back with the playbook gaudi3.scale.heal, which tests it first."
    )
