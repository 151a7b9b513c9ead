"""The stand-in for IBM Cloud's provider, ready to use: a mirror, a simulated cloud and a copy of the tree."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gaudi3_simulator.cloud import mirror
from gaudi3_simulator.cloud.world import World

from ..conftest import ROOT, TREE
from .tool import KEY, Done, Project, copied

#: In an environment of its own, as checkov is (make terraform-test makes it).
PYTHON = ROOT / ".cache" / "standin" / "bin" / "python"
GAUDI = "gx3d-160x1792x8gaudi3"
RSA = (
    "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAAAgQDJq3uJfnvbnTbkUBMdTt6RRc6rV8oNEdmxZ7R1XH7gkl3VvqPVy1cXnZ1C0YNQ2y3aWbJmGm4K8"
    "gQn2cWf1bq0bqP8p3V0dQm8yCqk0m1lq0xX0T6vCq9pQ1tq1l8X3b0s0xw9h7yBq5wqz9p1J2b7k3F0r8c5S6d4g9h2T1a3Qw== tests@example"
)


def image_id(name: str) -> str:
    """The id that the simulated cloud gives an image."""
    return f"r014-{hashlib.md5(name.encode()).hexdigest()}"


@dataclass
class Account:
    """An account of the simulated cloud, with a root module of a copy of the tree to use on it."""

    folder: Path
    world: World
    project: Project
    said: Done = field(default_factory=lambda: Done(0, "", 0))

    def call(self, command: str, *arguments: str, code: int = 0, **variables: Any) -> str:
        """plan, apply or destroy; its output."""
        values = {"cluster_size": "8", "instance_type": GAUDI, **variables}
        given = [text for name, value in values.items() for text in ("-var", f"{name}={value}")]
        done = self.project.change(command, *arguments, *given)
        assert done.code == code, done.output[-4000:]
        self.said = done
        return done.output

    def errors(self, command: str = "plan", **variables: Any) -> list[str]:
        """Each error of a call that has to fail."""
        self.call(command, code=1, **variables)
        return self.said.errors


def account(folder: Path, version: str = "2.5.0", *, quota: bool = True, tree: Path = TREE, key: str = KEY) -> Account:
    """A fresh account; with a quota that was raised, unless it is a new one's."""
    world = World(folder / "world")
    if quota:
        world.set("quota", vcpu=2000, storage_gb=400_000, gpu=100)
    settings = mirror.make(folder, "ibm", version, PYTHON)
    place = folder / "terraform"
    copied(tree, place)
    environment = {**mirror.environment(settings, Path(world.path)), "TF_VAR_ssh_public_key": key}
    # The data folder is the tree's, so that several states can use it once it is initialised.
    environment["TF_DATA_DIR"] = str(place / "ibm" / ".terraform")
    project = Project(place / "ibm", environment)
    project.init()
    return Account(folder, world, project)
