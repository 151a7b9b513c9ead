# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""The environment that the vendor's profile files give to a login shell, for units, which read no profile.

The files are shell scripts, whose names and contents differ between releases: they may test for folders and refer to
variables that are set already. So a shell runs them, with nothing but PATH and HOME beforehand, and what is set
afterwards is taken; reading the lines that look like assignments would give something else than users see in a shell.
Every login shell of root's runs these files, too, and files that others than root may change are refused.
"""

from __future__ import annotations

import os
import re
import stat
import subprocess
from collections.abc import Iterable, Mapping

from .._refusal import Refusal
from .spec import RUNTIME_ENVIRONMENT

#: The file that units read.
PATH = RUNTIME_ENVIRONMENT
#: Where the vendor's packages put their profile files, and what all known names have in common.
PROFILES = "/etc/profile.d"
NAME = re.compile(r"habana.*\.sh")
#: Without it every graph fails to compile.
KERNELS = "GC_KERNEL_PATH"

#: What every shell sets for itself; and the folder of logs, of which each unit has its own.
_LEFT_OUT = frozenset({"_", "HOME", "OLDPWD", "PWD", "SHLVL", "HABANA_LOGS"})
_CLEAN = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/"}
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
#: What systemd's files of environment variables cannot hold.
_CONTROL = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")
_SECONDS = 30
_ENV = "/usr/bin/env"
#: Between the profile's output and the variables, which the profile cannot have printed by accident.
_MARK = b"gaudi3-scale: environment\0"

HEADER = "# Written by Ansible (gaudi3.scale.gaudi_runtime_environment): changes made here are lost.\n"


def profile_files(folder: str = PROFILES) -> list[str]:
    """The vendor's profile files, in the order in which a login shell reads them."""
    try:
        names = os.listdir(folder)
    except OSError:
        return []
    return [os.path.join(folder, name) for name in sorted(names) if NAME.fullmatch(name)]


def read(files: Iterable[str]) -> dict[str, str]:
    """What these files set in a login shell."""
    files = list(files)
    if not files:
        return {}
    handles = [_opened(path) for path in files]
    try:
        return difference(_run(files, handles))
    finally:
        for handle in handles:
            os.close(handle)


def _opened(path: str) -> int:
    """The file, open and known to be root's, or of whoever runs this."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise Refusal(f"{path} cannot be read ({error.strerror}): install its package again") from error
    found = os.fstat(handle)
    if found.st_uid not in (0, os.geteuid()) or found.st_mode & 0o022 or not stat.S_ISREG(found.st_mode):
        os.close(handle)
        raise Refusal(
            f"{path} can be changed by others than root (owner {found.st_uid}, mode {stat.S_IMODE(found.st_mode):04o}) "
            "and login shells of root run it: make it root's with mode 0644, after a look at what it holds"
        )
    return handle


def _run(files: list[str], handles: list[int]) -> bytes:
    # The open files are run, not what has their names by then.
    sourced = "".join(f". /proc/self/fd/{handle}\n" for handle in handles)
    mark = _MARK.decode().replace("\0", "\\0")
    script = f"{{\n{sourced}}} >/dev/null 2>&1 </dev/null\nprintf '{mark}'\nexec {_ENV} -0\n"
    shell = "/bin/bash" if os.path.exists("/bin/bash") else "/bin/sh"
    try:
        done = subprocess.run(
            [shell, "-c", script], env=_CLEAN, pass_fds=handles, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, timeout=_SECONDS, check=False, cwd="/",
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Refusal(f"{_named(files)} cannot be run by {shell} ({error}): see that a login shell starts") from error
    if _MARK not in done.stdout:
        raise Refusal(
            f"{_named(files)} ends the shell that reads it (exit status {done.returncode}): see that a login shell "
            "starts"
        )
    return done.stdout.partition(_MARK)[2]


def _named(files: list[str]) -> str:
    return files[0] if len(files) == 1 else f"one of {', '.join(files)}"


def difference(printed: bytes) -> dict[str, str]:
    """What was set beside the shell's own, from the output of ``env -0``; what a unit could not have is left out."""
    found = {}
    for entry in printed.split(b"\0"):
        name, equals, value = entry.decode("utf-8", "surrogateescape").partition("=")
        usable = equals and _VARIABLE.fullmatch(name) and not _CONTROL.search(value)
        if usable and name not in _LEFT_OUT and _CLEAN.get(name) != value:
            found[name] = value
    return found


def complaint(environment: Mapping[str, str], files: Iterable[str], exists: bool = True) -> str:
    """Why jobs on cards cannot run in this environment, in one sentence; empty where they can."""
    kernels = environment.get(KERNELS)
    remedy = f"install the package habanalabs-graph, or set {KERNELS} in trainer_environment"
    if kernels is None:
        read_files = ", ".join(files) or f"{PROFILES}/habana*.sh, of which there is none,"
        return f"{KERNELS} is not set by {read_files} and without it no graph can be compiled: {remedy}."
    if not kernels or not exists:
        return f"{KERNELS} is {kernels!r}, which is no file, and no graph can be compiled: {remedy}."
    return ""


def file_text(environment: Mapping[str, str]) -> str:
    """The file for EnvironmentFile= of a unit, which a shell can read as well."""
    lines = []
    for name, value in sorted(environment.items()):
        quoted = '"' + re.sub(r'(["\\$`])', r"\\\1", value) + '"'
        lines.append(f"{name}={value if re.fullmatch(r'[A-Za-z0-9_.,:/=@+-]*', value) else quoted}\n")
    return HEADER + "".join(lines)
