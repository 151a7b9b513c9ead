# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""The driver's kernel modules: which are there, and in which order they go and come.

The order depends on whether ``habanalabs_compat`` is among them: for unloading on what runs now, for loading
on what
is installed now. After a release change these are not the same.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

from .._cards.pci import listing
from .._release.versions import version_of

DRIVER = "habanalabs"
COMPAT = "habanalabs_compat"
#: habanalabs_ib needs its symbols and does not load it.
RDMA_CORE = "ib_uverbs"

_LOAD = ("habanalabs", "habanalabs_cn", "habanalabs_ib", "habanalabs_en")
_LOAD_COMPAT = (COMPAT, "habanalabs", "habanalabs_cn", "habanalabs_en", "habanalabs_ib")
_UNLOAD = _LOAD
_UNLOAD_COMPAT = tuple(reversed(_LOAD_COMPAT))

# Where DKMS and packages put modules. The kernel's own tree has another habanalabs, which is not the
# vendor's.
_FOLDERS = ("updates", "extra", "weak-updates")
_FILE = re.compile(r"(habanalabs(?:_[a-z]+)?)\.ko(?:\.(?:gz|xz|zst))?")


@dataclass(frozen=True)
class Plan:
    """Modules to take out, then modules to put in, each in order."""

    unload: list[str]
    load: list[str]

    @property
    def empty(self) -> bool:
        """Whether the right driver runs."""
        return not (self.unload or self.load)


def unload_order(running: list[str]) -> list[str]:
    """The running modules in the order in which they can go."""
    order = _UNLOAD_COMPAT if COMPAT in running else _UNLOAD
    # A module that later releases may add builds on the known ones.
    return [name for name in running if name not in order] + [name for name in order if name in running]


def load_order(installed: list[str]) -> list[str]:
    """The installed modules in the order in which they can come."""
    order = _LOAD_COMPAT if COMPAT in installed else _LOAD
    return [name for name in order if name in installed] + [name for name in installed if name not in order]


def make_plan(running: list[str], version: str | None, installed: list[str], release: str) -> Plan:
    """How to come from what runs, a driver of ``version``, to what is ``installed`` of ``release``."""
    if DRIVER in running and version_of(version) == version_of(release):
        return Plan([], [name for name in load_order(installed) if name not in running])
    # Where nothing is installed yet (check mode), the driver itself is what will at least be loaded.
    return Plan(unload_order(running), load_order(installed) or [DRIVER])


def installed_modules(kernel: str, root: str = "/lib/modules") -> list[str]:
    """The vendor's modules that are installed for ``kernel``; a file without content is none."""
    return sorted(name for name, size in _files(kernel, root).items() if size)


def empty_modules(kernel: str, root: str = "/lib/modules") -> list[str]:
    """The vendor's modules of which ``kernel`` has files without content, as DKMS can leave them."""
    return sorted(name for name, size in _files(kernel, root).items() if not size)


def _files(kernel: str, root: str) -> dict[str, int]:
    """Sizes of the vendor's modules; the largest file counts where there are several."""
    sizes: dict[str, int] = {}
    for folder in _FOLDERS:
        for path, _folders, files in os.walk(os.path.join(root, kernel, folder)):
            for match in filter(None, map(_FILE.fullmatch, files)):
                file = os.path.join(path, match.group())
                size = os.path.getsize(file) if os.path.exists(file) else 0  # of a link to nowhere there is nothing
                sizes[match.group(1)] = max(size, sizes.get(match.group(1), 0))
    return sizes


def kernels_with_driver(root: str = "/lib/modules") -> list[str]:
    """Kernels that the vendor's driver is installed for."""
    return [kernel for kernel in listing(root) if DRIVER in installed_modules(kernel, root)]


def next_kernel(running: str, boot: str = "/boot") -> str | None:
    """An installed kernel that is newer than the running one, so that a reboot would bring it, if any."""
    kernels = [name[len("vmlinuz-") :] for name in listing(boot) if name.startswith("vmlinuz-")]
    newer = [kernel for kernel in kernels if _numbers(kernel) > _numbers(running)]
    return max(newer, key=_numbers, default=None)


def _numbers(kernel: str) -> list[int]:
    return [int(part) for part in re.findall(r"\d+", kernel)]


def secure_boot(efivars: str = "/sys/firmware/efi/efivars") -> bool:
    """Whether Secure Boot is on. Its variable is 4 bytes of attributes and 1 of value."""
    try:
        with open(os.path.join(efivars, "SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"), "rb") as variable:
            return variable.read(5)[4:] == b"\x01"
    except OSError:
        return False
