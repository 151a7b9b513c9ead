"""The vendor's image of a release by its name, and a registry that is asked for it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._host.reach import Answer, Unreachable
from ansible_collections.gaudi3.scale.plugins.module_utils._jobs import image as images
from gaudi3_simulator.vendor import container_image as shelf

VENDOR = "vault.habana.ai/gaudi-docker/1.23.0/ubuntu24.04/habanalabs/pytorch-installer-2.9.0"
USUAL = {"image": "", "system": "ubuntu24.04", "registry": "vault.habana.ai", "digest": ""}
CONFIG = "sha256:" + "c" * 64
DIGEST = "sha256:" + "a" * 64


@pytest.mark.parametrize(
    ("release", "system"), [("1.23.0-695", "ubuntu24.04"), ("1.24.0-1007", "rhel9.6"), ("1.24.1-482", "ubuntu22.04")]
)
def test_a_release_s_name_is_the_one_on_the_vendors_shelf(release: str, system: str) -> None:
    assert images.image_name(release, system, "vault/") == f"vault/{shelf.name(release, system)}:{release}"


def chosen(release: str, **given: str) -> images.Chosen:
    return images.chosen(release, **{**USUAL, **given})


@pytest.mark.parametrize(
    ("given", "name", "problem"),
    [
        ({}, f"{VENDOR}:1.23.0-695", ""),
        ({"digest": DIGEST}, f"{VENDOR}:1.23.0-695@{DIGEST}", ""),
        ({"image": f"{VENDOR}:latest"}, f"{VENDOR}:latest", ""),
        ({"image": "mine/job:7"}, "mine/job:7", ""),
        ({"image": "mine/job:1.23.0-695"}, "mine/job:1.23.0-695", ""),
        (
            {"image": "mine:5000/job:1.22.0-740", "digest": DIGEST},
            f"mine:5000/job:1.22.0-740@{DIGEST}",
            f"The container image mine:5000/job:1.22.0-740@{DIGEST} is of release 1.22.0-740, but the driver's is "
            "1.23.0-695, and both have to be the same: take the image of 1.23.0-695, or set synapseai_release to "
            "1.22.0-740.",
        ),
        (
            {"image": VENDOR.replace("1.23.0", "1.24.1") + ":latest"},
            VENDOR.replace("1.23.0", "1.24.1") + ":latest",
            f"The container image {VENDOR.replace('1.23.0', '1.24.1')}:latest is of release 1.24.1, but the driver's "
            "is 1.23.0-695, and both have to be the same: take the image of 1.23.0-695, or set synapseai_release to "
            "1.24.1.",
        ),
        ({"system": "suse"}, "", "trainer_container_system is 'suse': give one of ubuntu24.04, ubuntu22.04, rhel9.4, "
         "rhel9.6."),
    ],
)  # fmt: skip
def test_an_image_and_what_is_wrong_with_it(given: dict[str, str], name: str, problem: str) -> None:
    assert chosen("1.23.0-695", **given) == images.Chosen(name, problem)


@pytest.mark.parametrize(
    ("release", "sentence"),
    [
        ("1.24.2-481", "No public source names the PyTorch of release 1.24.2-481, which is part of its image's name: "
         "set trainer_container_image to the whole name."),
        ("1.22.0-740", "The image of release 1.22.0-740 has PyTorch 2.7.1, and the trainer needs 2.9 or newer: take a "
         "newer release."),
        ("1.23", "'1.23' is not a SynapseAI release: write it as MAJOR.MINOR.PATCH-BUILD, for example 1.23.0-695."),
    ],
)  # fmt: skip
def test_a_release_without_a_name(release: str, sentence: str) -> None:
    assert chosen(release).problem == sentence


@pytest.mark.parametrize(
    ("image", "parts"),
    [
        (f"{VENDOR}:1.23.0-695", ("vault.habana.ai", VENDOR.partition("/")[2], "1.23.0-695")),
        (f"registry:5000/a/b:1@{DIGEST}", ("registry:5000", "a/b", DIGEST)),
        ("busybox", ("registry-1.docker.io", "library/busybox", "latest")),
        ("someone/job:1", ("registry-1.docker.io", "someone/job", "1")),
        ("localhost/job", ("localhost", "job", "latest")),
    ],
)
def test_a_name_is_taken_apart_as_engines_do(image: str, parts: tuple[str, str, str]) -> None:
    assert images.registry_of(image) == parts


class Registry:
    """Answers by address, and what was asked for, with the headers of each."""

    token_wanted = False

    def __init__(self) -> None:
        self.asked: list[tuple[str, Mapping[str, str]]] = []
        self.pages: dict[str, Answer] = {}

    def has(self, url: str, status: int = 200, body: Any = None, **headers: str) -> None:
        known = {key.replace("_", "-"): value for key, value in headers.items()}
        self.pages[url] = Answer(status, known, json.dumps(body).encode() if body is not None else b"")

    def __call__(self, url: str, headers: Mapping[str, str]) -> Answer:
        self.asked.append((url, dict(headers)))
        if self.token_wanted and not headers.get("Authorization") and "/v2/" in url:
            return Answer(401, {"www-authenticate": 'Bearer realm="https://auth/token",service="r",scope="pull"'})
        if url not in self.pages:
            raise OSError("no route to host")
        return self.pages[url]


BASE = "https://registry:5000/v2/a/b"


def registry() -> Registry:
    made = Registry()
    parts = [
        {"digest": "sha256:arm", "platform": {"os": "linux", "architecture": "arm64"}},
        {"digest": "sha256:amd", "platform": {"os": "linux", "architecture": "amd64"}},
    ]
    made.has(f"{BASE}/manifests/1", body={"manifests": parts})
    made.has(f"{BASE}/manifests/sha256:amd", body={"config": {"digest": CONFIG}, "layers": []})
    made.has(f"{BASE}/blobs/{CONFIG}", 307, location="https://storage/blob")
    made.has("https://storage/blob")
    return made


def test_an_image_for_several_machines_behind_a_redirect() -> None:
    asked = registry()
    images.reach(asked, "registry:5000/a/b:1", "advice")
    assert [url for url, _headers in asked.asked] == [
        f"{BASE}/manifests/1", f"{BASE}/manifests/sha256:amd", f"{BASE}/blobs/{CONFIG}", "https://storage/blob",
    ]  # fmt: skip
    assert "application/vnd.oci.image.manifest.v1+json" in asked.asked[0][1]["Accept"]


def test_a_registry_that_wants_a_token() -> None:
    asked = registry()
    asked.token_wanted = True
    asked.has("https://auth/token?service=r&scope=pull", body={"token": "t"})
    images.reach(asked, "registry:5000/a/b:1", "advice")
    assert dict(asked.asked)[f"{BASE}/manifests/sha256:amd"]["Authorization"] == "Bearer t"
    # Who gets none is told.
    asked = registry()
    asked.token_wanted = True
    asked.has("https://auth/token?service=r&scope=pull", 401)
    with pytest.raises(Unreachable, match=r"^registry answers 401 for the image registry:5000/a/b:1: log in\.$"):
        images.reach(asked, "registry:5000/a/b:1", "log in")


@pytest.mark.parametrize(
    ("page", "status", "body", "sentence"),
    [
        (f"{BASE}/manifests/1", 404, None, "registry answers 404 for the image registry:5000/a/b:1: advice."),
        ("https://storage/blob", 403, None, "storage (where registry sends to) answers 403 for the image"),
        (f"{BASE}/manifests/1", 200, {"html": 1}, "registry:5000 answers with something else than a manifest of"),
        (f"{BASE}/manifests/1", 200, {"manifests": [{"digest": "x", "platform": {"architecture": "arm64"}}]},
         "The image registry:5000/a/b:1 has no part for amd64: advice."),
    ],
)  # fmt: skip
def test_who_does_not_give_it_is_named(page: str, status: int, body: Any, sentence: str) -> None:
    asked = registry()
    asked.has(page, status, body)
    with pytest.raises(Unreachable) as told:
        images.reach(asked, "registry:5000/a/b:1", "advice")
    assert str(told.value).startswith(sentence)


def test_a_mirror_without_tls_and_a_host_that_is_down() -> None:
    with pytest.raises(
        Unreachable, match=r"^vault cannot be reached for the image vault:80/x/y:1 \(no route to host\)"
    ):
        images.reach(Registry(), "vault:80/x/y:1", "advice", plain=True)
    asked = Registry()
    with pytest.raises(Unreachable):
        images.reach(asked, "vault:80/x/y:1", "advice", plain=True)
    assert asked.asked[0][0] == "http://vault:80/v2/x/y/manifests/1"
