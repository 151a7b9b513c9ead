"""The vendor's apt repository: its signed index as it is, and the packages of one release."""

from __future__ import annotations

import gzip
import re
import zlib
from urllib.parse import quote

from gaudi3_deploy.errors import DeployError
from gaudi3_deploy.mirror.download import Folder, Wanted

_INDEX = "main/binary-amd64/Packages"
_FAMILY = "habanalabs-"


def packages(folder: Folder, url: str, below: str, suite: str) -> list[Wanted]:
    """Have the index of a suite; the packages of the mirror's release that it lists.

    InRelease, Release and their signatures are kept byte for byte, so that nodes verify the vendor's key.

    Raises:
        DeployError: An index is not what the signed one says, or does not have the release.
    """
    dists = f"dists/{suite}"
    folder.fetch(
        Wanted(f"{below}/{dists}/{name}", f"{url}/{dists}/{name}", optional=name != "InRelease", settled=False)
        for name in ("InRelease", "Release", "Release.gpg")
    )
    signed = folder.read(f"{below}/{dists}/InRelease").decode(errors="replace")
    listed = {
        path: (digest, int(size))
        for digest, size, path in re.findall(r"^ ([0-9a-f]{64}) +(\d+) (\S+)\r?$", signed, re.M)
        if re.fullmatch(rf"{_INDEX}(\.(gz|xz|bz2))?", path)
    }
    packed = f"{_INDEX}.gz"
    if packed not in listed:
        raise DeployError(f"{url} lists no {packed} for suite {suite}: give the address of an apt repository.")
    folder.fetch(
        Wanted(f"{below}/{dists}/{path}", f"{url}/{dists}/{path}", digest, size, optional=path != packed)
        for path, (digest, size) in listed.items()
    )
    try:
        index = gzip.decompress(folder.read(f"{below}/{dists}/{packed}")).decode()
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise DeployError(f"{url}/{dists}/{packed} cannot be unpacked ({error}).") from error
    return _of_release(folder.release, index, url, below)


def _of_release(release: str, index: str, url: str, below: str) -> list[Wanted]:
    found, others = [], set()
    for stanza in re.split(r"\n\s*\n", index):
        fields = dict(re.findall(r"^(Package|Version|Filename|Size|SHA256): *(\S+) *$", stanza, re.M))
        if not fields.get("Package", "").startswith(_FAMILY):
            continue
        if fields.get("Version") != release:
            others.add(fields.get("Version", ""))
            continue
        if len(fields) < 5 or not fields["Size"].isdigit():
            raise DeployError(f"{url} lists {fields['Package']} {release} without its place, size or SHA-256.")
        path = fields["Filename"]
        found.append(
            Wanted(f"{below}/{path}", f"{url}/{quote(path, safe='/+~:')}", fields["SHA256"], int(fields["Size"]))
        )
    if not found:
        offered = ", ".join(sorted(filter(None, others))) or "none of the vendor's packages"
        raise DeployError(f"{url} has no packages of {release}; it has {offered}.")
    return found
