# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""The versions of this node, from its files and its package database; nothing is loaded, imported or changed."""

from __future__ import annotations

import glob
import os
import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .._apt import dpkg
from .._apt.packages import FAMILY
from .._cards import accel, pci
from .._cards.iommu import IDENTITY, translated
from .._release.node import Node, firmware_release, numbers, system_name
from .kernel_modules import kernels_with_driver, next_kernel

#: Runs a program: argv to exit status, output, errors.
Run = Callable[[list[str]], tuple[int, str, str]]

_PACKAGES = {"torch": "torch", "habana_torch_plugin": "plugin"}
_ABOUT = re.compile(r"([A-Za-z0-9_.]+)-([^-/]+?)(?:\.dist-info|(?:-py3\.\d+)?\.egg-info)")
_PYTHON = re.compile(r"python(3\.\d+)")


@dataclass(frozen=True)
class Places:
    """Where a node shows itself."""

    sysfs: str = "/sys"
    modules: str = "/lib/modules"
    boot: str = "/boot"
    os_release: str = "/etc/os-release"


def look(run: Run, kernel: str, pythons: Sequence[str], places: Places, image: str = "", vllm: str = "") -> Node:
    """All that can be read, while ``kernel`` runs.

    ``pythons`` are interpreters of environments that may have PyTorch; the first that has it counts. What the node does
    not show, a container's image or the vLLM in it, is ``image`` and ``vllm``.
    """
    cards = pci.cards(places.sysfs)
    bad = translated(cards)
    preboots = [device.preboot or "" for device in accel.devices(places.sysfs)]
    packages = _packages(run)
    driver = pci.driver_version(places.sysfs) or ""
    coming = next_kernel(kernel, places.boot) or ""
    return Node.of(
        {
            "system": system_of(places.os_release),
            "kernel": kernel,
            "next_kernel": coming,
            # A node that has no driver at all is one before its installation, which no kernel can be wrong for.
            "built_for": kernels_with_driver(places.modules) if packages or driver else None,
            "generation": pci.generation_of(cards) or "",
            "driver": driver,
            "packages": packages,
            **_environment(pythons),
            "image": image,
            "vllm": vllm,
            "preboot": max(preboots, key=lambda each: numbers(firmware_release(each)), default=""),
            "iommu": (bad[0].iommu or "") if bad else IDENTITY * any(card.iommu for card in cards),
        }
    )


def system_of(path: str) -> str:
    """``Ubuntu 24.04`` of /etc/os-release; empty without one."""
    try:
        with open(path, encoding="utf-8", errors="replace") as stream:
            lines = stream.read().splitlines()
    except OSError:
        return ""
    found = {}
    for line in lines:
        name, equals, value = line.partition("=")
        if equals:
            try:
                found[name] = "".join(shlex.split(value))
            except ValueError:
                continue
    names = {"ubuntu": "Ubuntu", "rhel": "RedHat"}
    which = found.get("ID", "")
    return system_name(f"{names.get(which, which.capitalize())} {found.get('VERSION_ID', '')}".strip())


def firmware(places: Places) -> dict[str, str]:
    """Preboot firmware by the card's PCI address, of those that the driver shows."""
    every = accel.devices(places.sysfs)
    return {each.bus_id: each.preboot for each in every if each.bus_id and each.preboot}


def held(run: Run) -> list[str]:
    """The vendor's packages that dpkg holds back."""
    return sorted(name for name, each in _dpkg(run).items() if each.held)


def _dpkg(run: Run) -> dict[str, dpkg.Installed]:
    code, output, _errors = run(dpkg.query("dpkg-query", [FAMILY]))
    return dpkg.read(output) if code in (0, 1) else {}


def _packages(run: Run) -> dict[str, str]:
    """The vendor's packages of dpkg, else those of rpm."""
    found = {name: each.version for name, each in _dpkg(run).items()}
    if found:
        return found
    code, output, _errors = run(["rpm", "-qa", "--queryformat", "%{NAME}\\t%{VERSION}-%{RELEASE}\\n", "habanalabs*"])
    lines = [line.split("\t") for line in output.splitlines()] if code == 0 else []
    return {line[0]: line[1] for line in lines if len(line) == 2}


def _environment(pythons: Sequence[str]) -> dict[str, str]:
    """PyTorch and the vendor's plugin of the first environment that has one of them, and its Python."""
    for python in pythons:
        root = os.path.dirname(os.path.dirname(python))
        for folder in sorted(glob.glob(os.path.join(glob.escape(root), "lib*", "python3*", "*-packages"))):
            found = {}
            for name in pci.listing(folder):
                about = _ABOUT.fullmatch(name)
                if about and about[1].lower() in _PACKAGES:
                    found[_PACKAGES[about[1].lower()]] = about[2]
            of = _PYTHON.search(folder)
            if found:
                return {**found, **({"python": of[1]} if of else {})}
    return {}
