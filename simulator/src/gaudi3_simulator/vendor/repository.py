"""Building the repository tree that a web server hands out as ``http://vault/``.

The tree is ``DEST/artifactory/...``; the signing key and the record of what was built lie beside ``DEST``, in
``DEST-signing``, so that serving ``DEST`` gives nothing private away.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import shutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from .. import RequestError
from ..node import releases as known
from .catalogue import packages
from .deb import EPOCH, Package
from .faults import Fault, package_set, pool_content
from .index import packages_text, pool_path, release_text
from .signing import Signer, signer

RELEASES = ("1.22.0-740", "1.23.0-695", "1.24.0-1007")
# The collection installs this one unless told otherwise.
DEFAULT_RELEASE = "1.23.0-695"
SUITES = ("jammy", "noble")
_PARTS = ("debian", "api")
# A release that was published, and that the collection's support matrix does not know: it begins with 1.16.
NOT_IN_MATRIX = "1.15.1-15"


@dataclass(frozen=True)
class Repository:
    """A built repository: the folder to serve, the key that signs it, the releases it has."""

    root: Path
    fingerprint: str
    releases: tuple[str, ...]


def build_repository(dest: Path, releases: Sequence[str] = RELEASES, fault: Fault | None = None) -> Repository:
    """Build the repository under ``dest``, or leave it alone where it is what would be built."""
    check_releases(releases)
    private = dest.with_name(f"{dest.name}-signing")
    record = private / "built.json"
    every = package_set((each for release in releases for each in packages(release)), fault)
    inputs = _digest(every, fault)
    try:
        built = json.loads(record.read_text())
    except (FileNotFoundError, ValueError):
        built = {}
    if built.get("inputs") != inputs or not all((dest / "artifactory" / part).is_dir() for part in _PARTS):
        record.unlink(missing_ok=True)
        with signer(private / "key.asc") as official:
            new = dest / ".artifactory-new"
            shutil.rmtree(new, ignore_errors=True)
            if fault == "other-key":
                with signer(private / "other-key.asc") as other:
                    _write(new, every, other, official.public_key(), fault)
            else:
                _write(new, every, official, official.public_key(), fault)
            built = {"inputs": inputs, "fingerprint": official.fingerprint}
        for part in _PARTS:
            # The other shelves, of rpm packages and of PyTorch, have records of their own and stay.
            target = dest / "artifactory" / part
            shutil.rmtree(target, ignore_errors=True)
            target.parent.mkdir(parents=True, exist_ok=True)
            (new / part).replace(target)
        new.rmdir()
        record.write_text(json.dumps(built))
    return Repository(dest, built["fingerprint"], tuple(releases))


def check_releases(releases: Sequence[str]) -> None:
    """SimulatorError where a release is asked for that was never published: each part of it would be made up."""
    published = [f"{number}-{row[0]}" for number, row in known.RELEASES.items()]
    for release in releases:
        if release not in published:
            raise RequestError(
                f"The repository was asked for release {release}, which is not published: give one of "
                f"{', '.join(published)}."
            )


def _digest(every: Iterable[Package], fault: Fault | None) -> str:
    digest = hashlib.sha256(repr((fault, SUITES)).encode())
    for source in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(source.read_bytes())
    for package in every:
        digest.update(package.content)
    return digest.hexdigest()


def _write(new: Path, every: Sequence[Package], sign: Signer, key: bytes, fault: Fault | None) -> None:
    for path, content in _tree(every, sign, fault):
        target = new / "debian" / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
    public = new / "api" / "gpg" / "key" / "public"
    public.parent.mkdir(parents=True)
    public.write_bytes(key)


def _tree(every: Sequence[Package], sign: Signer, fault: Fault | None) -> Iterator[tuple[str, bytes]]:
    for package in every:
        yield pool_path(package), pool_content(package, fault)
    index = packages_text(every).encode()
    indexes = {
        "main/binary-amd64/Packages": index,
        "main/binary-amd64/Packages.gz": gzip.compress(index, mtime=EPOCH),
    }
    for suite in SUITES:
        release = release_text(suite, indexes, EPOCH + 86_400 if fault == "expired" else None).encode()
        signed = sign.clear_sign(release)
        if fault == "tampered-release":
            signed = signed.replace(b"Components: main", b"Components: evil")
        yield f"dists/{suite}/Release", release
        yield f"dists/{suite}/Release.gpg", sign.detached(release)
        yield f"dists/{suite}/InRelease", signed
        for path, content in indexes.items():
            if fault == "tampered-index":
                altered = index.replace(b"Size: ", b"Size: 1", 1)
                content = gzip.compress(altered, mtime=EPOCH) if path.endswith(".gz") else altered
            yield f"dists/{suite}/{path}", content
