# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Packages of an apt node with which kernels come, and the kernels that they would bring.

A distribution has a package for each kernel (``linux-image-6.8.0-51-generic``), which nothing upgrades, and packages
that depend on the newest of them, directly or through each other (``linux-generic``, ``linux-image-amd64``). Those
bring the next kernel.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from .._apt import dpkg
from .._apt.dpkg import Installed
from .kernel_holds import Bringer

#: Runs a program: argv to exit status, output, errors.
Run = Callable[[Sequence[str]], "tuple[int, str, str]"]

FAMILY = "linux-*"
_KERNEL = re.compile(r"linux-image-(?:unsigned-)?([0-9]+[.][0-9]+[.][0-9]+[^ ]*)")
_OF_ONE_KERNEL = re.compile(r"linux-[a-z-]+-[0-9]+[.][0-9]+[.][0-9]+")
_DEPENDS = re.compile(r"(?:^|[,|])\s*([a-z0-9][a-z0-9+.-]+)")
_STANZA = re.compile(r"^(Package|Version|Depends): *(.*)$", re.M)
#: Packages stand above each other in two or three floors.
_FLOORS = 5


def needs_of(text: str) -> tuple[str, ...]:
    """Names in a ``Depends``, alternatives among them."""
    return tuple(dict.fromkeys(_DEPENDS.findall(text)))


def read_candidates(output: str) -> dict[str, str]:
    """Versions that apt would install, from ``apt-cache policy``."""
    found, name = {}, ""
    for line in output.splitlines():
        if line and not line.startswith(" "):
            name = line.rstrip(":")
        elif line.strip().startswith("Candidate: ") and name:
            version = line.partition(":")[2].strip()
            if version != "(none)":
                found[name] = version
    return found


def read_stanzas(output: str) -> dict[tuple[str, str], tuple[str, ...]]:
    """What each version of a package needs, from ``apt-cache show``."""
    found = {}
    for stanza in output.split("\n\n"):
        fields = dict(_STANZA.findall(stanza))
        if "Package" in fields and "Version" in fields:
            found[fields["Package"], fields["Version"]] = needs_of(fields.get("Depends", ""))
    return found


def kernels_of(name: str, needs: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Kernels that a package brings, directly or through others of the family."""
    kernels, seen, ahead = [], {name}, [name]
    while ahead:
        for each in needs.get(ahead.pop(), ()):
            kernel = _KERNEL.fullmatch(each)
            if kernel and not each.endswith(("-dbg", "-dbgsym")):
                kernels.append(kernel[1])
            elif each not in seen and _leads_on(each):
                seen.add(each)
                ahead.append(each)
    return tuple(sorted({*kernels}))


def _leads_on(name: str) -> bool:
    """Whether a package of the family may bring kernels, and is none of one kernel alone."""
    return name.startswith(FAMILY[:-1]) and not _OF_ONE_KERNEL.match(name)


def bringers(run: Run, dpkg_query: str, apt_cache: str, also: Sequence[str] = ()) -> list[Bringer]:
    """Installed packages that bring kernels, by name, and those of ``also`` that are installed."""
    installed = installed_of(run, dpkg_query, also)
    needs = {name: needs_of(each.depends) for name, each in installed.items()}
    names = [name for name in installed if name in also or (_leads_on(name) and kernels_of(name, needs))]
    coming, offered = _offered(run, apt_cache, names, installed)
    found = []
    for name in sorted(names):
        kernels = kernels_of(name, offered) if name in coming else ()
        found.append(Bringer(name, installed[name].held, kernels))
    return found


def installed_of(run: Run, dpkg_query: str, also: Sequence[str] = ()) -> dict[str, Installed]:
    """What dpkg has of the family, and of ``also``."""
    return dpkg.read(run(dpkg.query(dpkg_query, [FAMILY, *also]))[1])


def _offered(
    run: Run, apt_cache: str, names: Sequence[str], installed: Mapping[str, Installed]
) -> tuple[set[str], dict[str, Sequence[str]]]:
    """Packages that apt has another version of than the installed one, and what all of them need in that version."""
    coming: set[str] = set()
    needs: dict[str, Sequence[str]] = {}
    ahead = sorted(names)
    for _floor in range(_FLOORS):
        candidates = read_candidates(run([apt_cache, "policy", *ahead])[1]) if ahead else {}
        coming |= {name for name in candidates if name in installed and candidates[name] != installed[name].version}
        if not coming:
            break
        wanted = [f"{name}={version}" for name, version in candidates.items()]
        shown = read_stanzas(run([apt_cache, "show", *wanted])[1]) if wanted else {}
        needs.update({name: shown.get((name, version), ()) for name, version in candidates.items()})
        ahead = sorted({each for name in ahead for each in needs.get(name, ()) if _leads_on(each)} - needs.keys())
    return coming, needs
