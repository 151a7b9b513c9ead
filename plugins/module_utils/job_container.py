# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""A training job in a container: the command of its engine, and what differs in the job's systemd unit.

The engine's client runs in the foreground under the unit, passes signals on and ends with the trainer's exit code, so
that notices, checkpoints and exit codes are those of a job without a container. Options: the vendor's page on its
docker images (``--cap-add=sys_nice --net=host --ipc=host``, and ``--runtime=habana`` with ``HABANA_VISIBLE_DEVICES``,
which give a container the cards). For podman the vendor documents nothing; it gets the device files themselves.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ansible_collections.gaudi3.scale.plugins.module_utils.jobs import UNPRINTABLE, check_path

ENGINES = ("podman", "docker")
#: Folders of device files, for an engine without the vendor's runtime: cards, and what collectives need of RDMA.
DEVICES = ("/dev/accel", "/dev/infiniband")
#: The vendor's runtime of docker, from package habanalabs-container-runtime.
RUNTIME = "habana"
#: A registry's host with its port, names and a tag, a digest, or both.
IMAGE = re.compile(
    r"[a-z0-9][a-z0-9._:-]*(/[a-z0-9][a-z0-9._-]*)*(:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(@sha256:[0-9a-f]{64})?"
)
#: An engine's own exit codes: it failed, the command could not be run, the command is missing.
ENGINE_EXITS = (125, 126, 127)


@dataclass(frozen=True)
class Container:
    """What jobs run in."""

    engine: str
    image: str
    #: Python in the image that has PyTorch and what the trainer requires.
    python: str = "python3"
    #: Further folders of the node that the job sees under the same path, read-only: data sets, for instance.
    folders: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Raise ValueError for what no engine would understand, or would understand otherwise."""
        if self.engine not in ENGINES:
            raise ValueError(f"The container's engine is {self.engine!r}: give one of {', '.join(ENGINES)}.")
        if not IMAGE.fullmatch(self.image):
            raise ValueError(
                f"The container's image is {self.image!r}: write it as REGISTRY/NAME:TAG, in small letters but for the "
                "tag."
            )
        if not re.fullmatch(r"[A-Za-z0-9_./-]+", self.python) or self.python.startswith("-"):
            raise ValueError(f"The container's python is {self.python!r}: give a name or path without blanks.")
        for folder in self.folders:
            check_path("folders", folder)
            if ":" in folder or "," in folder:
                raise ValueError(f"The folder {folder} cannot be given to a container: rename it, without ':' and ','.")


@dataclass(frozen=True)
class Share:
    """A node's share of a job, as the container sees it."""

    #: Name of the job's unit, without its ending. The container has it too.
    name: str
    #: Folder of the job, its own to write; that of root beside it; and that of the trainer's version.
    directory: str
    control: str
    trainer: str
    #: Numbers of the job's user, its group, and of groups that open the device files.
    user: int
    group: int
    groups: tuple[int, ...] = ()
    #: Names of the variables that the job gets from the unit, be it from its lines or from its files.
    variables: tuple[str, ...] = ()


def engine_argv(container: Container, share: Share, argv: Sequence[str]) -> list[str]:
    """The engine's command which runs a command in the container."""
    for path in (share.directory, share.control, share.trainer):
        check_path("A folder of the job", path)
    options = ["--rm", f"--name={share.name}", "--network=host", "--ipc=host", "--cap-add=SYS_NICE"]
    options += ["--pull=never", "--log-driver=none", "--ulimit=memlock=-1:-1", "--ulimit=nofile=65536:65536"]
    options += [f"--user={share.user}:{share.group}", *(f"--group-add={each}" for each in share.groups)]
    if container.engine == "docker":
        options += [f"--runtime={RUNTIME}", "--env=HABANA_VISIBLE_DEVICES=all"]
    else:
        # Labels of SELinux would keep the job from its own folder.
        options += [*(f"--device={each}" for each in DEVICES), "--security-opt=label=disable"]
    options += [f"--volume={share.directory}:{share.directory}", f"--workdir={share.directory}"]
    options += [f"--volume={path}:{path}:ro" for path in (share.control, share.trainer, *container.folders)]
    # Without a value: the engine takes that of its own environment, and leaves out what is not set there.
    options += [f"--env={name}" for name in sorted(set(share.variables))]
    options += [f"--env=PYTHONPATH={share.trainer}", "--env=HOME=/tmp"]
    return [f"/usr/bin/{container.engine}", "run", *options, "--entrypoint=", container.image, *argv]


def inside(container: Container, venv: str, argv: Sequence[str]) -> list[str]:
    """A command of the trainer's environment on the node, as it is in the container, where there is no environment."""
    found: list[str] = []
    for word in argv:
        if word == f"{venv}/bin/python":
            found.append(container.python)
        elif word == f"{venv}/bin/gaudi3-train":
            found += [container.python, "-m", "gaudi3_scale"]
        elif word.startswith(f"{venv}/"):
            raise ValueError(f"{word} is not in the container: only python and gaudi3-train have a counterpart in it.")
        else:
            found.append(word)
    return found


def unit_lines(container: Container, share: Share, argv: Sequence[str], stop_timeout: int) -> list[str]:
    """Lines of a unit's section [Service] which take the place of those of a job without a container.

    The client is root's, the job is not: its user, capabilities and folders are the container's.
    """
    remove = f"-/usr/bin/{container.engine} rm --force {share.name}"
    lines = [
        "Type=exec",
        "WorkingDirectory=/",
        # Left over where the client was killed: the container is no child of the unit's.
        f"ExecStartPre={remove}",
        "ExecStart=" + " ".join(quoted(word) for word in engine_argv(container, share, argv)),
        f"ExecStopPost={remove}",
        "KillMode=mixed",
        f"TimeoutStopSec={stop_timeout}",
        "LimitMEMLOCK=infinity",
    ]
    for line in lines:
        if UNPRINTABLE.search(line) or line.endswith("\\"):
            raise ValueError(f"The unit {share.name} would have the line {line!r}: take out control characters.")
    return lines


def names_in(files: Iterable[str], *settings: Mapping[str, str]) -> tuple[str, ...]:
    """Names of variables that settings and the texts of environment files have."""
    found = {name for each in settings for name in each}
    for text in files:
        for line in text.splitlines():
            name = line.strip().partition("=")[0].rstrip()
            if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) and "=" in line:
                found.add(name)
    return tuple(sorted(found))


def quoted(word: str) -> str:
    """A word of a command in a unit, where % names a specifier and $ a variable."""
    text = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return f'"{text}"' if not word or any(char in word for char in " '\"\\;#") else text
