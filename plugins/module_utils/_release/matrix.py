# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""What goes with which SynapseAI release, as data: each cell with its source, or ``unconfirmed``.

Releases are those of the package index's wheel habana-pyhlml, whose build is the release's, from 1.16 on, the first
with Gaudi 3. A system, card or vLLM that is in no cell of a release is not for it. What is here is nowhere else: the
preflight, the PyTorch installation, serving and the solver read this file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Optional

from .versions import Release

#: In the place of a source: nothing public says it, so it is neither promised nor denied.
UNCONFIRMED = "unconfirmed"

#: Where a cell is from, by the name that the cell has: title and date, or the address of a public thread.
SOURCES: Mapping[str, str] = {
    "page": "Support Matrix page of that release, docs.habana.ai",
    "quotation": "pages of 1.24.1 on docs.habana.ai, as quoted by bossdeep/gaudi2-practical-inference on 2026-09-25",
    "images-1.24": "names of images on docs.habana.ai, Running Workloads on Kubernetes, 1.24",
    "torch-1.19.0": "HabanaAI/vllm-fork#555, 2024-11-27",
    "torch-1.19.1": "environment of a node in HabanaAI/vllm-fork#776, 2025-02-04",
    "image-1.20.0": "name of an image in hiyouga/LlamaFactory#7275, 2025-04-28",
    "image-1.20.1": "name of an image in opea-project/GenAIComps#1477, 2025-03-28",
    "dockerfiles": "HabanaAI/Setup_and_Install 1.22.0, dockerfiles",
    "vllm": "vllm-project/vllm-gaudi at 091bbadda1, docs/getting_started/compatibility_matrix.md, 2026-08-21",
    "firmware-1.17": "opendatahub-io/notebooks#695, 2024-09-03, which copies the vendor's page of 1.17.1",
    "release-notes-1.23": "vendor's release notes of 1.23",
    "release-notes-1.24": "release notes of 1.24, as quoted by bossdeep/gaudi2-practical-inference on 2026-09-25",
    "first-generation": "HabanaAI/hccl_demo#44, 2025-01-20, and HabanaAI/vllm-fork#776, 2025-02-04",
    "one-version": "containers/ai-lab-recipes#587, 2024-06-20 (huggingface/optimum-habana#2231 ran a pair within 1.22)",
    "image-and-driver": "opea-project/GenAIExamples#366, 2024-07-04, and opea-project/GenAIComps#1038, 2025-01-15",
    "tool-and-driver": "a sample of IBM Cloud's VPC documentation, tool 1.21.0 with driver 1.20.1",
    "other-torch": "vllm-project/vllm-gaudi#330, 2025-10-07, and JChen-318/gaudi2-single-card-driver, 2026",
    "iommu": "richard-rhino/gaudi2-setup and JChen-318/gaudi2-single-card-driver, 2026",
    "kernel-update": "dell/omnia, known issues; dkms 2.8.4, 3.0.10 and 3.2.2 as run on 2026-11-27",
    "eager": "HabanaAI/Gaudi-tutorials#131, 2025-05-23, and #154, 2025-07-24",
    "distribution": "the distribution's own way of an upgrade",
}

_JAMMY = "Ubuntu 22.04"
_NOBLE = "Ubuntu 24.04"
_EL94 = "RedHat 9.4"
_EL96 = "RedHat 9.6"


@dataclass(frozen=True)
class Line:
    """Releases that share operating systems and PyTorch."""

    releases: tuple[str, ...]
    systems: tuple[str, ...]
    #: Null where no source says it.
    torch: str | None
    #: Releases of which the vendor's page was read.
    pages: tuple[str, ...] = ()
    #: Sources of the PyTorch of releases without a page.
    torch_sources: Mapping[str, str] = field(default_factory=dict)
    #: What the pages of this line were read in.
    page: str = "page"


LINES = (
    Line(("1.16.0-526", "1.16.1-7", "1.16.2-2"), (_JAMMY,), "2.2.2", ("1.16.0-526",)),
    Line(("1.17.0-495", "1.17.1-40"), (_JAMMY, _EL94), "2.3.1", ("1.17.0-495", "1.17.1-40")),
    Line(("1.18.0-524",), (_JAMMY, _NOBLE, _EL94), "2.4.0", ("1.18.0-524",)),
    Line(
        ("1.19.0-561", "1.19.1-26", "1.19.2-32"),
        (_JAMMY, _NOBLE, _EL94),
        "2.5.1",
        torch_sources={"1.19.0-561": "torch-1.19.0", "1.19.1-26": "torch-1.19.1"},
    ),
    Line(
        ("1.20.0-543", "1.20.1-97"),
        (_JAMMY, _NOBLE, _EL94),
        "2.6.0",
        torch_sources={"1.20.0-543": "image-1.20.0", "1.20.1-97": "image-1.20.1"},
    ),
    Line(
        ("1.21.0-555", "1.21.1-16", "1.21.2-76", "1.21.3-57", "1.21.4-3", "1.21.5-6"),
        (_JAMMY, _NOBLE, _EL94),
        "2.6.0",
        ("1.21.0-555",),
    ),
    Line(
        ("1.22.0-740", "1.22.1-6", "1.22.2-32"),
        (_JAMMY, _NOBLE, _EL94, _EL96),
        "2.7.1",
        ("1.22.0-740",),
        torch_sources={"1.22.2-32": "vllm"},
    ),
    Line(("1.23.0-695",), (_JAMMY, _NOBLE, _EL94, _EL96), "2.9.0", ("1.23.0-695",)),
    Line(("1.24.0-1007",), (_JAMMY, _NOBLE, _EL94, _EL96), "2.10.0", torch_sources={"1.24.0-1007": "images-1.24"}),
    Line(("1.24.1-482",), (_JAMMY, _NOBLE, _EL96), "2.11.0", ("1.24.1-482",), page="quotation"),
    Line(("1.24.2-481",), (_JAMMY, _NOBLE, _EL96), None),
)

#: Generations of cards, by the first release that does not list them.
LAST_OF_GENERATION = {"gaudi": Release(1, 22, 0, 0)}
GENERATIONS = ("gaudi", "gaudi2", "gaudi3")


@dataclass(frozen=True)
class Failing:
    """A generation whose cards could not be acquired any more, in public threads, from a release on."""

    generation: str
    since: Release
    source: str


FAILING = (Failing("gaudi", Release(1, 19, 1, 0), "first-generation"),)


def failing(generation: str) -> Optional[Failing]:
    """What is reported of a generation."""
    return next((each for each in FAILING if each.generation == generation), None)


@dataclass(frozen=True)
class Pairing:
    """One vLLM on one release of the vendor's software."""

    vllm: str
    release: str
    """Exactly this one, without its build: 1.24.0 and 1.24.1 share no plugin."""
    torch: str = ""
    """Of the image, where a tag names it."""
    drains: bool = True
    """Whether it has ``--shutdown-timeout``: vllm PR #36666 was merged in March 2026, so 0.19 and later."""


PAIRINGS = (
    Pairing("0.11.2", "1.22.2", "2.7.1", drains=False),
    Pairing("0.11.2", "1.23.0", drains=False),
    Pairing("0.13.0", "1.23.0", "2.9.0", drains=False),
    Pairing("0.14.1", "1.23.0", "2.9.0", drains=False),
    Pairing("0.15.1", "1.23.0", "2.9.0", drains=False),
    Pairing("0.16.0", "1.23.0", "2.9.0", drains=False),
    # Of April: whether the change is in it is not known.
    Pairing("0.17.1", "1.23.0", "2.9.0", drains=False),
    Pairing("0.17.1", "1.24.0", drains=False),
    Pairing("0.19.0", "1.24.0", "2.10.0"),
    Pairing("0.19.1", "1.24.0", "2.10.0"),
    Pairing("0.21.0", "1.24.0", "2.10.0"),
    Pairing("0.24.0", "1.24.1", "2.11.0"),
    Pairing("0.26.0", "1.24.1", "2.11.0"),
)

#: Folders of the vendor's host, by the name of the system.
FOLDERS = {_JAMMY: "ubuntu2204", _NOBLE: "ubuntu2404", _EL94: "rhel94", _EL96: "rhel96"}
#: Pythons of each folder's tarballs, and what the tarball's name has for each. From the Dockerfiles of 1.22.0
#: (``base/Dockerfile.*`` for the plain ones, ``pytorch/Dockerfile.*-pyNNN`` for the others). Other releases:
#: UNCONFIRMED.
PYTHONS = {
    "ubuntu2204": {"3.10": "", "3.11": "_py311"},
    "ubuntu2404": {"3.12": ""},
    "rhel94": {"3.11": "", "3.12": "_py312"},
    "rhel96": {"3.12": ""},
}


@dataclass(frozen=True)
class Pythons:
    """What a release's PyTorch is for on a system, where a page says so; elsewhere PYTHONS stands for it."""

    release: str
    system: str
    versions: tuple[str, ...]
    source: str


PYTHONS_OF_PAGES = (
    Pythons("1.17.0-495", _JAMMY, ("3.10",), "page"),
    Pythons("1.17.0-495", _EL94, ("3.11",), "page"),
    Pythons("1.18.0-524", _JAMMY, ("3.10",), "page"),
    Pythons("1.18.0-524", _NOBLE, ("3.12",), "page"),
    Pythons("1.21.0-555", _JAMMY, ("3.10", "3.11"), "page"),
    Pythons("1.21.0-555", _NOBLE, ("3.12",), "page"),
    Pythons("1.21.0-555", _EL94, ("3.11", "3.12"), "page"),
    Pythons("1.24.1-482", _JAMMY, ("3.10",), "quotation"),
    Pythons("1.24.1-482", _NOBLE, ("3.12",), "quotation"),
    Pythons("1.24.1-482", _EL96, ("3.12",), "quotation"),
)
#: Releases that the Dockerfiles were read of, by their first two numbers, and those whose images' names were seen.
DOCKERFILES_OF = (1, 22)
IMAGES_OF = ((1, 22), (1, 23), (1, 24))
#: The vendor's image with PyTorch, below a registry.
PYTORCH_IMAGE = "gaudi-docker/{version}/{system}/habanalabs/pytorch-installer-{torch}:{release}"


@dataclass(frozen=True)
class Kernels:
    """Kernels that a system's drivers are for, by their first two numbers; without ``newest`` all later ones too."""

    system: str
    lowest: str
    newest: str
    source: str


KERNELS = (
    Kernels(_JAMMY, "5.15", "", "quotation"),
    Kernels(_NOBLE, "6.8", "6.8", "quotation"),
    Kernels(_EL94, "5.14", "5.14", "quotation"),
    Kernels(_EL96, "5.14", "5.14", "quotation"),
)


@dataclass(frozen=True)
class Preboot:
    """Preboot (SPI) firmware of a generation that does not start the boot images of old releases."""

    generation: str
    since: str
    """From this version of the preboot firmware on."""
    not_with: str
    """Releases up to this one."""
    source: str


PREBOOTS = (Preboot("gaudi2", "1.21.2", "1.20.1", "release-notes-1.24"),)


@dataclass(frozen=True)
class Upgrade:
    """A way from one system to another that keeps what is installed; each ends with a boot."""

    old: str
    new: str
    source: str


UPGRADES = (Upgrade(_JAMMY, _NOBLE, "distribution"), Upgrade(_EL94, _EL96, "distribution"))


@dataclass(frozen=True)
class Change:
    """What is another thing from a release on, so that what was written before it may stop."""

    release: str
    what: str
    source: str


CHANGES = (
    Change("1.21.0", "eager mode is the default, and what needs lazy mode has to set PT_HPU_LAZY_MODE=1", "eager"),
    Change(
        "1.23.0",
        "Open MPI is announced as 5.0.8, whose --rank-by takes slot in the place of core",
        "release-notes-1.23",
    ),
    Change("1.24.0", "the vendor announces the end of its support for Slurm", "release-notes-1.24"),
)


@dataclass(frozen=True)
class Cell:
    """One value of one axis that goes with one release."""

    release: str
    axis: str
    """system, generation, torch, vllm, docker or firmware."""
    value: str
    source: str
    """A name of SOURCES, or UNCONFIRMED."""


#: Cells beside those that follow from the tables above.
_MORE = (
    Cell("1.23.0-695", "docker", "25.0.1", "page"),
    Cell("1.24.1-482", "docker", "29.1.5", "quotation"),
    Cell("1.17.1-40", "firmware", "gaudi2 1.17.0-fw-51.2.0", "firmware-1.17"),
    Cell("1.24.1-482", "firmware", "gaudi2 1.24.0-fw-62.6.2", "quotation"),
)


def _cells() -> tuple[Cell, ...]:
    found = []
    for line in LINES:
        for release in line.releases:
            page = line.page if release in line.pages else UNCONFIRMED
            found += [Cell(release, "system", each, page) for each in line.systems]
            if line.torch:
                source = page if page != UNCONFIRMED else line.torch_sources.get(release, UNCONFIRMED)
                found.append(Cell(release, "torch", line.torch, source))
            for each in GENERATIONS:
                end = LAST_OF_GENERATION.get(each)
                if end is None or Release.parse(release) < end:
                    found.append(Cell(release, "generation", each, page))
            found += [
                Cell(release, "vllm", each.vllm, "vllm")
                for each in PAIRINGS
                if each.release == Release.parse(release).version
            ]
    return (*found, *_MORE)


CELLS = _cells()
