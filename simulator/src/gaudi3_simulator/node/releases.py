"""What each release contains: driver, NIC driver, firmware and tool versions, and the files its packages
install.

Versions in the table were seen in public transcripts (``simulator/printed.yml`` names them) or follow from one. What
was not seen is made up, the same each time, and ends in ``-sim``: nobody shall take it for a version of the vendor's.
"""

from __future__ import annotations

import zlib

MODULES = ("habanalabs", "habanalabs_cn", "habanalabs_en", "habanalabs_ib")
COMPAT = "habanalabs_compat"

# A public installer of Gaudi nodes unloads habanalabs_compat from 1.21 on (opea-project/Enterprise-Inference).
FIRST_WITH_COMPAT = (1, 21)
# Both drivers are of one build in every transcript from 1.22.0 on, and of two in every earlier one.
FIRST_OF_ONE_BUILD = (1, 22)
# Ends every version that no public source shows.
MADE_UP = "-sim"

# What the release reports and what of it can be unknown.
PARTS = ("driver", "nic_driver", "tool", "preboot")

# release: (build of the packages, hash of the driver, hash of the NIC driver, version of hl-smi, preboot of a Gaudi 3)
RELEASES: dict[str, tuple[str, str | None, str | None, str | None, str | None]] = {
    "1.15.1": ("15", "62f612b", None, "hl-1.15.1-fw-49.0.0.0", None),
    "1.16.0": ("526", None, None, None, None),
    "1.16.1": ("7", None, None, None, None),
    "1.16.2": ("2", None, None, None, None),
    "1.17.0": ("495", None, None, None, None),
    "1.17.1": ("40", "78932ae", None, "hl-1.17.1-fw-51.5.0", None),
    "1.18.0": ("524", "ee698fb", "95323a5", "hl-1.18.0-fw-53.1.1.1", None),
    "1.19.0": ("561", None, None, None, None),
    "1.19.1": ("26", "6f47ddd", "f071c23", None, None),
    "1.19.2": ("32", None, None, None, None),
    "1.20.0": ("543", "bd87f71", "e4fe12d", "hl-1.20.0-fw-58.1.1.1", "hl-gaudi3-1.20.0-fw-58.1.1-sec-2"),
    "1.20.1": ("97", "366eb9c", "213b09b", None, None),
    "1.21.0": ("555", None, None, "hl-1.21.0-fw-59.2.1.0", None),
    "1.21.1": ("16", "bfcec49", "ead2cb0", "hl-1.21.1-fw-59.2.3.0", None),
    "1.21.2": ("76", None, None, None, None),
    "1.21.3": ("57", None, None, None, None),
    "1.21.4": ("3", None, None, None, None),
    "1.21.5": ("6", None, None, None, None),
    "1.22.0": ("740", "5f8fa9f", None, None, "hl-gaudi3-1.22.0-fw-61.3.2-sec-9"),
    "1.22.1": ("6", "97ec1a4", None, "hl-1.22.1-fw-61.4.2.1", None),
    "1.22.2": ("32", None, None, None, None),
    "1.23.0": ("695", "2eae87a", None, "hl-1.23.0-fw-62.2.1.1", None),
    "1.24.0": ("1007", "bb94c81", None, "hl-1.24.0-fw-62.6.2.0", "hl-gaudi3-1.24.0-fw-62.6.1-sec-3"),
    # The tool of 1.24.1 calls itself 1.24.0: a tool may be older than the driver beside it.
    "1.24.1": ("482", "b336d5e", None, "hl-1.24.0-fw-62.6.2.0", None),
    "1.24.2": ("481", None, None, None, None),
}

# Preboot of a Gaudi 2, where a public report shows it.
PREBOOT_GAUDI2 = {
    "1.20.0": "hl-gaudi2-1.20.0-fw-58.0.0-sec-9",
    "1.24.0": "hl-gaudi2-1.24.0-fw-62.6.2-sec-11",
}

# When the tool and the firmware were built, where a transcript of a Gaudi 3 shows it. Any other date is that of 1970.
TOOL_BUILT = {"1.18.0": "Oct 09 2024 - 20:09:06"}
FIRMWARE_BUILT = {
    "hl-gaudi3-1.20.0-fw-58.1.1-sec-2": {"SPI": "Feb 13 2025 - 12:01:58", "OS": "Feb 13 2025 - 12:00:59"},
}
NEVER_BUILT = "Jan 01 1970 - 00:00:00"


class Release:
    """The versions that one release's packages carry."""

    __slots__ = ("build", "driver", "has_compat", "nic_driver", "preboot", "release", "tool")

    def __init__(self, release: str, build: str) -> None:
        self.release = release
        self.build = build
        _, driver, nic, tool, preboot = RELEASES.get(release, (None, None, None, None, None))
        key = version_key(release)
        self.driver = f"{release}-{driver or _made_up_hash('driver', release)}"
        self.nic_driver = (
            self.driver if key >= FIRST_OF_ONE_BUILD else f"{release}-{nic or _made_up_hash('nic', release)}"
        )
        firmware = _firmware(tool or preboot, release)
        self.tool = tool or f"hl-{release}-fw-{firmware}.0{MADE_UP}"
        self.preboot = preboot or f"hl-gaudi3-{release}-fw-{firmware}-sec-9{MADE_UP}"
        self.has_compat = key >= FIRST_WITH_COMPAT


def seen(release: str) -> set[str]:
    """Which of ``PARTS`` a public source shows for a release."""
    info = release_info(release)
    return {part for part in PARTS if not getattr(info, part).endswith(MADE_UP)}


def build_date(info: Release) -> str:
    """When the release's tools were built."""
    return TOOL_BUILT.get(info.release, NEVER_BUILT)


def firmware_date(firmware: str, part: str) -> str:
    """When a part (SPI, OS) of the firmware was built."""
    return FIRMWARE_BUILT.get(firmware, {}).get(part, NEVER_BUILT)


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


def preboot(release: str, generation: str) -> str:
    """Preboot firmware that the release has for a generation of cards."""
    info = release_info(release)
    if generation == "gaudi3":
        return info.preboot
    firmware = _firmware(info.tool, info.release)
    return PREBOOT_GAUDI2.get(info.release, f"hl-{generation}-{info.release}-fw-{firmware}-sec-9{MADE_UP}")


def firmware_text(release: str, generation: str = "gaudi3") -> str:
    """Text of ``/lib/firmware/habanalabs/gaudi3/gaudi3-boot-fit.itb``, and of its like."""
    return f"gaudi3-simulator firmware image (text, no machine code)\nversion: {preboot(release, generation)}\n"


def firmware_files(release: str) -> dict[str, str]:
    """Images of the firmware package, by path."""
    return {
        f"/lib/firmware/habanalabs/{generation}/{generation}-boot-fit.itb": firmware_text(release, generation)
        for generation in ("gaudi2", "gaudi3")
    }


def _made_up_hash(part: str, release: str) -> str:
    return f"{zlib.crc32(f'{part} {release}'.encode()) & 0xFFFFFFF:07x}{MADE_UP}"


def _firmware(known: str | None, release: str) -> str:
    """Three numbers of the firmware: those of what is known, else ones that no release of the vendor's begins with."""
    if known:
        return ".".join(known.partition("-fw-")[2].partition("-")[0].split(".")[:3])
    numbers = (*version_key(release), 0, 0, 0)
    return f"0.{numbers[1]}.{numbers[2]}"
