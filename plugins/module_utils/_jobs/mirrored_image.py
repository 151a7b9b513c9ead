# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""A container image of a sealed mirror on a node: every part by its digest, and only then given to the engine.

The mirror has it in the image layout of the Open Container Initiative. podman reads such a folder; docker, which does
not, reads an archive of it that also has the ``manifest.json`` of its own images.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import secrets
import shutil
import tarfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import IO, Any

from .._mirror import BLOBS, Sealed, image_folder, is_vendors
from .._printable import printable
from .._refusal import Refusal
from .._registry import parsed, part_for_nodes, parts_of
from .container import Container

#: Gives what lies under an address as a stream; ``OSError`` or ``ValueError`` where nobody does.
Open = Callable[[str], IO[bytes]]
#: Runs a program: its exit status and what it wrote, as ``run_command`` does.
Run = Callable[..., tuple[int, str, str]]

_PIECE = 1 << 20
#: No manifest or list of them is longer.
_LONGEST = 4 << 20


@dataclass(frozen=True)
class Mirrored:
    """An image as a mirror has it."""

    image: str
    where: str
    """Address of the mirror."""
    sealed: Sealed
    top: Mapping[str, Any]
    """Descriptor of what its name stands for: an image, or one for several machines."""
    files: Mapping[str, int]
    """Bytes of each of its parts by its digest, without the algorithm."""
    config: str
    layers: tuple[str, ...]

    @property
    def size(self) -> int:
        """Bytes of all parts."""
        return sum(self.files.values())


def find(open_at: Open, sealed: Sealed, where: str, image: str) -> Mirrored | None:
    """What a mirror has of an image; None where that is to come from its own registry.

    Raises:
        Refusal: It is the vendor's and the mirror lacks it, has another digest, or what the mirror has is not right.
    """
    index = f"{image_folder(image)}/index.json"
    if index not in sealed.files:
        if not is_vendors(image):
            return None
        raise Refusal(
            f"The mirror {where} does not have the image {image}: add it with gaudi3-deploy mirror fill --image, or "
            "name an image of another registry."
        )
    content = _read(open_at, f"{where}/{index}")
    if hashlib.sha256(content).hexdigest() != sealed.files[index]:
        raise _changed(f"{where}/{index}")
    top = _first(parsed(content).get("manifests"))
    descriptors = [top]
    manifest = _part(open_at, where, _digest(top, image))
    if manifest.get("manifests"):
        descriptors.append(part_for_nodes(manifest))
        manifest = _part(open_at, where, _digest(descriptors[1], image))
    digests = [_digest(each, image) for each in descriptors]
    wanted = parts_of(image)[3]
    if wanted and wanted not in [f"sha256:{each}" for each in digests]:
        raise Refusal(
            f"The mirror {where} has sha256:{digests[0]} as {image.partition('@')[0]}, and {wanted} is wanted: find "
            "out which is right, and fill a mirror with that."
        )
    parts = [manifest.get("config"), *_list(manifest.get("layers"))]
    config, *layers = [_digest(each, image) for each in parts]
    files = {_digest(each, image): _size(each, image) for each in [*descriptors, *parts]}
    lacks = next((each for each in files if f"{BLOBS}/sha256/{each}" not in sealed.files), None)
    if lacks:
        raise Refusal(
            f"The lock of the mirror {where} does not have sha256:{lacks} of the image {image}: fill it again."
        )
    return Mirrored(image, where, sealed, top, files, config, tuple(layers))


def take(run: Run, open_at: Open, found: Mirrored, container: Container, below: str = "/var/tmp") -> None:
    """Fetch an image and give it to the engine under its name.

    Raises:
        Refusal: The disk is too small, a part is not what its digest says, or the engine does not take it.
    """
    tag, digest = parts_of(found.image)[2:]
    if container.engine == "docker" and digest:
        raise Refusal(
            f"docker knows an image by its digest only from a registry, and {found.image} is to come from a mirror: "
            "name it by its tag, whose content the mirror's lock has, or set the engine to podman."
        )
    free = shutil.disk_usage(below).free
    if free < found.size * (2 if container.engine == "docker" else 1):
        raise Refusal(f"{below} has {free} bytes free, and the image {found.image} has {found.size}: make room there.")
    # Podman makes an image's name of the path, in which no part may end with an underscore, as one of tempfile's may.
    folder = os.path.join(below, f"gaudi3-image-{secrets.token_hex(8)}")
    os.mkdir(folder, 0o700)
    try:
        _fetch(open_at, found, folder)
        give = _to_docker if container.engine == "docker" else _to_podman
        give(run, found, container, folder, f"{found.image.partition('@')[0]}{'' if tag else ':mirrored'}")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _fetch(open_at: Open, found: Mirrored, folder: str) -> None:
    blobs = os.path.join(folder, "blobs/sha256")
    os.makedirs(blobs)
    for digest, size in found.files.items():
        url = f"{found.where}/{BLOBS}/sha256/{digest}"
        seen = hashlib.sha256()
        with _opened(open_at, url) as stream, open(os.path.join(blobs, digest), "wb") as target:
            for piece in _pieces(stream, url, size):
                seen.update(piece)
                target.write(piece)
        if seen.hexdigest() != digest:
            raise _changed(url)
    index = {"schemaVersion": 2, "manifests": [{**found.top, "annotations": {}}]}
    for name, text in (("oci-layout", {"imageLayoutVersion": "1.0.0"}), ("index.json", index)):
        with open(os.path.join(folder, name), "w", encoding="utf-8") as stream:
            json.dump(text, stream)


def _to_podman(run: Run, found: Mirrored, container: Container, folder: str, name: str) -> None:
    said = _engine(run, found, [container.program, "pull", "--quiet", f"oci:{folder}"])
    own = (said.split() or [""])[-1]
    _engine(run, found, [container.program, "tag", own, name])
    # The name that podman makes of the folder.
    _engine(run, found, [container.program, "untag", own, f"localhost{folder}:latest"])


def _to_docker(run: Run, found: Mirrored, container: Container, folder: str, name: str) -> None:
    row = {
        "Config": f"blobs/sha256/{found.config}",
        "RepoTags": [name],
        "Layers": [f"blobs/sha256/{each}" for each in found.layers],
    }
    path = os.path.join(folder, "image.tar")
    with tarfile.open(path, "w") as archive:
        archive.add(os.path.join(folder, "blobs"), "blobs")
        content = json.dumps([row]).encode()
        info = tarfile.TarInfo("manifest.json")
        info.size = len(content)
        archive.addfile(info, io.BytesIO(content))
    _engine(run, found, [container.program, "load", "--quiet", "--input", path])


def _engine(run: Run, found: Mirrored, argv: list[str]) -> str:
    rc, out, err = run(argv)
    if rc != 0:
        last = (err.strip().splitlines() or out.strip().splitlines() or [f"exit status {rc}"])[-1]
        raise Refusal(f"{argv[0]} does not take {found.image} of the mirror: {printable(last)}")
    return out


def _part(open_at: Open, where: str, digest: str) -> Mapping[str, Any]:
    url = f"{where}/{BLOBS}/sha256/{digest}"
    content = _read(open_at, url)
    if hashlib.sha256(content).hexdigest() != digest:
        raise _changed(url)
    return parsed(content)


def _read(open_at: Open, url: str) -> bytes:
    with _opened(open_at, url) as stream:
        return b"".join(_pieces(stream, url, _LONGEST))


def _opened(open_at: Open, url: str) -> IO[bytes]:
    try:
        return open_at(url)
    except (OSError, ValueError) as error:
        raise _unavailable(url, error) from error


def _pieces(stream: IO[bytes], url: str, most: int) -> Any:
    """What a server sends; ``Refusal`` before a byte is taken that is one too many."""
    from http.client import HTTPException

    got = 0
    try:
        while piece := stream.read(min(_PIECE, most - got + 1)):
            got += len(piece)
            if got > most:
                raise _too_long(url, most)
            yield piece
    except (OSError, ValueError, HTTPException) as error:
        raise _unavailable(url, error) from error


def _unavailable(url: str, error: Exception) -> Refusal:
    why = printable(str(getattr(error, "code", None) or getattr(error, "reason", error)).strip(), 200)
    return Refusal(
        f"{url} cannot be fetched ({why}): verify the mirror with gaudi3-deploy mirror verify, and run again."
    )


def _changed(url: str) -> Refusal:
    return Refusal(
        f"{url} is not what the mirror's lock says (SHA-256 differs): do not install from this mirror before "
        "gaudi3-deploy mirror verify finds nothing."
    )


def _too_long(url: str, most: int) -> Refusal:
    return Refusal(
        f"{url} has more than the {most} bytes that it may have: do not install from this mirror before "
        "gaudi3-deploy mirror verify finds nothing."
    )


def _size(descriptor: Mapping[str, Any], image: str) -> int:
    size = descriptor.get("size")
    if not isinstance(size, int) or isinstance(size, bool) or size < 0:
        raise _not_whole(image)
    return size


def _digest(descriptor: Any, image: str) -> str:
    said = str(descriptor.get("digest")) if isinstance(descriptor, Mapping) else ""
    kind, _colon, digest = said.partition(":")
    if kind != "sha256" or len(digest) != 64 or set(digest) - set("0123456789abcdef"):
        raise _not_whole(image)
    return digest


def _not_whole(image: str) -> Refusal:
    return Refusal(f"The mirror has no whole image {image}: fill it again with gaudi3-deploy mirror fill.")


def _first(found: Any) -> Mapping[str, Any]:
    rows = _list(found)
    return rows[0] if rows and isinstance(rows[0], Mapping) else {}


def _list(found: Any) -> list[Any]:
    return found if isinstance(found, list) else []
