# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""The vendor's container image of a release: its name, and whether a registry has it, asked before it is pulled.

Names: HabanaAI/Setup_and_Install 1.22.0, ``dockerfiles`` and its README. A registry's protocol: the distribution
specification of the Open Container Initiative, and the tokens of Docker's registries, which a registry asks for or not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from urllib.parse import quote

from .._host.reach import Answer, Unreachable, follow
from .._registry import MANIFESTS, parsed, part_for_nodes, registry_of, token_address, token_in
from .._release.matrix import PYTORCH_IMAGE
from .._release.node import image_release
from .._release.support_matrix import TRAINER_TORCH, torch_version
from .._release.versions import Release
from .container import check_image

#: Folders of the vendor's registry by system. Those of other releases than 1.22 to 1.24 are UNCONFIRMED.
SYSTEMS = ("ubuntu24.04", "ubuntu22.04", "rhel9.4", "rhel9.6")
#: Asks for an address with headers: status, headers with names in small letters, and what is sent.
AskWith = Callable[[str, Mapping[str, str]], Answer]


@dataclass(frozen=True)
class Chosen:
    """The image of a job."""

    name: str
    problem: str
    """Why it cannot be used, in one sentence; empty where it may be."""


def chosen(release: str, image: str, system: str, registry: str, digest: str) -> Chosen:
    """The image that is named, or the vendor's of the release, and why it cannot be used."""
    try:
        name = image or image_name(release, system, registry)
    except ValueError as error:
        return Chosen("", str(error))
    pinned = f"{name}@{digest}" if digest and "@" not in name else name
    return Chosen(pinned, release_problem(pinned, release))


def image_name(release: str, system: str, registry: str) -> str:
    """The vendor's image of a release; ValueError, in one sentence, where nothing tells its name."""
    parsed = Release.parse(release)
    version = torch_version(str(parsed))
    if not version:
        raise ValueError(
            f"No public source names the PyTorch of release {parsed}, which is part of its image's name: set "
            "trainer_container_image to the whole name."
        )
    if system not in SYSTEMS:
        raise ValueError(f"trainer_container_system is {system!r}: give one of {', '.join(SYSTEMS)}.")
    if _numbers(version) < _numbers(TRAINER_TORCH):
        raise ValueError(
            f"The image of release {parsed} has PyTorch {version}, and the trainer needs {TRAINER_TORCH} or newer: "
            "take a newer release."
        )
    name = PYTORCH_IMAGE.format(version=parsed.version, system=system, torch=version, release=parsed)
    return f"{registry.rstrip('/')}/{name}"


def _numbers(version: str) -> list[int]:
    return [int(part) for part in version.split(".") if part.isdigit()]


def release_problem(image: str, release: str) -> str:
    """Why an image cannot be used with the driver of a release, as far as its name tells; empty where it may be."""
    try:
        check_image(image)
    except ValueError as error:
        return str(error)
    of = image_release(image)
    if not of or of in (release, release.partition("-")[0]):
        return ""
    return (
        f"The container image {image} is of release {of}, but the driver's is {release}, and both have to be the same: "
        f"take the image of {release}, or set synapseai_release to {of}."
    )


def reach(ask: AskWith, image: str, advice: str, plain: bool = False) -> None:
    """Unreachable where a registry, or the host of its files, does not give the image to everyone.

    The first file of the image is asked for, too, as many registries send that to another host.
    """
    host, path, wanted = registry_of(image)
    base = f"{'http' if plain else 'https'}://{host}/v2/{path}"
    headers = {"Accept": ", ".join(MANIFESTS)}

    def asked(url: str) -> Answer:
        answer = ask(url, headers)
        where = token_address(answer.headers.get("www-authenticate", ""))
        if answer.status == 401 and where and "Authorization" not in headers:
            token = token_in(ask(where, {}).body)
            if token:
                headers["Authorization"] = f"Bearer {token}"
                answer = ask(url, headers)
        return answer

    found = follow(asked, f"{base}/manifests/{quote(wanted, safe=':')}", advice, f"the image {image}")
    manifest = parsed(found.body)
    if manifest.get("manifests"):
        digest = part_for_nodes(manifest).get("digest")
        if not digest:
            raise Unreachable(f"The image {image} has no part for amd64: {advice}.")
        found = follow(asked, f"{base}/manifests/{digest}", advice, f"the image {image}")
        manifest = parsed(found.body)
    config = manifest.get("config") or {}
    if not config.get("digest"):
        raise Unreachable(f"{host} answers with something else than a manifest of the image {image}: {advice}.")
    follow(asked, f"{base}/blobs/{config['digest']}", advice, f"the image {image}")
