"""The vendor's dnf repository: its metadata as it is, and the packages of one release."""

from __future__ import annotations

import bz2
import gzip
import lzma
import zlib
from collections.abc import Callable, Iterator
from urllib.parse import quote
from xml.etree import ElementTree

from gaudi3_deploy.collection._printable import printable
from gaudi3_deploy.errors import DeployError
from gaudi3_deploy.mirror.download import Folder, Wanted

_REPO = "{http://linux.duke.edu/metadata/repo}"
_COMMON = "{http://linux.duke.edu/metadata/common}"
_UNPACK: dict[str, Callable[[bytes], bytes]] = {
    "gz": gzip.decompress,
    "xz": lzma.decompress,
    "bz2": bz2.decompress,
    "xml": bytes,
}
_FAMILY = "habanalabs"


def packages(folder: Folder, url: str, below: str) -> list[Wanted]:
    """Have the metadata of a repository; the packages of the mirror's release that it lists.

    repomd.xml and its signature are kept byte for byte.

    Raises:
        DeployError: Metadata cannot be read, are not what repomd.xml says, or do not have the release.
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
    found = list(_of_release(folder.release, _xml(content, _url(url, primary)), url, below))
    if not found:
        raise DeployError(f"{url} has no packages of {folder.release}.")
    return found


def _of_release(release: str, primary: ElementTree.Element, url: str, below: str) -> Iterator[Wanted]:
    for package in primary.iter(f"{_COMMON}package"):
        version = package.find(f"{_COMMON}version")
        if version is None or not (package.findtext(f"{_COMMON}name") or "").startswith(_FAMILY):
            continue
        # The build is followed by the distribution: 695.el9.
        if f"{version.get('ver')}-{(version.get('rel') or '').partition('.')[0]}" == release:
            path, digest = _path_and_digest(package, _COMMON, url)
            size = package.find(f"{_COMMON}size")
            said = (size.get("package") or "") if size is not None else ""
            yield Wanted(f"{below}/{path}", _url(url, path), digest, int(said) if said.isdigit() else None)


def _path_and_digest(element: ElementTree.Element, space: str, url: str) -> tuple[str, str]:
    location, checksum = element.find(f"{space}location"), element.find(f"{space}checksum")
    path = location.get("href") if location is not None else None
    if not path or checksum is None or checksum.get("type") != "sha256" or not checksum.text:
        raise DeployError(f"{url} lists {printable(path or 'a file')} without its place or its SHA-256.")
    return path, checksum.text.strip()


def _url(url: str, path: str) -> str:
    return f"{url}/{quote(path, safe='/+~:')}"


def _xml(content: bytes, where: str) -> ElementTree.Element:
    if b"<!DOCTYPE" in content:
        raise DeployError(f"{where} declares a document type, which metadata of dnf never do.")
    try:
        return ElementTree.fromstring(content)
    except ElementTree.ParseError as error:
        raise DeployError(f"{where} is no XML ({error}).") from error
