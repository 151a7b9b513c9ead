"""Container images of a registry: each a folder in the OCI's layout, with blobs that all of them share."""

from __future__ import annotations

import hashlib
import json
import re
import time
import urllib.error
from collections.abc import Mapping
from dataclasses import dataclass
from http.client import HTTPException
from typing import Any
from urllib.parse import quote

from gaudi3_deploy.collection._mirror import BLOBS, REGISTRY, image_folder
from gaudi3_deploy.collection._printable import printable
from gaudi3_deploy.collection._refusal import Refusal
from gaudi3_deploy.collection._registry import (
    INDEX,
    MANIFEST,
    MANIFESTS,
    parsed,
    part_for_nodes,
    registry_of,
    token_address,
    token_in,
)
from gaudi3_deploy.collection._release.matrix import PYTORCH_IMAGE
from gaudi3_deploy.collection._release.node import image_release
from gaudi3_deploy.collection._release.support_matrix import torch_version
from gaudi3_deploy.collection._serving.versions import image_of, pairing
from gaudi3_deploy.errors import DeployError, UsageError
from gaudi3_deploy.mirror.download import Folder, Wanted, ask

#: What `--image` takes in place of a whole name.
KINDS = ("pytorch", "vllm", "exporter")
_EXPORTER = f"{REGISTRY}/gaudi-metric-exporter/metric-exporter:{{release}}"
#: A registry's and an image's own name, a tag, a digest.
_NAME = re.compile(
    r"[a-z0-9][a-z0-9._:-]*(/[a-z0-9][a-z0-9._-]*)*(:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(@sha256:[0-9a-f]{64})?"
)
_DIGEST = re.compile("sha256:([0-9a-f]{64})")
#: Registries refuse longer manifests themselves.
_LONGEST = 4 << 20
#: Seconds after which another token is asked for; none ends before a minute.
_TOKEN_LASTS = 45


@dataclass(frozen=True)
class Image:
    """One image of a mirror."""

    name: str
    layout: str
    """Its `index.json`, which is written once all else is there."""
    wanted: tuple[Wanted, ...]

    def finish(self, folder: Folder) -> None:
        """Write what makes its folder an image."""
        where = image_folder(self.name)
        folder.put(f"{where}/oci-layout", '{"imageLayoutVersion": "1.0.0"}\n', "gaudi3-deploy mirror fill")
        folder.put(f"{where}/index.json", self.layout, "gaudi3-deploy mirror fill")


def names(release: str, systems: tuple[str, ...], given: tuple[str, ...]) -> tuple[str, ...]:
    """Whole names of images.

    Raises:
        UsageError: One is no name, is of another release, or nobody knows the vendor's.
    """
    found: list[str] = []
    for each in given:
        found += _vendors(release, systems, each) if each in KINDS else [each]
    for name in found:
        of = image_release(name)
        if not _NAME.fullmatch(name):
            raise UsageError(
                f"--image is {printable(name)!r}: give one of {', '.join(KINDS)}, or a name as REGISTRY/NAME:TAG."
            )
        if of not in ("", release, release.partition("-")[0]):
            raise UsageError(f"--image {name} is of release {of}, and one mirror has one release: {release}.")
    return tuple(dict.fromkeys(found))


def _vendors(release: str, systems: tuple[str, ...], kind: str) -> list[str]:
    version, torch = release.partition("-")[0], torch_version(release)
    if kind == "exporter":
        return [_EXPORTER.format(release=release)]
    if kind == "vllm":
        try:
            return [image_of(pairing("", release))]
        except Refusal as refusal:
            raise UsageError(f"--image vllm: {refusal}") from refusal
    if torch is None:
        raise UsageError(f"No public source names the PyTorch of {release}: give the whole name of its image.")
    places = [system.lower().replace(" ", "").replace("redhat", "rhel") for system in systems]
    return [
        f"{REGISTRY}/{PYTORCH_IMAGE.format(version=version, system=place, torch=torch, release=release)}"
        for place in places
    ]


class Registry:
    """The registry of one image, asked as anybody may ask it."""

    def __init__(self, image: str, vendor: str) -> None:
        """``vendor`` is the address that the vendor's images are pulled from."""
        self.image = image
        host, self._path, self.reference = registry_of(image)
        self._base = f"{vendor if host == REGISTRY else f'https://{host}'}/v2/{self._path}"
        self._tokens: str | None = None
        """Where tokens are; empty where the registry wants none, None before it was asked."""
        self._token = ""
        self._asked = -float("inf")

    def headers(self) -> Mapping[str, str]:
        """What each request has: a token where the registry wants one, and which kinds of manifests are understood."""
        headers = {"Accept": ", ".join(MANIFESTS)}
        if self._tokens is None:
            self._tokens = self._challenge(headers)
        if self._tokens and time.monotonic() - self._asked > _TOKEN_LASTS:
            with ask(self._tokens, "GET", {}) as answer:
                self._token = token_in(answer.read(_LONGEST))
            self._asked = time.monotonic()
        return {**headers, "Authorization": f"Bearer {self._token}"} if self._token else headers

    def _challenge(self, headers: Mapping[str, str]) -> str:
        try:
            ask(self.manifest(self.reference), "HEAD", headers).close()
        except urllib.error.HTTPError as error:
            return token_address(error.headers.get("WWW-Authenticate") or "") if error.code == 401 else ""
        return ""

    def manifest(self, digest: str) -> str:
        """Address of a manifest."""
        return f"{self._base}/manifests/{quote(digest, safe=':')}"

    def blob(self, digest: str) -> str:
        """Address of anything else."""
        return f"{self._base}/blobs/{digest}"

    def top(self) -> dict[str, Any]:
        """The descriptor of what the image's name stands for now.

        Raises:
            DeployError: The registry does not have the image, or not for everybody.
        """
        url = self.manifest(self.reference)
        try:
            with ask(url, "GET", {}, self.headers()) as answer:
                kind = str(answer.headers.get("Content-Type") or "").partition(";")[0]
                content = bytes(answer.read(_LONGEST))
        except urllib.error.HTTPError as error:
            raise DeployError(
                f"{url} was refused by its registry for the image {self.image}: {error.code} {error.reason}."
            ) from error
        except (OSError, HTTPException, ValueError) as error:
            raise DeployError(
                f"{url} could not be fetched ({printable(str(error))}): start the command again, it goes on."
            ) from error
        digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
        if self.reference.startswith("sha256:") and digest != self.reference:
            raise DeployError(f"{url} has another digest than its name says: do not use this registry.")
        found = parsed(content)
        kind = str(found.get("mediaType") or kind)
        if kind not in MANIFESTS:
            kind = INDEX if found.get("manifests") else MANIFEST
        return {"mediaType": kind, "digest": digest, "size": len(content)}


def image(folder: Folder, name: str, vendor: str) -> Image:
    """Have the manifests of an image; its other blobs are wanted. An image that the mirror has stays the one it is.

    Raises:
        DeployError: The registry does not have it, or answers with something else.
    """
    registry = Registry(name, vendor)
    index = f"{image_folder(name)}/index.json"
    layout = parsed(folder.read(index)) if index in folder.files and folder.has(index) else {}
    top = (layout.get("manifests") or [None])[0] or registry.top()
    found = _manifest(folder, registry, top)
    if found.get("manifests"):
        part = part_for_nodes(found)
        if not part:
            raise DeployError(f"The image {name} has no part for amd64, as machines with Gaudi are.")
        found = _manifest(folder, registry, part)
    layers = found.get("layers")
    if not isinstance(found.get("config"), Mapping) or not isinstance(layers, list):
        raise DeployError(f"The registry answers with something else than a manifest of the image {name}.")
    blobs = [_blob(registry, each, registry.blob) for each in (found["config"], *layers)]
    annotated = {**top, "annotations": {"org.opencontainers.image.ref.name": name}}
    text = json.dumps({"schemaVersion": 2, "mediaType": INDEX, "manifests": [annotated]}, indent=1) + "\n"
    return Image(name, text, tuple(blobs))


def _manifest(folder: Folder, registry: Registry, descriptor: Mapping[str, Any]) -> dict[str, Any]:
    wanted = _blob(registry, descriptor, registry.manifest)
    if (wanted.size or 0) > _LONGEST:
        raise DeployError(f"The image {registry.image} has a manifest of {wanted.size} bytes, which none has.")
    folder.fetch([wanted])
    return parsed(folder.read(wanted.path))


def _blob(registry: Registry, descriptor: Any, address: Any) -> Wanted:
    digest = _DIGEST.fullmatch(str(descriptor.get("digest"))) if isinstance(descriptor, Mapping) else None
    size = descriptor.get("size") if digest else None
    if not digest or not isinstance(size, int) or size < 0:
        raise DeployError(f"The registry names a part of the image {registry.image} without its SHA-256 or size.")
    url = address(digest[0])
    return Wanted(f"{BLOBS}/sha256/{digest[1]}", url, digest[1], size, headers=registry.headers)
