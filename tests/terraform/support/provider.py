"""AWS's provider as one process that the calls of terraform share, as developers of a provider run it.

Each call would start it anew several times: three seconds of a processor to make its schema.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from .tool import REGISTRY, clean_environment, mirror_of

AWS = "hashicorp/aws"


def executable() -> Path | None:
    """The newest of AWS's provider that a mirror on this machine has unpacked."""
    mirror = mirror_of(AWS)
    found = sorted((mirror / REGISTRY / AWS).glob("*/*/terraform-provider-aws_v*")) if mirror else []
    return next((path for path in reversed(found) if os.access(path, os.X_OK)), None)


@contextmanager
def shared_provider(account: Mapping[str, str], log: Path) -> Iterator[dict[str, str]]:
    """What makes terraform use one process on an account, with this log; nothing where each call has to start its own.

    It is that of one configuration at a time: projects with calls side by side have one each.
    """
    found = executable()
    if found is None:
        yield {}
        return
    environment = {**clean_environment(), **account, "TF_LOG": "ERROR"}
    with log.open("w") as errors:
        process = subprocess.Popen(
            [str(found), "-debug"], env=environment, stdout=subprocess.PIPE, stderr=errors, text=True
        )
    assert process.stdout is not None
    try:
        said = ""
        for line in process.stdout:
            said += line
            if told := re.search(r"TF_REATTACH_PROVIDERS='(.*)'", line):
                break
        else:
            raise AssertionError(f"{found.name} -debug does not say how to reach it: {said}{log.read_text()}")
        yield {"TF_REATTACH_PROVIDERS": told[1]}
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
