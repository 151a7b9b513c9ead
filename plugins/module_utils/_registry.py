# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""A registry of container images: what an image's name says, and what is asked for and answered.

The protocol is the distribution specification of the Open Container Initiative, with the tokens of Docker's registries,
which a registry asks for or not.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

INDEX = "application/vnd.oci.image.index.v1+json"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
MANIFESTS = (
    INDEX,
    MANIFEST,
    "application/vnd.docker.distribution.manifest.list.v2+json",
    "application/vnd.docker.distribution.manifest.v2+json",
)


def registry_of(image: str) -> tuple[str, str, str]:
    """Host, repository and reference (tag or digest) of an image, as engines take a name apart."""
    host, path, tag, digest = parts_of(image)
    return host, path, digest or tag or "latest"


def parts_of(image: str) -> tuple[str, str, str, str]:
    """Host, repository, tag and digest of an image; the last two empty where its name has none.

    >>> parts_of("mine:5000/job:7")
    ('mine:5000', 'job', '7', '')
    """
    name, _at, digest = image.partition("@")
    host, slash, path = name.partition("/")
    if not slash or not (host == "localhost" or "." in host or ":" in host):
        host, path = "docker.io", name if slash else f"library/{name}"
    path, _colon, tag = path.partition(":")
    return ("registry-1.docker.io" if host == "docker.io" else host), path, tag, digest


def token_address(challenge: str) -> str:
    """Where the answer ``www-authenticate`` sends for a token; empty where it asks for something else."""
    fields = dict(re.findall(r'(\w+)="([^"]*)"', challenge))
    if not challenge.lower().startswith("bearer ") or not fields.get("realm", "").startswith(("https://", "http://")):
        return ""
    query = urlencode({key: fields[key] for key in ("service", "scope") if key in fields})
    return f"{fields['realm']}?{query}"


def token_in(body: bytes) -> str:
    """The token of an answer; empty where it has none."""
    answer = parsed(body)
    return str(answer.get("token") or answer.get("access_token") or "")


def part_for_nodes(index: Mapping[str, Any]) -> Mapping[str, Any]:
    """The part of an image for several machines that runs on nodes with Gaudi, which are amd64; empty without one."""
    return next((each for each in index.get("manifests") or () if isinstance(each, Mapping) and _fits(each)), {})


def parsed(body: bytes) -> dict[str, Any]:
    """What a registry answers; empty where it is something else."""
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _fits(part: Mapping[str, Any]) -> bool:
    platform = part.get("platform") or {}
    return (platform.get("os", "linux"), platform.get("architecture", "amd64")) == ("linux", "amd64")
