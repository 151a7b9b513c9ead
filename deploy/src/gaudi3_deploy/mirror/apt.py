"""Apt repositories: their signed indexes as they are, and the packages that are wanted of them."""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from urllib.parse import quote

from gaudi3_deploy.errors import DeployError
from gaudi3_deploy.mirror.download import Folder, Wanted

_FAMILY = "habanalabs-"
_FIELDS = "Package|Source|Version|Filename|Size|SHA256|Depends|Pre-Depends|Provides"

#: One package of an index, by the names of its fields.
Stanza = Mapping[str, str]


def packages(folder: Folder, url: str, below: str, suite: str) -> list[Wanted]:
    """Have the index of a suite of the vendor's; the packages of the mirror's release that it lists.

    Raises:
        DeployError: An index is not what the signed one says, or does not have the release.
    """
    return _of_release(folder.release, index(folder, url, below, suite, ("main",)), url, below)


def index(folder: Folder, url: str, below: str, suite: str, components: Sequence[str]) -> list[Stanza]:
    """Have the index of a suite; all packages that it lists.

    InRelease, Release and their signatures are kept byte for byte, so that nodes verify the publisher's key.

    Raises:
        DeployError: An index is not what the signed one says, or a component is not there.
    """
    dists = f"dists/{suite}"
    folder.fetch(
        Wanted(f"{below}/{dists}/{name}", f"{url}/{dists}/{name}", optional=name != "InRelease", settled=False)
        for name in ("InRelease", "Release", "Release.gpg")
    )
    signed = folder.read(f"{below}/{dists}/InRelease").decode(errors="replace")
    _whole, _begin, digests = signed.partition("\nSHA256:")
    listed = {
        path: (digest, int(size))
        for digest, size, path in re.findall(r"^ ([0-9a-f]{64}) +(\d+) (\S+)\r?$", digests, re.M)
    }
    return [each for component in components for each in _component(folder, url, below, suite, listed, component)]


def _component(
    folder: Folder, url: str, below: str, suite: str, listed: Mapping[str, tuple[str, int]], component: str
) -> list[Stanza]:
    dists, plain = f"dists/{suite}", f"{component}/binary-amd64/Packages"
    packed = f"{plain}.gz"
    if packed not in listed:
        raise DeployError(f"{url} lists no {packed} for suite {suite}: give the address of an apt repository.")
    folder.fetch(
        Wanted(f"{below}/{dists}/{path}", f"{url}/{dists}/{path}", *listed[path], optional=path != packed)
        for path in (plain, packed, f"{plain}.xz", f"{plain}.bz2")
        if path in listed
    )
    try:
        text = gzip.decompress(folder.read(f"{below}/{dists}/{packed}")).decode()
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise DeployError(f"{url}/{dists}/{packed} cannot be unpacked ({error}).") from error
    return [*stanzas(text)]


def stanzas(text: str) -> Iterator[Stanza]:
    """The packages of an index."""
    for stanza in re.split(r"\n\s*\n", text):
        fields = dict(re.findall(rf"^({_FIELDS}): *(.*\S) *$", stanza, re.M))
        if "Package" in fields:
            yield fields


def wanted(stanza: Stanza, url: str, below: str) -> Wanted:
    """The file of a package.

    Raises:
        DeployError: The index does not say where it is, or what it is.
    """
    path, size, digest = (stanza.get(name, "") for name in ("Filename", "Size", "SHA256"))
    if not path or not size.isdigit() or not re.fullmatch("[0-9a-f]{64}", digest):
        named = f"{stanza['Package']} {stanza.get('Version', '')}".strip()
        raise DeployError(f"{url} lists {named} without its place, size or SHA-256.")
    return Wanted(f"{below}/{path}", f"{url}/{quote(path, safe='/+~:')}", digest, int(size))


def _of_release(release: str, listed: Iterable[Stanza], url: str, below: str) -> list[Wanted]:
    family = [each for each in listed if each["Package"].startswith(_FAMILY)]
    found = [wanted(each, url, below) for each in family if each.get("Version") == release]
    if not found:
        offered = ", ".join(sorted({each.get("Version", "") for each in family} - {""}))
        no_other = "none of the vendor's packages"
        raise DeployError(f"{url} has no packages of {release}; it has {offered or no_other}.")
    return found
