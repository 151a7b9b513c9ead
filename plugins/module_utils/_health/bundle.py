# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""What the vendor's support asks for, in one archive: outputs of tools, files, logs. Scrubbed, and bounded in size."""

from __future__ import annotations

import gzip
import io
import os
import tarfile
from collections.abc import Callable, Iterable, Iterator, Mapping

from .._cards import pci
from .._hl_smi.command import HlSmiHung
from .scrub import scrub

Run = Callable[[list[str]], "tuple[int, str, str]"]

#: Of each text the last so many bytes are kept, and of all texts together so many.
PART_BYTES = 2 << 20
TOTAL_BYTES = 18 << 20

_COMMANDS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("kernel-log.txt", ("dmesg",)),
    ("kernel-journal.txt", ("journalctl", "-k", "--no-pager", "-n", "20000")),
    ("lspci.txt", ("lspci", "-vvv")),
    ("lspci-tree.txt", ("lspci", "-tv")),
    ("modules.txt", ("lsmod",)),
    ("driver.txt", ("modinfo", "habanalabs")),
    ("packages-deb.txt", ("dpkg-query", "-W", "habana*")),
    ("packages-rpm.txt", ("rpm", "-qa", "habana*")),
    ("processes.txt", ("ps", "-eo", "pid,ppid,user,etime,rss,comm")),
    ("services.txt", ("systemctl", "list-units", "--no-pager", "--plain")),
    ("bmc-sensors.txt", ("ipmitool", "sdr")),
    ("bmc-events.txt", ("ipmitool", "sel", "elist")),
    ("bmc-fru.txt", ("ipmitool", "fru")),
)
_FILES = (
    "/etc/os-release",
    "/proc/version",
    "/proc/cmdline",
    "/proc/meminfo",
    "/etc/habanalabs/gaudinet.json",
    "/etc/gaudi3-scale/fabric.env",
)
_ATTRIBUTES = (
    "status", "device_type", "module_id", "pci_addr", "driver_ver", "fw_os_ver", "preboot_btl_ver", "cpld_ver",
    "hard_reset_cnt", "vrm_ver", "fuse_ver",
)  # fmt: skip
_LOGS = "/var/log/habana_logs"
_LOG_NAMES = (".log", ".txt")


def parts(run: Run, hl_smi: str, root: str = "", ports_script: str | None = None) -> Iterator[tuple[str, str]]:
    """Name and text of everything that the archive holds, not scrubbed yet."""
    yield "hl-smi.txt", _said(run, (hl_smi,))
    yield "hl-smi-log.txt", _said(run, (hl_smi, "-L"))
    for card in pci.cards(root + "/sys"):
        numbers = ",".join(str(port) for port in range(24))
        yield f"links-{card.bus_id}.txt", _said(run, (hl_smi, "-n", "link", "-i", card.bus_id, "-P", numbers))
        yield f"counters-{card.bus_id}.txt", _said(run, (hl_smi, "-n", "stats", "-i", card.bus_id, "-P", numbers))
    if ports_script:
        yield "ports.txt", _said(run, (ports_script, "--status"))
    for name, command in _COMMANDS:
        yield name, _said(run, command)
    for path in _FILES:
        text = _tail(root + path)
        if text is not None:
            yield "files" + path, text
    yield "accel.txt", _attributes(root)
    for path in _logs(root + _LOGS):
        yield "logs/" + os.path.relpath(path, root + _LOGS), _tail(path) or ""


def archive(texts: Iterable[tuple[str, str]], notes: Mapping[str, str], now: float) -> bytes:
    """The gzipped tar archive of the scrubbed texts. What no longer fits is named in ``left-out.txt``."""
    buffer = io.BytesIO()
    left, room = [], TOTAL_BYTES
    packed = gzip.GzipFile(fileobj=buffer, mode="wb", mtime=int(now))
    with packed, tarfile.open(fileobj=packed, mode="w") as tar:
        for name, text in [*notes.items(), *texts]:
            content = scrub(text).encode("utf-8", "replace")[-PART_BYTES:]
            if len(content) > room:
                left.append(name)
                continue
            room -= len(content)
            _add(tar, name, content, now)
        if left:
            _add(tar, "left-out.txt", ("\n".join(left) + "\n").encode(), now)
    return buffer.getvalue()


def _add(tar: tarfile.TarFile, name: str, content: bytes, now: float) -> None:
    entry = tarfile.TarInfo(f"gaudi-support/{name.lstrip('/')}")
    entry.size, entry.mtime, entry.mode = len(content), int(now), 0o600
    tar.addfile(entry, io.BytesIO(content))


def _said(run: Run, command: tuple[str, ...]) -> str:
    """What a tool printed, and how it ended where that was not well."""
    head = f"$ {' '.join(command)}\n"
    try:
        code, output, error = run(list(command))
    except (OSError, HlSmiHung) as caught:
        return f"{head}{caught}\n"
    return head + output + error + (f"exit code {code}\n" if code else "")


def _attributes(root: str) -> str:
    lines = []
    for name in pci.listing(root + "/sys/class/accel"):
        if name[5:].isdigit():
            for attribute in _ATTRIBUTES:
                value = pci.read(root + "/sys/class/accel", name, "device", attribute)
                if value is not None:
                    lines.append(f"{name} {attribute}: {value}")
    return "\n".join(lines) + "\n"


def _tail(path: str) -> str | None:
    """The last part of a file; None of a link or of what cannot be read."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    with os.fdopen(handle, "rb") as file:
        size = os.fstat(handle).st_size
        if size > PART_BYTES:
            file.seek(size - PART_BYTES)
            file.readline()  # half a line may hide what its secret is called
        return file.read(PART_BYTES).decode("utf-8", "replace")


def _logs(top: str) -> list[str]:
    """The vendor's logs, the newest first."""
    found = []
    for folder, _folders, names in os.walk(top):
        for name in names:
            path = os.path.join(folder, name)
            if name.endswith(_LOG_NAMES) and os.path.isfile(path) and not os.path.islink(path):
                found.append((os.stat(path).st_mtime, path))
    return [path for _time, path in sorted(found, reverse=True)]
