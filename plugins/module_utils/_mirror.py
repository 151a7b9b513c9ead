# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""A sealed mirror: where in it each part of a release lies, and what its lock says.

``gaudi3-deploy mirror fill`` writes this layout, and the roles install from it where ``gaudi_mirror`` is set.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from ._known_bad import KnownBad, known_bad
from ._printable import printable
from ._refusal import Refusal
from ._registry import parts_of

LOCK = "lock.json"
SCHEMA = 1
#: Below a mirror, the vendor's files lie as below its host.
VAULT = "artifactory"
DEB, DEB_KEY = f"{VAULT}/debian", f"{VAULT}/api/gpg/key/public"
RPM, RPM_KEY = f"{VAULT}/rhel/9", f"{VAULT}/gaudi-general/keyPairs/primary/public"
TORCH = f"{VAULT}/gaudi-pt-modules"
WRAPPER = "hccl_ofi_wrapper"
WHEELS, INDEX = "pypi/wheels", "pypi/simple"
GRAFANA, GRAFANA_KEY, UBUNTU = "grafana/apt", "grafana/gpg.key", "ubuntu"
EPEL, EPEL_KEY = "epel/9", "epel/RPM-GPG-KEY-EPEL-9"
#: Each image has a folder of its own in the OCI's layout, and all share their blobs, as images of one release overlap.
IMAGES, BLOBS = "images", "images/blobs"

#: Where all that is from, without a mirror.
REGISTRY = "vault.habana.ai"
VENDOR = f"https://{REGISTRY}"
WRAPPER_SOURCE = "https://raw.githubusercontent.com/HabanaAI/hccl_ofi_wrapper/bea1d6f65e2be76f5f703403787cb8a3fde5ebaa"
#: torch's build for a CPU, for served models.
TORCH_SOURCE = "https://download.pytorch.org/whl/cpu"
GRAFANA_SOURCE, GRAFANA_KEY_SOURCE = "https://apt.grafana.com", "https://apt.grafana.com/gpg.key"

#: No mirror's lock is longer: it has about 200 bytes for each of a few hundred files.
_LONGEST = 64 << 20
#: Letters of an address without blanks, quotes, a user, and what follows a path.
_ADDRESS = re.compile(r"[!$-&(-;=A-\[\]-~]+")


@dataclass(frozen=True)
class Sealed:
    """What a mirror says that it has."""

    release: str
    files: Mapping[str, str]
    """SHA-256 by path below the mirror."""


def mirror_address(given: object) -> str:
    """The address in ``gaudi_mirror`` without its last slash; empty where none is set.

    Raises:
        Refusal: It is no http or https address, or has a user or password in it, which every file on nodes would show.
    """
    if given in (None, ""):
        return ""
    if not isinstance(given, str) or not _is_address(given):
        raise Refusal(
            "gaudi_mirror has to be the http or https address of a folder that gaudi3-deploy mirror fill has filled, "
            "without a user: correct it, or leave it out."
        )
    return given.rstrip("/")


def _is_address(given: str) -> bool:
    """Whether it is an address that paths may follow and that files of apt, dnf and pip may name as it is."""
    try:
        parts = urlsplit(given)
        parts.port  # noqa: B018
    except ValueError:  # brackets that do not close, or a port that is no number
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname) and bool(_ADDRESS.fullmatch(given))


def addresses(mirror: str, version: str) -> dict[str, str]:
    """Where each part of a release is: in the mirror, or with an empty one, at the places of those who publish it.

    ``version`` is the operating system's, which the rpm repository has a folder for.
    """
    vendor = mirror or VENDOR
    return {
        "apt": f"{vendor}/{DEB}",
        "apt_key": f"{vendor}/{DEB_KEY}",
        "rpm": f"{vendor}/{RPM}/{version}",
        "rpm_key": f"{vendor}/{RPM_KEY}",
        "pytorch": f"{vendor}/{TORCH}",
        "index": f"{mirror}/{INDEX}" if mirror else "",
        "torch": f"{mirror}/{INDEX}" if mirror else TORCH_SOURCE,
        "wrapper": f"{mirror}/{WRAPPER}" if mirror else WRAPPER_SOURCE,
        "grafana": f"{mirror}/{GRAFANA}" if mirror else GRAFANA_SOURCE,
        "grafana_key": f"{mirror}/{GRAFANA_KEY}" if mirror else GRAFANA_KEY_SOURCE,
    }


def image_folder(image: str) -> str:
    """Where in a mirror a container image lies: by its tag, or by its digest where its name has no tag.

    >>> image_folder("vault.habana.ai/gaudi-docker/base:1.23.0-695")
    'images/vault.habana.ai/gaudi-docker/base/1.23.0-695'
    """
    host, path, tag, digest = parts_of(image)
    return f"{IMAGES}/{host}/{path}/{tag or digest or 'latest'}"


def is_vendors(image: str) -> bool:
    """Whether an image is in the vendor's registry, which a mirror takes the place of."""
    return parts_of(image)[0] == REGISTRY


def below(mirror: str, address: object) -> str:
    """The path of an address in the mirror; empty where it is elsewhere, as one that a site has set itself may be."""
    inside = bool(mirror) and isinstance(address, str) and address.startswith(f"{mirror}/")
    return str(address)[len(mirror) + 1 :].rstrip("/") if inside else ""


def lock_of(content: bytes, where: str, sha256: str = "") -> Sealed:
    """What a mirror's lock says.

    Args:
        content: The lock's bytes.
        where: The mirror, for the sentence.
        sha256: The digest that the lock must have; empty: any.

    Raises:
        Refusal: It is another lock than the one with this digest, or none at all.
    """
    digest = hashlib.sha256(content).hexdigest()
    if sha256 and digest != sha256.lower():
        raise Refusal(
            f"{LOCK} of the mirror {where} has SHA-256 {digest}, not {printable(sha256)} as gaudi_mirror_lock_sha256 "
            "says: it was changed after it was sealed, or is of another mirror."
        )
    try:
        found = json.loads(content)
        schema = found["schema"]
        if isinstance(schema, int) and schema > SCHEMA:
            raise Refusal(
                f"{LOCK} of the mirror {where} has schema {schema}, and this version of gaudi3.scale reads {SCHEMA}: "
                "install the version that filled it, or a later one."
            )
        if schema != SCHEMA:
            raise ValueError(f"its schema is {schema!r}, and {SCHEMA} is known")
        return Sealed(str(found["release"]), {str(each["path"]): str(each["sha256"]) for each in found["files"]})
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise Refusal(
            f"What {where}/{LOCK} answers is no lock of a mirror ({printable(str(error), 200)}): set gaudi_mirror to "
            "the address of a folder that gaudi3-deploy mirror fill has filled."
        ) from error


def sealed_at(url: str, sha256: str, timeout: int) -> Sealed:
    """What the lock of the mirror at an address says.

    Raises:
        Refusal: It does not answer, or has no lock, or another one than that with this SHA-256.
    """
    from http.client import HTTPException

    from ansible.module_utils.urls import open_url

    try:
        with open_url(f"{url}/{LOCK}", timeout=timeout) as answer:
            content = answer.read(_LONGEST)
    except (OSError, ValueError, HTTPException) as error:
        why = printable(str(getattr(error, "code", None) or getattr(error, "reason", error)).strip(), 200)
        raise Refusal(
            f"The mirror {url} does not hand out its {LOCK} ({why}): open the way to it from this host, or correct "
            "gaudi_mirror."
        ) from error
    return lock_of(bytes(content), url, sha256)


def poisoned(paths: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Wheels that no environment may have, each with what is said of it."""
    for path in sorted(paths):
        name = path.rpartition("/")[2]
        archive = re.fullmatch(r"(.+)-([^-]+)\.(?:tar\.gz|zip)", name)  # of sources, whose names have more hyphens
        parts = [*archive.groups()] if archive else name.split("-")
        if not path.startswith(f"{WHEELS}/") or len(parts) < 2:
            continue
        name = re.sub(r"[-_.]+", "-", parts[0]).lower()
        for bad in known_bad({name: parts[1]}):
            yield path, poison(bad, parts[1])


def lacking_wheels(paths: Mapping[str, str], pins: Mapping[str, Collection[str]], python: str) -> list[str]:
    """Pinned packages of which a mirror has no wheel that a Python, such as ``3.11``, can install.

    Args:
        paths: SHA-256 by path below the mirror.
        pins: The digests that a package may have, by its name.
        python: Which Python installs them.
    """
    fit = {digest for path, digest in paths.items() if path.startswith(f"{WHEELS}/") and _fits(path, python)}
    return [name for name, digests in pins.items() if not fit & {*digests}]


def _fits(path: str, python: str) -> bool:
    """Whether a file is for a Python, by its name; of a machine, as a mirror has wheels of one kind alone."""
    tags = path.rpartition("/")[2].split("-")[-3:-1]
    if not path.endswith(".whl") or len(tags) < 2:
        return True
    ours = int(python.partition(".")[2])
    for tag in tags[0].split("."):
        number = re.fullmatch(r"(?:py|cp)3(\d*)", tag)
        if number and tag.startswith("py") and int(number[1] or 0) <= ours:
            return True
        if number and number[1] and (int(number[1]) <= ours if tags[1] == "abi3" else tags[1] in (tag, "none")
                                     and int(number[1]) == ours):  # fmt: skip
            return True
    return False


def poison(bad: KnownBad, version: str) -> str:
    """What is said of a release that no environment may have."""
    return f"is {bad.package} {version}, which {bad.reason} ({bad.source}, {bad.date})"


def refuse_poisoned(sealed: Sealed, where: str) -> None:
    """Refuse a mirror with a wheel that no environment may have."""
    for path, said in poisoned(sealed.files):
        raise Refusal(
            f"The mirror {where} has {printable(path)}, which {said}: do not install from it, and fill another one."
        )


def refuse_unfit(sealed: Sealed, where: str, release: str, wanted: Mapping[str, str]) -> None:
    """Refuse a mirror that is not of a release, has a poisoned wheel, or lacks what nodes would take from it.

    ``wanted`` has the path of a file or folder by the variable that names it.
    """
    if sealed.release != release:
        raise Refusal(
            f"The mirror {where} is of release {printable(sealed.release)}, and synapseai_release is "
            f"{printable(release)}: set synapseai_release to the mirror's release, or gaudi_mirror to another mirror."
        )
    refuse_poisoned(sealed, where)
    lacks = {
        variable: path
        for variable, path in wanted.items()
        if path not in sealed.files and not any(each.startswith(f"{path}/") for each in sealed.files)
    }
    if lacks:
        named = ", ".join(f"{path} ({variable})" for variable, path in lacks.items())
        raise Refusal(
            f"The mirror {where} does not have {named}: add it with gaudi3-deploy mirror fill, or set the variable to "
            "another address."
        )


def tarball_digest(sealed: Sealed, where: str, path: str) -> str:
    """SHA-256 of a tarball by its path below the folder of all of them.

    Raises:
        Refusal: The lock does not name it.
    """
    digest = sealed.files.get(f"{TORCH}/{path}", "")
    if not re.fullmatch("[0-9a-f]{64}", digest):
        raise Refusal(
            f"{LOCK} of the mirror {where} does not name {TORCH}/{path}: add it with gaudi3-deploy mirror fill, or set "
            "pytorch_repository_url to another address."
        )
    return digest
