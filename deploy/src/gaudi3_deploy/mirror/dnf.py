"""dnf repositories: their metadata as they are, and the packages that are wanted of them."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cmp_to_key
from typing import Any
from urllib.parse import quote
from xml.etree import ElementTree

from gaudi3_deploy.collection._printable import printable
from gaudi3_deploy.collection._rpm_versions import compare_rpm
from gaudi3_deploy.errors import DeployError
from gaudi3_deploy.mirror.download import Folder, Wanted

_REPO = "{http://linux.duke.edu/metadata/repo}"
_COMMON = "{http://linux.duke.edu/metadata/common}"
_RPM = "{http://linux.duke.edu/metadata/rpm}"
_UNPACK: dict[str, Callable[[bytes], bytes]] = {
    "gz": gzip.decompress,
    "xz": lzma.decompress,
    "bz2": bz2.decompress,
    "xml": bytes,
}
_FAMILY = "habanalabs"
_MACHINES = ("x86_64", "noarch")


@dataclass(frozen=True)
class Listed:
    """A package, as a repository lists it."""

    name: str
    version: str
    """As rpm compares it, with its epoch."""
    wanted: Wanted
    requires: tuple[str, ...]
    """Names and paths of files."""
    provides: tuple[str, ...]


def packages(folder: Folder, url: str, below: str) -> list[Wanted]:
    """Have the metadata of the vendor's repository; the packages of the mirror's release that it lists.

    Raises:
        DeployError: Metadata cannot be read, are not what repomd.xml says, or do not have the release.
    """
    content, where = _primary(folder, url, below)
    found = list(_of_release(folder.release, content, where, url, below))
    if not found:
        raise DeployError(f"{url} has no packages of {folder.release}.")
    return found


def closure(folder: Folder, url: str, below: str, names: Sequence[str]) -> list[Wanted]:
    """Have the metadata of a repository; packages by their names, with all that it has of what they need.

    The newest of each, as dnf takes it. What no package of it provides is a matter of the system's own repositories.

    Raises:
        DeployError: Metadata cannot be read or are not what repomd.xml says, or a package is not there.
    """
    best: dict[str, Listed] = {}
    for each in _every(*_primary(folder, url, below), url, below):
        best[each.name] = max(best.get(each.name, each), each, key=_order)
    provided: dict[str, str] = {}
    for name in sorted(best):
        for what in best[name].provides:
            provided.setdefault(what, name)
    found: dict[str, Listed] = {}
    open_ends = [*names]
    while open_ends:
        name = open_ends.pop()
        if name in found:
            continue
        if name not in best:
            raise DeployError(f"{url} has no {name}, which the role needs.")
        found[name] = best[name]
        open_ends += [provided[each] for each in best[name].requires if each in provided]
    return [found[name].wanted for name in sorted(found)]


def _order(listed: Listed) -> Any:
    return cmp_to_key(compare_rpm)(listed.version)


def _primary(folder: Folder, url: str, below: str) -> tuple[bytes, str]:
    """Have the metadata of a repository; its list of packages, and where that came from.

    repomd.xml and its signature are kept byte for byte.
    """
    names = ("repodata/repomd.xml", "repodata/repomd.xml.asc", "repodata/repomd.xml.key")
    folder.fetch(Wanted(f"{below}/{name}", f"{url}/{name}", optional=name != names[0], settled=False) for name in names)
    primary = ""
    metadata = []
    for data in _xml(folder.read(f"{below}/{names[0]}"), f"{url}/{names[0]}").iter(f"{_REPO}data"):
        path, digest = _path_and_digest(data, _REPO, url)
        size = data.findtext(f"{_REPO}size") or ""
        metadata.append(Wanted(f"{below}/{path}", _url(url, path), digest, int(size) if size.isdigit() else None))
        if data.get("type") == "primary":
            primary = path
    ending = primary.rpartition(".")[2]
    if ending not in _UNPACK:
        raise DeployError(f"{url} has its list of packages as {printable(primary) or 'nothing'}, not as gz, xz or bz2.")
    folder.fetch(metadata)
    try:
        content = _UNPACK[ending](folder.read(f"{below}/{primary}"))
    except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
        raise DeployError(f"{_url(url, primary)} cannot be unpacked ({error}).") from error
    return content, _url(url, primary)


def _every(content: bytes, where: str, url: str, below: str) -> Iterator[Listed]:
    """All packages for the nodes' machines."""
    for package in _elements(content, where):
        version, arch = package.find(f"{_COMMON}version"), package.findtext(f"{_COMMON}arch")
        name = package.findtext(f"{_COMMON}name")
        if version is None or not name or arch not in _MACHINES:
            continue
        said = f"{version.get('epoch') or 0}:{version.get('ver')}-{version.get('rel')}"
        files = [each.text or "" for each in package.iter(f"{_COMMON}file")]
        own = (*_entries(package, "provides"), *files)
        yield Listed(name, said, _wanted(package, url, below), _entries(package, "requires"), own)


def _entries(package: ElementTree.Element, kind: str) -> tuple[str, ...]:
    found = package.iterfind(f"{_COMMON}format/{_RPM}{kind}/{_RPM}entry")
    return tuple(str(each.get("name")) for each in found)


def _of_release(release: str, content: bytes, where: str, url: str, below: str) -> Iterator[Wanted]:
    for package in _elements(content, where):
        version = package.find(f"{_COMMON}version")
        if version is None or not (package.findtext(f"{_COMMON}name") or "").startswith(_FAMILY):
            continue
        # The build is followed by the distribution: 695.el9.
        if f"{version.get('ver')}-{(version.get('rel') or '').partition('.')[0]}" == release:
            yield _wanted(package, url, below)


def _elements(content: bytes, where: str) -> Iterator[ElementTree.Element]:
    """The packages of a list, one after the other: EPEL's has tens of thousands."""
    _refuse_document_type(content, where)
    try:
        for _event, element in ElementTree.iterparse(io.BytesIO(content)):
            if element.tag == f"{_COMMON}package":
                yield element
                element.clear()
    except ElementTree.ParseError as error:
        raise DeployError(f"{where} is no XML ({error}).") from error


def _wanted(package: ElementTree.Element, url: str, below: str) -> Wanted:
    path, digest = _path_and_digest(package, _COMMON, url)
    size = package.find(f"{_COMMON}size")
    said = (size.get("package") or "") if size is not None else ""
    return Wanted(f"{below}/{path}", _url(url, path), digest, int(said) if said.isdigit() else None)


def _path_and_digest(element: ElementTree.Element, space: str, url: str) -> tuple[str, str]:
    location, checksum = element.find(f"{space}location"), element.find(f"{space}checksum")
    path = location.get("href") if location is not None else None
    if not path or checksum is None or checksum.get("type") != "sha256" or not checksum.text:
        raise DeployError(f"{url} lists {printable(path or 'a file')} without its place or its SHA-256.")
    return path, checksum.text.strip()


def _url(url: str, path: str) -> str:
    return f"{url}/{quote(path, safe='/+~:')}"


def _xml(content: bytes, where: str) -> ElementTree.Element:
    _refuse_document_type(content, where)
    try:
        return ElementTree.fromstring(content)
    except ElementTree.ParseError as error:
        raise DeployError(f"{where} is no XML ({error}).") from error


def _refuse_document_type(content: bytes, where: str) -> None:
    if b"<!DOCTYPE" in content:
        raise DeployError(f"{where} declares a document type, which metadata of dnf never do.")
