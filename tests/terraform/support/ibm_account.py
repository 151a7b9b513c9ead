"""An account of IBM Cloud, played by the stand-in for its provider and by the simulated cloud's own interfaces."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from gaudi3_simulator.cloud import mirror
from gaudi3_simulator.cloud.world import World

from .standin import PYTHON

ENOUGH = {"vcpu": 2000, "storage_gb": 400_000, "gpu": 100}


@dataclass
class IbmAccount:
    """A simulated cloud that stands for an account."""

    cloud = "ibm"

    world: World
    environment: dict[str, str]

    def machines(self) -> dict[str, dict[str, Any]]:
        """Machines by name."""
        return {row["name"]: {"InstanceId": row["id"]} for row in self.world.rows("ibm_is_instance")}

    def everything(self) -> dict[str, int]:
        """How much there is of what a cluster is made of."""
        return self.world.kinds()

    def put(self, bucket: str, key: str) -> None:
        """Put an object into a bucket."""
        self.world.put("_object", f"{bucket}/{key}", {"bucket": bucket})

    def bucket(self) -> str:
        """The bucket of checkpoints."""
        (found,) = (row for row in self.world.rows("ibm_cos_bucket") if "-checkpoints-" in row["bucket_name"])
        return str(found["bucket_name"])


@contextmanager
def ibm_account(folder: Path, gate: Path | None = None, region: str = "us-east") -> Iterator[IbmAccount]:
    """An empty account with a quota that was raised. ``gate`` is a folder by which it can be stopped at an instant."""
    if not PYTHON.exists():
        pytest.skip("the stand-in's environment is missing: this was NOT checked (make .cache/standin/ready)")
    world = World(folder / "world")
    world.set("quota", **ENOUGH)
    settings = mirror.make(folder, "ibm", "2.5.0", PYTHON)
    command = [sys.executable, "-m", "gaudi3_simulator.cloud.ibm_api", world.path, region]
    own = {**os.environ, "PYTHONPATH": str(mirror.SOURCE_FOLDER)}
    with subprocess.Popen(command, env=own, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            environment = {
                **mirror.environment(settings, Path(world.path)),
                **json.loads(process.stdout.readline()),
                "TF_CLI_ARGS_init": "",
                **({"GAUDI3_STANDIN_GATE": str(gate)} if gate else {}),
            }
            yield IbmAccount(world, environment)
        finally:
            process.terminate()
