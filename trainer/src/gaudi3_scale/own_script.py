"""What a unit tells a script of the user's about the job that it is, by environment variables.

The collection's module `gaudi_train` sets them for a job with a `command`. Without them a script runs as it always did.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from gaudi3_scale.errors import ConfigError

DIRECTORY = "GAUDI3_JOB_DIRECTORY"
"""The job's folder: status.json, checkpoints and goodput.jsonl go there, where nothing else is asked for."""
INTERRUPTION = "GAUDI3_INTERRUPTION"
"""The section `interruption` of `gaudi3-train config`, as JSON."""


def directory() -> Path | None:
    """The job's folder; None of a script that is no job."""
    given = os.environ.get(DIRECTORY)
    return Path(given) if given else None


def interruption() -> dict[str, Any]:
    """Settings of the section `interruption`; none without a job."""
    given = os.environ.get(INTERRUPTION)
    try:
        settings = json.loads(given) if given else {}
    except ValueError:
        settings = None
    if not isinstance(settings, dict):
        raise ConfigError(
            f"{INTERRUPTION} is {given!r}: give the section `interruption` of `gaudi3-train config` as a JSON object, "
            "or unset it."
        )
    return settings
