# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""A training job in a container: the command of its engine, and what differs in the job's systemd unit.

The engine's client runs in the foreground under the unit, passes signals on and ends with the trainer's exit code, so
that notices, checkpoints and exit codes are those of a job without a container. Options: the vendor's page on its
docker images (``--cap-add=sys_nice --net=host --ipc=host``, and ``--runtime=habana`` with ``HABANA_VISIBLE_DEVICES``,
which give a container the cards). For podman the vendor documents nothing; it gets the device files themselves.
"""

from __future__ import annotations

import grp
import os
import pwd
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .._fabric.gaudinet import DEFAULT_PATH as GAUDINET
from .rules import UNPRINTABLE, check_path, one_line

ENGINES = ("podman", "docker")
#: Folders of device files, for an engine without the vendor's runtime: cards, and what collectives need of RDMA.
DEVICES = ("/dev/accel", "/dev/infiniband")
#: The vendor's runtime of docker, from package habanalabs-container-runtime.
RUNTIME = "habana"
#: A registry's host with its port, names and a tag, a digest, or both.
IMAGE = re.compile(
    r"[a-z0-9][a-z0-9._:-]*(/[a-z0-9][a-z0-9._-]*)*(:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(@sha256:[0-9a-f]{64})?"
)
#: Variables from the environment files of a job, beside its configuration: in plain lines, as engines read no quotes.
ENVIRONMENT = "container.env"
#: Folders that a folder of the node would hide in the image, and those below which all is the image's.
_WHOLE = ("/", "/opt", "/run", "/var", "/var/lib")
_IMAGES = (
    "/bin",
    "/boot",
    "/dev",
    "/etc",
    "/lib",
    "/lib64",
    "/opt/habanalabs",
    "/proc",
    "/root",
    "/sbin",
    "/sys",
    "/usr",
)


@dataclass(frozen=True)
class Container:
    """What jobs run in."""

    engine: str
    image: str
    #: Further folders of the node that the job sees under the same path, read-only: data sets, for instance.
    folders: tuple[str, ...] = ()
    #: Whether the job gets the cards.
    cards: bool = True

    def __post_init__(self) -> None:
        """Raise ValueError for what no engine would understand, or would understand otherwise."""
        check_engine(self.engine)
        check_image(self.image)
        for folder in self.folders:
            check_path("folders", folder)
            if ":" in folder or "," in folder:
                raise ValueError(f"The folder {folder} cannot be given to a container: rename it, without ':' and ','.")
            place = os.path.normpath(folder)
            if place in _WHOLE or any(os.path.commonpath([own, place]) == own for own in _IMAGES):
                raise ValueError(
                    f"The folder {folder} cannot be given to a container, as it would hide the image's own: put the "
                    "files into another folder, such as one below /srv."
                )

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> Container:
        """From the options of a module."""
        folders = tuple(dict.fromkeys(options.get("folders") or ()))
        return cls(options["engine"], options["image"], folders, bool(options.get("cards", True)))

    @property
    def program(self) -> str:
        """The engine's program."""
        return f"/usr/bin/{self.engine}"

    @property
    def reference(self) -> str:
        """The image as engines take it: not all of them take a tag together with a digest."""
        return reference(self.image)


def check_engine(engine: str) -> None:
    """Raise ValueError for an engine that is not known."""
    if engine not in ENGINES:
        raise ValueError(f"The container's engine is {engine!r}: give one of {', '.join(ENGINES)}.")


def check_image(image: str) -> None:
    """Raise ValueError for what is no name of an image."""
    if not IMAGE.fullmatch(image):
        raise ValueError(
            f"The container's image is {image!r}: write it as REGISTRY/NAME:TAG, in small letters but for the tag."
        )


def reference(image: str) -> str:
    """An image's name; without its tag where it has a digest, which says more."""
    name, _at, digest = image.partition("@")
    return f"{re.sub(r':[^:/]+$', '', name)}@{digest}" if digest else image


@dataclass(frozen=True)
class Share:
    """A node's share of a job, as the container sees it."""

    #: Name of the job's unit, without its ending. The container has it too.
    name: str
    #: Folder of the job, its own to write; that of root beside it; and that of the trainer's environment.
    directory: str
    control: str
    environment: str
    #: The job's user and group by their numbers, and groups that open the device files.
    user: str
    groups: tuple[str, ...] = ()
    #: Folder in which the job runs; empty for its own.
    workdir: str = ""
    #: Variables that the unit shows, and whether there are others in a file of root's.
    variables: Mapping[str, str] = field(default_factory=dict)
    has_file: bool = False
    #: Folders of device files that the node has, and files of its fabric.
    devices: tuple[str, ...] = DEVICES
    files: tuple[str, ...] = ()


def engine_argv(container: Container, share: Share, argv: Sequence[str], stop_timeout: int) -> list[str]:
    """The engine's command which runs a command in the container."""
    for path in (share.directory, share.control, share.environment):
        check_path("A folder of the job", path)
    options = ["--rm", f"--name={share.name}", "--init", "--network=host", "--ipc=host"]
    # The user is not root, and of root's capabilities gets the one which the vendor documents.
    options += ["--cap-drop=all", "--cap-add=SYS_NICE", "--security-opt=no-new-privileges"]
    options += ["--pull=never", "--log-driver=none", "--pids-limit=-1", f"--stop-timeout={stop_timeout}"]
    options += [f"--user={share.user}", *(f"--group-add={each}" for each in share.groups)]
    if container.engine == "docker":
        # Its containers are children of a daemon with limits of its own.
        options += ["--ulimit=memlock=-1:-1", "--ulimit=nofile=65536:65536"]
        options += [f"--runtime={RUNTIME}", "--env=HABANA_VISIBLE_DEVICES=all"] if container.cards else []
    else:
        # Limits are the unit's. Labels of SELinux would keep the job from its own folder.
        options += ["--replace", "--ulimit=host", "--security-opt=label=disable"]
        options += [f"--device={each}" for each in share.devices] if container.cards else []
    options += [f"--volume={share.directory}:{share.directory}", f"--workdir={share.workdir or share.directory}"]
    # The vendor's runtime brings the fabric's file by itself.
    files = share.files if container.engine == "podman" else ()
    read_only = dict.fromkeys((share.control, share.environment, *files, *container.folders))
    options += [f"--volume={path}:{path}:ro" for path in read_only]
    options += [f"--env-file={share.control}/{ENVIRONMENT}"] if share.has_file else []
    # The client's own, by which it is known in which run of the unit a status was written.
    options += ["--env=INVOCATION_ID"]
    options += [f"--env={name}={value}" for name, value in sorted(share.variables.items())]
    return [container.program, "run", *options, "--entrypoint=", container.reference, *argv]


def unit_lines(container: Container, share: Share, argv: Sequence[str], stop_timeout: int) -> list[str]:
    """Lines of a unit's section [Service] which take the place of those of a job without a container.

    The client is root's, the job is not: its user, capabilities and folders are the container's.
    """
    podman = container.engine == "podman"
    remove = f"-{container.program} rm --force {'--ignore ' if podman else ''}{share.name}"
    lines = [
        "Type=exec",
        "WorkingDirectory=/",
        f"ExecStartPre={remove}",
        "ExecStart=" + " ".join(quoted(word) for word in engine_argv(container, share, argv, stop_timeout)),
        # Left over where the client was killed: the container is no child of the unit's. It had its time.
        *([f"ExecStopPost=-{container.program} stop --ignore --time=0 {share.name}"] if podman else []),
        f"ExecStopPost={remove}",
    ]
    for line in lines:
        if UNPRINTABLE.search(line) or line.endswith("\\"):
            raise ValueError(f"The unit {share.name} would have the line {line!r}: take out control characters.")
    return lines


def variables_of(text: str) -> dict[str, str]:
    """Variables of a file as systemd reads it (systemd.exec, EnvironmentFile=): quotes go, comments are skipped."""
    found: dict[str, str] = {}
    for line in text.replace("\\\n", "").splitlines():
        name, equals, rest = line.strip().partition("=")
        if equals and re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name.rstrip()):
            found[name.rstrip()] = _unquoted(rest.strip())
    return found


def _unquoted(text: str) -> str:
    made, quote, escaped = "", "", False
    for char in text:
        if escaped:
            made, escaped = made + ("\\" + char if quote == '"' and char not in '"\\`$' else char), False
        elif char == "\\" and quote != "'":
            escaped = True
        elif char in "'\"" and quote in ("", char):
            quote = "" if quote else char
        else:
            made += char
    return made


def file_text(variables: Mapping[str, str]) -> str:
    """Variables in a file as engines read it: to the end of the line, with whatever stands there."""
    for name, value in variables.items():
        if not one_line(value):
            raise ValueError(f"The variable {name} of environment_files has control characters: take them out.")
    return "".join(f"{name}={value}\n" for name, value in sorted(variables.items()))


def user_numbers(user: str) -> str:
    """Numbers of a user and its group, which the image does not know; the name while the node does not have it."""
    try:
        entry = pwd.getpwnam(user)
    except KeyError:
        return user
    return f"{entry.pw_uid}:{entry.pw_gid}"


def group_numbers(groups: Iterable[str]) -> tuple[str, ...]:
    """Numbers of groups; the name of one that the node does not have."""
    found = []
    for name in groups:
        try:
            found.append(name if name.isdecimal() else str(grp.getgrnam(name).gr_gid))
        except KeyError:
            found.append(name)
    return tuple(found)


def node_devices() -> tuple[str, ...]:
    """Folders of device files of this node; all before the driver is loaded."""
    return tuple(each for each in DEVICES if os.path.isdir(each)) if os.path.isdir(DEVICES[0]) else DEVICES


def node_files() -> tuple[str, ...]:
    """The fabric's file that the collective library reads; the vendor's runtime of docker brings it by itself."""
    return (GAUDINET,) if os.path.isfile(GAUDINET) else ()


def quoted(word: str) -> str:
    """A word of a command in a unit, where % names a specifier and $ a variable."""
    text = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$").replace("\t", "\\t")
    return f'"{text}"' if not word or any(char in word for char in " \t'\"\\;#") else text
