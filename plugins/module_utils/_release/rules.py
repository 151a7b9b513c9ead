# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Whether the versions of a node go together: which pairs do not, by which rule and source, and what to change.

Of two parts that disagree, the culprit is the one that stands against most others; with as many on each side, the one
that is changed most easily. What is to be kept is never the culprit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Optional

from .._printable import few
from .compat import FORBIDDEN, Matrix, Verdict
from .matrix import SOURCES, UNCONFIRMED
from .node import Node, firmware_release, image_torch, matches, numbers, said_system
from .versions import version_of

#: Parts that say of which release they are, from what is changed with most effort to what is changed most easily.
EFFORT = ("packages", "driver", "plugin", "vllm", "image")
_PARTS = {
    "packages": "Packages",
    "driver": "The loaded driver",
    "plugin": "PyTorch's plugin",
    "vllm": "A vLLM",
    "image": "A container image",
}


@dataclass(frozen=True)
class Finding:
    """Two versions that do not go together, or of which nothing says that they do."""

    rule: str
    level: str
    """forbidden or unconfirmed."""
    pair: tuple[str, str]
    """The two parts, such as ``driver 1.16.1`` and ``plugin 1.16.0``."""
    culprit: str
    """The part to change: a field of Node, or ``release``."""
    sentence: str
    source: str
    cure: str

    def as_facts(self) -> dict[str, Any]:
        """For a program."""
        return {
            "rule": self.rule,
            "level": self.level,
            "pair": list(self.pair),
            "culprit": self.culprit,
            "sentence": self.sentence,
            "source": self.source,
            "cure": self.cure,
        }


def anchor(node: Node, keep: Sequence[str] = ()) -> str:
    """The ``x.y.z`` that a node's other parts have to have: of what is kept, else of most parts; empty without any."""
    claims = node.claims()
    kept = [claims[name] for name in keep if name in claims]
    if kept:
        return kept[0]
    votes = list(claims.values())
    # Packages that are installed say what the driver will be, but what runs is the driver.
    order = [claims[name] for name in ("driver", *EFFORT) if name in claims]
    return max(order, key=votes.count, default="")


def check(node: Node, matrix: Optional[Matrix] = None, keep: Sequence[str] = ()) -> list[Finding]:
    """All that does not go together, what is forbidden first, in the order in which it is to be put right."""
    table = matrix or Matrix()
    release = table.release_of(anchor(node, keep)) or anchor(node, keep)
    found = [each for rule in RULES for each in rule(node, table, release, keep)]
    return [each for each in found if each.level == FORBIDDEN] + [each for each in found if each.level != FORBIDDEN]


def consistent(findings: Sequence[Finding]) -> bool:
    """Whether nothing is forbidden."""
    return all(each.level != FORBIDDEN for each in findings)


def culprit(findings: Sequence[Finding]) -> str:
    """What is to be changed first; empty where nothing has to be."""
    return next((each.culprit for each in findings if each.level == FORBIDDEN), "")


def _of(verdict: Verdict, rule: str, pair: tuple[str, str], culprit: str, cure: str) -> Iterator[Finding]:
    if verdict.why and verdict.level in (FORBIDDEN, UNCONFIRMED):
        sentence, forbidden = f"{verdict.why[0].upper()}{verdict.why[1:]}.", verdict.level == FORBIDDEN
        yield Finding(rule, verdict.level, pair, culprit, sentence, verdict.source or UNCONFIRMED, cure * forbidden)


def _cards(node: Node, table: Matrix, release: str, _keep: Sequence[str]) -> Iterator[Finding]:
    if node.generation and release in table.releases:
        pair = (f"generation {node.generation}", f"release {release}")
        older = [each for each in table.releases if table.generation(each, node.generation).level != FORBIDDEN]
        cure = f"go back to {older[-1]}" if older else "take other cards"
        yield from _of(table.generation(release, node.generation), "generation-release", pair, "release", cure)


def _system(node: Node, table: Matrix, release: str, keep: Sequence[str]) -> Iterator[Finding]:
    if node.system and release in table.releases:
        pair = (f"system {said_system(node.system)}", f"release {release}")
        blamed = "system" if "release" in keep else "release"
        names = [said_system(each.value) for each in table.values(release, "system")]
        cure = f"take a release for {said_system(node.system)}, or {few(names)} for {release}"
        yield from _of(table.goes(release, "system", node.system), "system-release", pair, blamed, cure)


def _kernel(node: Node, table: Matrix, _release: str, _keep: Sequence[str]) -> Iterator[Finding]:
    for name, kernel in (("kernel", node.kernel), ("next_kernel", node.next_kernel)):
        if node.system and kernel:
            verdict = table.kernel(node.system, kernel)
            pair = (f"{name.replace('_', ' ')} {kernel}", f"system {said_system(node.system)}")
            if verdict.level == FORBIDDEN:
                yield from _of(verdict, f"{name.replace('_', '-')}-system", pair, name, "boot a kernel that it names")


def _built(node: Node, _table: Matrix, _release: str, _keep: Sequence[str]) -> Iterator[Finding]:
    if node.built_for is None or not (node.driver or node.packages):
        return
    for name, kernel in (("kernel", node.kernel), ("next_kernel", node.next_kernel)):
        if kernel and kernel not in node.built_for:
            brings = " and comes with the next boot" if name == "next_kernel" else " and runs"
            yield Finding(
                f"{name.replace('_', '-')}-driver",
                FORBIDDEN,
                (f"{name.replace('_', ' ')} {kernel}", f"driver for {few(node.built_for) or 'no kernel'}"),
                name,
                f"Kernel {kernel} has no Gaudi driver{brings}.",
                SOURCES["kernel-update"],
                "install the headers of that kernel and let DKMS build the driver, or boot one that has it",
            )


def _iommu(node: Node, _table: Matrix, _release: str, _keep: Sequence[str]) -> Iterator[Finding]:
    if node.iommu and node.iommu != "identity":
        yield Finding(
            "iommu-driver",
            FORBIDDEN,
            (f"iommu {node.iommu}", f"kernel {node.kernel or 'of the node'}"),
            "iommu",
            f"The IOMMU translates the cards' addresses ({node.iommu}), which makes results wrong or stops the kernel.",
            SOURCES["iommu"],
            "boot with intel_iommu=on iommu=pt",
        )


def _preboot(node: Node, table: Matrix, release: str, _keep: Sequence[str]) -> Iterator[Finding]:
    preboot = firmware_release(node.preboot)
    booted = firmware_release(node.boot_image) or version_of(release) or ""
    if preboot and booted:
        verdict = table.preboot(node.generation, preboot, booted)
        if verdict.level == FORBIDDEN:
            pair = (f"preboot {preboot}", f"boot image {booted}")
            yield from _of(verdict, "preboot-release", pair, "preboot", "flash the preboot firmware of the release")


def _one_version(node: Node, _table: Matrix, release: str, _keep: Sequence[str]) -> Iterator[Finding]:
    wanted = node.package_release()
    odd = sorted(name for name, version in node.packages.items() if version_of(version) != wanted)
    if odd:
        first = odd[0]
        said = ", ".join(f"{name} {node.packages[name]}" for name in odd[:6])
        yield Finding(
            "one-version",
            FORBIDDEN,
            (f"{first} {node.packages[first]}", f"packages {wanted}"),
            "packages",
            f"The vendor's packages are of one release, and {said} is not of {wanted}.",
            SOURCES["one-version"],
            f"bring the whole set to {release or wanted}",
        )


def _releases(node: Node, _table: Matrix, _release: str, keep: Sequence[str]) -> Iterator[Finding]:
    claims, wanted = node.claims(), anchor(node, keep)
    base = "driver" if "driver" in claims else next((name for name in EFFORT if name in claims), "")
    against = next((name for name in claims if name not in (base,) and claims[name] == wanted), base)
    for name in (each for each in claims if claims[each] != wanted):
        other = base if claims[base] == wanted else against
        source = "image-and-driver" if "image" in (name, other) else "one-version"
        cure = {
            "driver": f"load the driver of {wanted}" if claims.get("packages") == wanted else f"install {wanted}",
            "packages": f"bring the whole set to {wanted}",
            "plugin": f"install the PyTorch of {wanted}",
            "image": f"take an image of {wanted}",
            "vllm": f"take a vLLM for {wanted}",
        }[name]
        sentence = (
            f"{_PARTS[name]} of {claims[name]} and {_PARTS[other].lower()} of {wanted} do not go together: both have "
            "to be of one release."
        )
        pair = (f"{name} {claims[name]}", f"{other} {wanted}")
        yield Finding(f"{name}-{other}", FORBIDDEN, pair, name, sentence, SOURCES[source], cure)


def _torch(node: Node, table: Matrix, _release: str, keep: Sequence[str]) -> Iterator[Finding]:
    local = node.torch.partition("+")[2]
    if local.startswith(("cpu", "cu", "rocm")):
        yield Finding(
            "torch-vendor",
            FORBIDDEN,
            (f"torch {node.torch}", f"plugin {node.plugin or 'of the vendor'}"),
            "torch",
            f"PyTorch {node.torch} is not the vendor's build, which another package has replaced.",
            SOURCES["other-torch"],
            "install the vendor's PyTorch last",
        )
        return
    of = table.release_of(node.plugin) or table.release_of(anchor(node, keep))
    if node.torch and of:
        plain = ".".join(map(str, numbers(node.torch)[:3]))
        verdict = table.goes(of, "torch", plain)
        pair = (f"torch {node.torch}", f"release {of}")
        yield from _of(verdict, "torch-release", pair, "torch", f"install the PyTorch of {of}")


def _image(node: Node, table: Matrix, _release: str, _keep: Sequence[str]) -> Iterator[Finding]:
    torch, of = image_torch(node.image), table.release_of(node.claims().get("image", ""))
    if torch and of:
        known = [each.value for each in table.values(of, "torch")]
        verdict = table.goes(of, "torch", torch)
        pair = (f"image with torch {torch}", f"release {of}")
        cure = f"take pytorch-installer-{known[0]}" if known else "look the image's name up"
        if verdict.level == FORBIDDEN:
            yield from _of(verdict, "image-torch", pair, "image", cure)


def _vllm(node: Node, table: Matrix, release: str, keep: Sequence[str]) -> Iterator[Finding]:
    if node.vllm and "vllm" not in node.claims() and release in table.releases:
        pair = (f"vllm {node.vllm}", f"release {release}")
        names = [each.value for each in table.values(release, "vllm")]
        blamed = "release" if "vllm" in keep else "vllm"
        cure = f"take vLLM {few(names)}" if names else "take a release that the plugin is for"
        yield from _of(table.goes(release, "vllm", node.vllm), "vllm-release", pair, blamed, cure)


def _python(node: Node, table: Matrix, release: str, _keep: Sequence[str]) -> Iterator[Finding]:
    known, source = table.pythons(release, node.system)
    if node.python and known and not any(matches(each, node.python) for each in known):
        names = " or ".join(known)
        yield Finding(
            "python-system",
            FORBIDDEN,
            (f"python {node.python}", f"system {said_system(node.system)}"),
            "python",
            f"The vendor's PyTorch for {said_system(node.system)} is for Python {names}, not for {node.python}.",
            SOURCES["dockerfiles"] if source == UNCONFIRMED else source,
            f"take Python {names}",
        )


def _unknown(node: Node, table: Matrix, _release: str, _keep: Sequence[str]) -> Iterator[Finding]:
    """Parts of which nothing can be said, so that nobody takes it for a yes."""
    said = {"driver": node.driver, "packages": next(iter(sorted(node.packages.values())), ""), "plugin": node.plugin}
    claims = node.claims()
    for name, text in said.items():
        if text and not table.release_of(claims.get(name, "")):
            known = name in claims
            why = f"of {claims[name]}, which is in no matrix" if known else f"of {text}, which names no release"
            sentence = f"{_PARTS[name]} {why}: nothing is known of what goes with it."
            yield Finding("known-release", UNCONFIRMED, (f"{name} {text}", "matrix"), name, sentence, UNCONFIRMED, "")


def _tool(node: Node, _table: Matrix, _release: str, _keep: Sequence[str]) -> Iterator[Finding]:
    tool, driver = firmware_release(node.tool), version_of(node.driver) or ""
    if tool and driver and tool != driver:
        yield Finding(
            "tool-driver",
            UNCONFIRMED,
            (f"hl-smi {tool}", f"driver {driver}"),
            "tool",
            f"hl-smi is of {tool} and the driver of {driver}, which a public sample shows at work.",
            SOURCES["tool-and-driver"],
            "bring the whole set to one release",
        )


#: In the order in which what they find is put right.
RULES: tuple[Callable[[Node, Matrix, str, Sequence[str]], Iterator[Finding]], ...] = (
    _cards,
    _system,
    _kernel,
    _built,
    _iommu,
    _preboot,
    _one_version,
    _releases,
    _torch,
    _image,
    _vllm,
    _python,
    _unknown,
    _tool,
)
