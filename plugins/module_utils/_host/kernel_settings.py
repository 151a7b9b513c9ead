# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Kernel settings as files under /proc/sys and /sys: what is live, what is wanted, and what differs."""

from __future__ import annotations

import fnmatch
import os
import re
from dataclasses import dataclass, field
from typing import Any

from .._refusal import Refusal

HEADER = "# Written by Ansible (gaudi3.scale.kernel_settings): changes made here are lost.\n"
HUGEPAGES = "vm.nr_hugepages"
AUTO = "auto"
#: What a kernel parameter that is a number, or several, takes.
_NUMBERS = re.compile(r"[-+]?(0x[0-9a-f]+|[0-9]+)([\s,-]+(0x[0-9a-f]+|[0-9]+))*", re.IGNORECASE)
_IS_NUMBER = re.compile(r"-?[0-9]+(\s+-?[0-9]+)*")
#: Parameters that are text, though it may be of digits.
_TEXTS = ("kernel/hostname", "kernel/domainname", "kernel/core_pattern")
#: Governors of the kernel, which may be a module that is loaded when one is asked for.
GOVERNORS = ("conservative", "ondemand", "performance", "powersave", "schedutil", "userspace")
_MEMLOCK = re.compile(r"unlimited|infinity|-1|[0-9]+")
_CHOSEN = re.compile(r"\[([^\]]+)\]")


@dataclass(frozen=True)
class Setting:
    """One setting: its name, its value, and the live files which hold it (none: this kernel lacks it)."""

    name: str
    value: str
    files: tuple[str, ...]


@dataclass
class Outcome:
    """What was found, and done or predicted."""

    changes: list[dict[str, str]] = field(default_factory=list)
    absent: list[str] = field(default_factory=list)
    short: list[str] = field(default_factory=list)


def normal(value: str) -> str:
    """A value as it compares: blanks folded; of a list of choices (``always [madvise]``) the chosen one."""
    chosen = _CHOSEN.search(value)
    return chosen.group(1) if chosen else " ".join(value.split())


def vendor_hugepages(cpus: int, page_kib: int) -> int:
    """The number of huge pages that the vendor's installer reserves: 110 MB for each CPU, twice.

    As its public copies compute it, in pages of the kernel's default size (17601 of 2 MiB for 160 CPUs).
    """
    return 110 * 1024 * cpus * 2 // page_kib + 1


def resolved(root: str, sysctl: dict[str, str]) -> dict[str, str]:
    """The settings with a number of huge pages for ``auto``: the vendor's, or what is there where that is more."""
    value = str(sysctl.get(HUGEPAGES, "0")).strip()
    if value != AUTO:
        if not value.isdigit() and "\n" not in value:
            raise Refusal(
                f"{HUGEPAGES} cannot be {value!r}: give a number, or {AUTO} for that of the vendor's installer"
            )
        return sysctl
    page = re.search(r"^Hugepagesize:\s*(\d+) kB", _text(root, "proc/meminfo"), re.MULTILINE)
    wanted = vendor_hugepages(_online_cpus(root), int(page.group(1)) if page else 2048)
    live = _text(root, "proc/sys/vm/nr_hugepages").strip()
    return {**sysctl, HUGEPAGES: str(max(wanted, int(live) if live.isdigit() else 0))}


def _online_cpus(root: str) -> int:
    """The CPUs that are online, as the kernel lists them (``0-127,192-319``)."""
    ranges = [part.split("-") for part in _text(root, "sys/devices/system/cpu/online").strip().split(",") if part]
    return sum(int(part[-1]) - int(part[0]) + 1 for part in ranges) or os.cpu_count() or 1


def _text(root: str, path: str) -> str:
    try:
        with open(os.path.join(root, path), encoding="utf-8") as file:
            return file.read()
    except OSError:
        return ""


def sysctl_file(root: str, name: str) -> str:
    """The file of a sysctl. As in sysctl.conf, a name with a slash in it is a path already."""
    return os.path.join(root, "proc", "sys", *(name.split("/") if "/" in name else name.split(".")))


def matches(root: str, pattern: str) -> tuple[str, ...]:
    """The files a pattern names, with ``*`` within one folder's names. Never outside /sys."""
    parts = pattern.strip("/").split("/")
    if parts[0] != "sys" or ".." in parts:
        raise Refusal(f"sysfs path {pattern!r} is not below /sys: give a path such as /sys/kernel/mm/...")
    paths = [os.path.join(root, "sys")]
    for part in parts[1:]:
        if any(sign in part for sign in "*?["):
            paths = [
                os.path.join(path, name)
                for path in paths
                if os.path.isdir(path)
                for name in fnmatch.filter(sorted(os.listdir(path)), part)
            ]
        else:
            paths = [os.path.join(path, part) for path in paths]
    return tuple(path for path in paths if os.path.isfile(path))


def settings(root: str, sysctl: dict[str, str], sysfs: dict[str, str]) -> list[Setting]:
    """The wanted settings with the live files of this kernel."""
    wanted = []
    for name, value in sorted(sysctl.items()):
        if not re.fullmatch(r"[\w./:@*-]+", name) or "\n" in str(value) or ".." in name:
            raise Refusal(f"sysctl {name!r} cannot be set to {value!r}: a setting is one name and one line")
        path = sysctl_file(root, name)
        wanted.append(Setting(name, normal(str(value)), (path,) if os.path.isfile(path) else ()))
    for pattern, value in sorted(sysfs.items()):
        if re.search(r"\s", pattern) or "\n" in str(value):
            raise Refusal(f"sysfs file {pattern!r} cannot be set to {value!r}: both are one word or line")
        wanted.append(Setting(pattern, normal(str(value)), matches(root, pattern)))
    return wanted


def sysctl_text(sysctl: dict[str, str]) -> str | None:
    """The file for /etc/sysctl.d; None when there is nothing to set at boot."""
    if not sysctl:
        return None
    return HEADER + "".join(f"{name} = {normal(str(value))}\n" for name, value in sorted(sysctl.items()))


def tmpfiles_text(sysfs: dict[str, str]) -> str | None:
    """The file for /etc/tmpfiles.d, whose ``w`` lines skip what does not exist; None without settings."""
    if not sysfs:
        return None
    return HEADER + "".join(f"w {path} - - - - {value}\n" for path, value in sorted(sysfs.items()))


def limits_text(memlock: str) -> str:
    """The file for /etc/security/limits.d: the locked memory of login sessions. The star does not stand for root."""
    if not _MEMLOCK.fullmatch(memlock):
        raise Refusal(f"the locked memory of logins cannot be {memlock!r}: give unlimited, or a number of KiB")
    return HEADER + f"*    -  memlock  {memlock}\nroot -  memlock  {memlock}\n"


def apply(wanted: list[Setting], check_mode: bool) -> Outcome:
    """Bring the live values to the wanted ones, or tell what that would do."""
    outcome = Outcome()
    for setting in wanted:
        for path in setting.files:
            _check(path, setting)
    for setting in wanted:
        if not setting.files:
            outcome.absent.append(setting.name)
            continue
        live = {path: _read(path) for path in setting.files}
        different = [path for path, value in live.items() if value != setting.value]
        if not different:
            continue
        before = ", ".join(sorted({live[path] for path in different}))
        outcome.changes.append({"name": setting.name, "before": before, "after": setting.value})
        if check_mode:
            continue
        for path in different:
            _write(path, setting)
        after = sorted({_read(path) for path in different} - {setting.value})
        if after:
            outcome.short.append(f"{setting.name} is {', '.join(after)} after {setting.value} was written")
            outcome.changes[-1]["after"] = ", ".join(after)
            if outcome.changes[-1]["after"] == before:
                outcome.changes.pop()
    return outcome


def remarks(absent: list[str], lines: list[dict[str, Any]], reboots: bool) -> list[str]:
    """What a host does not have, each in a sentence: settings, and arguments on its kernel's command line.

    Of ``lines`` those count that have a reason; where ``reboots`` is true a reboot gives it what waits for one.
    """
    told = [f"This kernel does not offer {name}." for name in absent]
    for line in lines:
        if line["missing"] and line["reason"] and not (line["reboot_needed"] and reboots):
            follows = ": reboot to apply" if line["reboot_needed"] else f", {line['reason']}"
            told.append(f"The kernel was started without {' '.join(line['missing'])}{follows}.")
    return told


def _read(path: str) -> str:
    with open(path, encoding="utf-8", errors="replace") as file:
        return normal(file.read())


def _check(path: str, setting: Setting) -> None:
    """Refuse a value that the kernel would refuse, as far as its file tells; nothing was written by then."""
    with open(path, encoding="utf-8", errors="replace") as file:
        live = file.read()
    value, name = setting.value, os.path.basename(path)
    if normal(live) == value:
        return
    offered = live.replace("[", " ").replace("]", " ").split() if _CHOSEN.search(live) else []
    if name == "scaling_governor":
        beside = os.path.join(os.path.dirname(path), "scaling_available_governors")
        offered = sorted({*GOVERNORS, *_text("", beside).split()})
    # A scheduler of block devices may be a module that is loaded when it is asked for.
    if offered and value not in offered and name != "scheduler":
        raise Refusal(f"{setting.name} cannot be {value!r}: the kernel offers {', '.join(offered)}")
    below = path.partition("/proc/sys/")[2]
    if below and below not in _TEXTS and _IS_NUMBER.fullmatch(live.strip()) and not _NUMBERS.fullmatch(value):
        raise Refusal(
            f"{setting.name} cannot be {value!r}: the kernel has {' '.join(live.split())} there, so give a number"
        )
    if not os.access(path, os.W_OK):
        raise Refusal(
            f"{setting.name} cannot be set to {value!r}, as {path} cannot be written to: set it on the machine that "
            "this host runs on, or leave the setting out"
        )


def _write(path: str, setting: Setting) -> None:
    try:
        with open(path, "w", encoding="utf-8") as file:
            file.write(setting.value + "\n")
    except OSError as error:
        raise Refusal(
            f"the kernel refuses {setting.value!r} for {setting.name} ({error.strerror}): set a value it "
            "takes, or leave the setting out"
        ) from error
