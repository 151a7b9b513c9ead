# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Whether the disks have room for what is to be written, asked before anything is."""

from __future__ import annotations

import os
from collections.abc import Iterable

from .._files import nearest_folder
from .._refusal import Refusal

_MIB = 1 << 20


def check_room(wanted: Iterable[tuple[str, int]]) -> None:
    """Refuse, by ``Refusal``, a disk with less room than all that comes onto it, given as paths and bytes."""
    paths: dict[int, str] = {}
    needed: dict[int, int] = {}
    for path, size in wanted:
        disk = os.stat(nearest_folder(path)).st_dev
        paths.setdefault(disk, path)
        needed[disk] = needed.get(disk, 0) + size
    for disk, path in paths.items():
        about = os.statvfs(nearest_folder(path))
        free = about.f_frsize * (about.f_bavail if os.geteuid() else about.f_bfree)
        if free < needed[disk]:
            raise Refusal(
                f"the disk of {path} has {free // _MIB} MiB free, and a restore needs {-(-needed[disk] // _MIB)} there "
                "for what is fetched and what is put in its place: make room, or give a working_folder on another disk"
            )
