# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""The trainer's environment for jobs in a container: made by the Python of the image, kept in a folder of the node.

The environment sees the packages of the image, where the vendor's PyTorch is. What the trainer requires and the image
lacks is installed beside it from a pinned list, without what that asks for, so that no other torch can come. Folder,
packages and trainer are at the same path on the node and in the container.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Mapping
from typing import Any, Optional

from .._cards.file_access import first_closed, numbers_of
from .._files import make_folder, nearest_folder, write_file
from .._jobs.container import Container
from .._pip import Pin
from .._pytorch.pins import other_file_refusal, wanted
from .._refusal import Refusal
from .._release.versions import Release as VendorRelease
from .._wheels import described, python_admitted, unmet
from .env import Release, Run, TrainerEnv

PLUGIN = "habana-torch-plugin"
_RECORD = "gaudi3-scale-requirements"


def image_id(run: Run, container: Container) -> str:
    """Which image the engine has under this name; empty where it has none."""
    argv = [container.program, "image", "inspect", "--format", "{{.Id}}", container.reference]
    try:
        rc, out, _err = run(argv, handle_exceptions=False)
    except OSError:
        return ""
    return out.strip() if rc == 0 else ""


class ContainerEnv(TrainerEnv):
    """The environment below one folder of the node, for one image."""

    def __init__(self, run: Run, root: str, python: str, container: Container, pins: Mapping[str, Pin]) -> None:
        super().__init__(self._inside, root, python)
        self._engine_run = run
        self._container = container
        self._pins = pins
        self._image = image_id(run, container)
        # In the image the node has this folder alone.
        self._list_folder = root
        # The name of an image can be given to another one.
        self._maker = f"{python} of {self._image}"

    def has_venv(self) -> bool:
        """Whether the environment is there and of this image; its Python is a link to that of the image."""
        return self._recorded_maker() == self._maker and os.path.lexists(self.interpreter)

    def has_python(self) -> bool:
        """Whether the image is there."""
        return bool(self._image)

    def probed(self, release: Release) -> list[str]:
        """Packages to ask for: the vendor's plugin and the pinned ones, too."""
        return [*dict.fromkeys([*super().probed(release), PLUGIN, *self._pins])]

    def verify(self, answer: Mapping[str, Any], release: Release, from_index: bool) -> list[str]:
        """Check what the trainer needs; return the pins that are missing in the image."""
        image, found = self._container.image, answer["distributions"]
        if release.requires_python and not python_admitted(release.requires_python, answer["version"]):
            raise Refusal(
                f"The trainer needs Python {release.requires_python}, but {self._python} of the image {image} is "
                f"{answer['version']}: set trainer_container_python to another one in it, or take an image of another "
                "system (trainer_container_system)."
            )
        torch = [pair for pair in unmet(release.requirements, found) if pair[0].name == "torch"]
        if torch:
            raise Refusal(
                f"The trainer needs {described(torch)} in the image {image}, whose PyTorch is never replaced: take an "
                "image of a newer release, or set trainer_container_python to the Python in it that has PyTorch."
            )
        missing = wanted(self._pins, found, self._ours() if self.has_venv() else ())
        coming = {pin.name: pin.version for pin in missing}
        rest = [pair for pair in unmet(release.requirements, {**found, **coming}) if pair[0].name != "torch"]
        if rest:
            raise Refusal(
                f"The trainer needs {described(rest)} in the image {image}: take an image without its own version of "
                "it, or add what is missing to trainer_container_requirements as name==version --hash=sha256:DIGEST."
            )
        return list(map(str, missing))

    def named(self, python: str) -> str:
        """The image's Python, for use inside a sentence."""
        return f"{python} with the image {self._container.image}"

    def check_release(self, answer: Mapping[str, Any], release: str) -> None:
        """Refuse an image whose plugin names another release than the driver's."""
        plugin = answer["distributions"].get(PLUGIN)
        if plugin is None:
            raise Refusal(
                f"The image {self._container.image} is without {PLUGIN}, so it cannot use the cards: take the vendor's "
                "image or one that was made of it."
            )
        wanted_release = VendorRelease.parse(release)
        # A local label, behind a plus, says who built it.
        if plugin.partition("+")[0] != f"{wanted_release.version}.{wanted_release.build}":
            raise Refusal(
                f"The image {self._container.image} has {PLUGIN} {plugin}, but the driver's release is {release}: take "
                "an image of that release, or set synapseai_release to the image's."
            )

    def check_reach(self, answer: Mapping[str, Any], user: str) -> None:
        """Refuse a folder that the user of the jobs cannot reach; in the container the path is the same."""
        closed = first_closed(nearest_folder(self._root), *numbers_of(user))
        if closed is not None:
            raise Refusal(
                f"{user} cannot reach {self._root}, as {closed} is closed to it: set trainer_root to a folder that all "
                "may enter, such as below /opt."
            )

    def check_import(self, user: str, names: Iterable[str], setpriv: str) -> None:
        """Refuse to go on unless jobs, which run as this user, can import what they compute with."""
        imports = ", ".join(names)
        uid, _groups = numbers_of(user)
        # Not isolated: the image's own PYTHONPATH is part of it.
        argv = [self.interpreter, "-c", f"import {imports}"]
        trouble = f"{user} cannot import {imports} in the image {self._container.image}"
        environ = {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0", "HABANA_LOGS": "/tmp"}
        self._check(self._inside(argv, environ_update=environ, user=str(uid)), trouble)

    def make_venv(self, answer: Mapping[str, Any], release: Release) -> dict[str, Any]:
        """Make the environment again, as an earlier one has packages for another image."""
        make_folder(self._root)
        if os.path.lexists(self.venv):
            shutil.rmtree(self.venv)
        return super().make_venv(answer, release)

    def install_from_index(
        self, requirements: list[str], index_environ: Mapping[str, str], pins: Mapping[str, Pin]
    ) -> None:
        """Install exactly these packages with the image's pip; they are the task's pins, not those of the trainer."""
        names = [pin.partition("==")[0] for pin in requirements]
        # What pip installs before it fails is the list's, too.
        ours = sorted({*self._ours(), *names})
        write_file(os.path.join(self.venv, _RECORD), "".join(f"{name}\n" for name in ours), 0o644)
        self._add([self._pins[name] for name in names], index_environ)

    def other_file_refusal(self, pin: str) -> Refusal:
        """What is said where the index has another file than the list names."""
        return other_file_refusal(pin, "trainer_container_requirements")

    def _ours(self) -> list[str]:
        try:
            with open(os.path.join(self.venv, _RECORD), encoding="utf-8") as stream:
                return stream.read().split()
        except OSError:
            return []

    def _inside(
        self,
        argv: list[str],
        environ_update: Optional[Mapping[str, str]] = None,
        handle_exceptions: bool = True,
        user: str = "0",
    ) -> tuple[int, str, str]:
        """Run a command in the image, with the environment's folder where it is on the node."""
        environ = {"HOME": "/tmp", **(environ_update or {})}
        options = ["--rm", "--network=host", "--cap-drop=all", "--security-opt=no-new-privileges", "--pull=never"]
        options += ["--log-driver=none", f"--user={user}"]
        options += ["--security-opt=label=disable"] if self._container.engine == "podman" else []
        if os.path.isdir(self._root):
            options.append(f"--volume={self._root}:{self._root}{'' if user == '0' else ':ro'}")
        # Without a value: the engine takes that of its own environment, out of sight of the node's users. What is in no
        # way secret stands here, since the engine itself reads it, too.
        options += [f"--env={name}={environ[name]}" for name in sorted(environ) if not name.startswith("PIP_")]
        pip = {name: value for name, value in environ.items() if name.startswith("PIP_")}
        options += [f"--env={name}" for name in sorted(pip)]
        command = [self._container.program, "run", *options, "--entrypoint=", self._container.reference, *argv]
        return self._engine_run(command, environ_update=pip, handle_exceptions=handle_exceptions)
