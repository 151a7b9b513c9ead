# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""The versions of one node, as far as they are known, and how their parts are read.

What is empty is not known, and nothing is said of it. Everything here may come from a host or a file: it is data.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Optional

from .._printable import printable
from .._refusal import Refusal
from .versions import version_of

_TAGGED = re.compile(r"(\d+\.\d+\.\d+)-(\d+)")
_FOLDER = re.compile(r"/gaudi-docker/(\d+\.\d+\.\d+)/")
_TORCH_OF_IMAGE = re.compile(r"(?:pytorch-(?:upstream-)?installer|vllm-[\d.]+-ptupstream)-(\d+(?:\.\d+)*)")
_OF_FORK = re.compile(r"[+-]Gaudi-(\d+\.\d+\.\d+)", re.I)
_OF_FIRMWARE = re.compile(r"(?:hl-(?:gaudi\d?-)?)?(\d+\.\d+\.\d+)-fw-")
#: As matrices, /etc/os-release and /etc/redhat-release write it.
_SYSTEM = re.compile(
    r"(ubuntu|redhat|red hat(?: enterprise linux)?|rhel)[ -]?(?:release )?(\d+\.\d+)(?:\.\d+)?"
    r"(?: LTS)?(?: \([\w ]+\))?",
    re.I,
)
#: No version or name of a node is longer.
LONGEST = 300


@dataclass(frozen=True)
class Node:
    """What is installed and runs on a node. Empty means not known; an empty collection means none."""

    system: str = ""
    """``Ubuntu 22.04``, ``RedHat 9.4``."""
    kernel: str = ""
    """That runs."""
    next_kernel: str = ""
    """That the next boot brings, where it is another one."""
    built_for: Optional[tuple[str, ...]] = None
    """Kernels that the vendor's driver is installed for; None is not known."""
    generation: str = ""
    """gaudi, gaudi2 or gaudi3."""
    driver: str = ""
    """That is loaded, such as ``1.23.0-2eae87a``."""
    packages: Mapping[str, str] = field(default_factory=dict)
    """The vendor's packages with their versions."""
    plugin: str = ""
    """Of habana-torch-plugin, such as ``1.23.0.695``."""
    torch: str = ""
    python: str = ""
    image: str = ""
    """Of the container that computes."""
    vllm: str = ""
    preboot: str = ""
    """SPI firmware, as the card says it."""
    boot_image: str = ""
    """FIT firmware, as the card says it; the driver brings it."""
    tool: str = ""
    """hl-smi's own version."""
    iommu: str = ""
    """Type of the cards' IOMMU group; empty without one."""

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Node:
        """From a document of facts; ``Refusal`` in one sentence where that has something else."""
        known = {each.name for each in fields(cls)}
        odd = sorted(set(map(str, given)) - known)
        if odd:
            raise Refusal(
                f"{printable(odd[0], 60)} is no fact of a node's versions: give some of {', '.join(sorted(known))}."
            )
        values: dict[str, Any] = {}
        for name, value in given.items():
            if name == "packages":
                values[name] = _packages(value)
            elif name == "built_for":
                values[name] = _kernels(value)
            elif value is not None:
                values[name] = _text(name, value)
        if values.get("system"):
            values["system"] = system_name(values["system"])
        if values.get("generation"):
            values["generation"] = generation_name(values["generation"])
        return cls(**values)

    def as_facts(self) -> dict[str, Any]:
        """What ``of`` reads; without what is not known."""
        every = {each.name: getattr(self, each.name) for each in fields(self)}
        found = {name: value for name, value in every.items() if value or name == "built_for"}
        if self.built_for is None:
            found.pop("built_for")
        else:
            found["built_for"] = list(self.built_for)
        return {**found, **({"packages": dict(self.packages)} if self.packages else {})}

    def claims(self) -> dict[str, str]:
        """Of which ``x.y.z`` each part says it is; without those that are not there."""
        found = {
            "driver": version_of(self.driver) or "",
            "packages": self.package_release(),
            "plugin": version_of(self.plugin) or "",
            "image": version_of(image_release(self.image)) or "",
            "vllm": vllm_release(self.vllm),
        }
        return {name: value for name, value in found.items() if value}

    def package_release(self) -> str:
        """The ``x.y.z`` of the driver's package, or of what most of the vendor's packages have."""
        for name in ("habanalabs-dkms", "habanalabs"):
            if name in self.packages:
                return version_of(self.packages[name]) or ""
        every = [version_of(each) or "" for each in self.packages.values()]
        return max(sorted(set(every)), key=every.count, default="")


def _text(name: str, value: Any) -> str:
    if isinstance(value, float):  # of YAML and JSON, which have 2.10 as 2.1
        raise Refusal(f"{name} of the node's versions is the number {value!r}: put it in quotes, as '2.10' is another.")
    if isinstance(value, bool) or not isinstance(value, (str, int)) or len(str(value)) > LONGEST:
        raise Refusal(f"{name} of the node's versions is {printable(repr(value), 60)}: give a short text.")
    return printable(str(value).strip(), LONGEST)


def _packages(value: Any) -> dict[str, str]:
    if not isinstance(value, Mapping):
        raise Refusal(f"packages of the node's versions is {printable(repr(value), 60)}: give names with versions.")
    return {printable(name, 100): _text("packages", each) for name, each in value.items()}


def _kernels(value: Any) -> Optional[tuple[str, ...]]:
    if value is None:
        return None
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise Refusal(f"built_for of the node's versions is {printable(repr(value), 60)}: give a list of kernels.")
    return tuple(_text("built_for", each) for each in value)


def system_name(text: str) -> str:
    """A system by the matrix's name; what is unknown stays.

    ``RHEL 9.4``, ``rhel9.4`` and ``Red Hat Enterprise Linux 9.4 (Plow)`` are ``RedHat 9.4``.
    """
    match = _SYSTEM.fullmatch(" ".join(text.split()))
    if match is None:
        return text
    return f"{'Ubuntu' if match[1].lower() == 'ubuntu' else 'RedHat'} {match[2]}"


def generation_name(text: str) -> str:
    """A generation of cards by the matrix's name: ``Gaudi 3`` is ``gaudi3``; what is unknown stays another."""
    return text.lower().replace(" ", "")


def said_system(name: str) -> str:
    """A system as people name it."""
    return name.replace("RedHat", "RHEL")


def image_release(image: str) -> str:
    """The release that an image's name tells, ``x.y.z-build`` by its tag or ``x.y.z`` by its folder; empty without."""
    tag = image.partition("@")[0].rpartition("/")[2].partition(":")[2]
    named = _TAGGED.fullmatch(tag)
    folder = _FOLDER.search(image)
    return named.group() if named else folder[1] if folder else ""


def image_torch(image: str) -> str:
    """The PyTorch that an image's name tells; empty without one."""
    found = _TORCH_OF_IMAGE.search(image)
    return found[1] if found else ""


def vllm_release(version: str) -> str:
    """The release that a version of the vendor's fork of vLLM names, as ``0.6.6.post1+Gaudi-1.20.0`` does."""
    found = _OF_FORK.search(version)
    return found[1] if found else ""


def firmware_release(text: str) -> str:
    """``1.22.0`` of ``Preboot version hl-gaudi3-1.22.0-fw-61.3.2-sec-9``, or of itself; empty where there is none."""
    found = _OF_FIRMWARE.search(text)
    return found[1] if found else version_of(text) or ""


def numbers(version: str) -> tuple[int, ...]:
    """The leading numbers of a version, by which it is compared: ``6.8.0-51-generic`` is (6, 8, 0)."""
    match = re.match(r"\d+(?:\.\d+)*", version)
    return tuple(map(int, match.group().split("."))) if match else ()


def matches(wanted: str, version: str) -> bool:
    """Whether a version is the wanted one, of which the last numbers may be left out: 2.11 matches 2.11.0."""
    asked = numbers(wanted)
    return bool(asked) and numbers(version)[: len(asked)] == asked
