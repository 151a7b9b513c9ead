"""What each release contains: driver, NIC driver, firmware and tool versions, and the files its packages
install.

Versions in the table were seen in public samples. A part that is ``None`` was not: it is filled in with a
simulator value of the right shape, always the same one for the same release.
"""

from __future__ import annotations

import zlib

MODULES = ("habanalabs", "habanalabs_cn", "habanalabs_en", "habanalabs_ib")
COMPAT = "habanalabs_compat"

# habanalabs_compat was seen from about 1.22 or 1.23 on: the exact first release is UNCONFIRMED.
FIRST_WITH_COMPAT = (1, 23, 0)

# release: (build, hash of the driver, hash of the NIC driver, firmware of the tool, "sec" of the preboot)
RELEASES: dict[str, tuple[str | None, str | None, str | None, str | None, int | None]] = {
    "1.16.0": ("526", None, None, None, None),
    "1.17.0": ("495", None, None, None, None),
    "1.17.1": ("40", None, None, None, None),
    "1.18.0": ("524", None, "95323a5", "53.1.1.1", None),
    "1.19.0": ("561", None, None, None, None),
    "1.19.1": ("26", None, None, None, None),
    "1.19.2": ("32", None, None, None, None),
    "1.20.0": ("543", None, None, "58.1.1.0", 2),
    "1.20.1": ("97", "366eb9c", "213b09b", None, None),
    "1.21.0": (None, None, None, "59.2.1.0", None),
    "1.22.0": ("740", None, None, "61.3.2.0", 9),
    "1.22.1": (None, "97ec1a4", None, None, None),
    "1.22.2": ("32", None, None, None, None),
    "1.23.0": ("695", "2eae87a", None, "62.2.1.1", 9),
    "1.24.0": ("1007", None, None, None, None),
    "1.24.1": ("482", None, None, None, None),
    "1.24.2": ("481", None, None, None, None),
}

# First number of the firmware version by minor release; 16, 17, 19 and 24 are simulator values.
_FIRMWARE_SERIES = {16: 50, 17: 51, 18: 53, 19: 56, 20: 58, 21: 59, 22: 61, 23: 62, 24: 64}


class Release:
    """The versions that one release's packages carry."""

    __slots__ = ("build", "driver", "firmware", "has_compat", "nic_driver", "preboot", "release", "tool")

    def __init__(self, release: str, build: str) -> None:
        self.release = release
        self.build = build
        _, driver, nic, firmware, sec = RELEASES.get(release, (None, None, None, None, None))
        self.driver = f"{release}-{driver or _made_up_hash('driver', release)}"
        self.nic_driver = f"{release}-{nic or _made_up_hash('nic', release)}"
        self.firmware = firmware or _made_up_firmware(release)
        self.tool = f"hl-{release}-fw-{self.firmware}"
        self.preboot = f"hl-gaudi3-{release}-fw-{self.firmware.rpartition('.')[0]}-sec-{sec or 9}"
        self.has_compat = version_key(release) >= FIRST_WITH_COMPAT


def version_key(release: str) -> tuple[int, ...]:
    """Sort key of ``x.y.z``; the build number takes no part, since builds do not grow across releases."""
    numbers = release.partition("-")[0].split(".")
    return tuple(int(number) if number.isdigit() else 0 for number in numbers)


def release_info(release: str) -> Release:
    """The versions of ``x.y.z-build`` or ``x.y.z``."""
    number, _, build = release.partition("-")
    known = RELEASES.get(number)
    return Release(number, build or (known[0] if known else None) or "0")


def previous(release: str) -> str:
    """The newest release of the table that is older than ``release`` (of the oldest one: itself)."""
    older = [name for name in RELEASES if version_key(name) < version_key(release)]
    return max(older, key=version_key) if older else release.partition("-")[0]


def module_names(release: str) -> tuple[str, ...]:
    """The kernel modules of a release, in the order in which they load."""
    return (COMPAT, *MODULES) if release_info(release).has_compat else MODULES


def module_text(name: str, release: str) -> str:
    """Text of ``/lib/modules/<kernel>/updates/dkms/<name>.ko``."""
    info = release_info(release)
    if name not in module_names(release):
        raise ValueError(f"{name} is not a module of release {release}: it has {', '.join(module_names(release))}")
    nic = name in ("habanalabs_cn", "habanalabs_en", "habanalabs_ib")
    return (
        "gaudi3-simulator kernel module (text, no machine code)\n"
        f"name: {name}\n"
        f"version: {info.nic_driver if nic else info.driver}\n"
        f"depends: {COMPAT if info.has_compat and name != COMPAT else ''}\n"
        f"description: Stands in for {name} of release {info.release}-{info.build} on a simulated node\n"
    )


def firmware_text(release: str) -> str:
    """Text of ``/lib/firmware/habanalabs/gaudi3/gaudi3-boot-fit.itb``."""
    return f"gaudi3-simulator firmware image (text, no machine code)\nversion: {release_info(release).preboot}\n"


def _made_up_hash(part: str, release: str) -> str:
    return f"{zlib.crc32(f'{part} {release}'.encode()) & 0xFFFFFFF:07x}"


def _made_up_firmware(release: str) -> str:
    numbers = (*version_key(release), 0, 0, 0)
    series = _FIRMWARE_SERIES.get(numbers[1], 40 + numbers[1])
    return f"{series}.{numbers[2] + 1}.1.0"
