# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""The newest kernel that the repositories of a dnf node have, as dnf's own cache knows it. Locks hide nothing of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from functools import cmp_to_key

from .._rpm_versions import compare_rpm

#: Runs a program: argv to exit status, output, errors.
Run = Callable[[Sequence[str]], "tuple[int, str, str]"]

#: For rpm: a package and the kernel that it is of.
QUERY = "%{NAME}\\t%{VERSION}-%{RELEASE}.%{ARCH}\\n"
#: The package that has the kernel itself.
CORE = "kernel-core"
_KERNEL = re.compile(r"[0-9][0-9A-Za-z.~^_+]*-[0-9A-Za-z.~^_+]+[.][a-z0-9_]+")


def read_installed(output: str, names: Collection[str]) -> dict[str, list[str]]:
    """Kernels by package, from rpm's lines in the form of QUERY; of no other packages than ``names``."""
    found: dict[str, list[str]] = {}
    for line in output.splitlines():
        name, tab, kernel = line.partition("\t")
        if tab and name in names:
            found.setdefault(name, []).append(kernel)
    return found


def offered(run: Run, dnf: str, installed: Collection[str]) -> str:
    """The newest kernel that dnf 4 or dnf5 knows of, where it is newer than all that are installed; else empty.

    Nothing is fetched: a dnf without a cache knows of none.
    """
    asked = ["--quiet", "--cacheonly", "repoquery", "--available", "--latest-limit=1", "--queryformat"]
    code, output, _errors = run([dnf, *asked, "%{version}-%{release}.%{arch}\\n", CORE])
    kernels = [line for line in output.splitlines() if _KERNEL.fullmatch(line)] if code == 0 else []
    newest = max(kernels, key=cmp_to_key(compare_rpm), default="")
    return newest if newest and all(compare_rpm(newest, each) > 0 for each in installed) else ""
