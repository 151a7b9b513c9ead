"""gaudi_container_image with a sealed mirror: predicted, taken from there once, or refused before anything is."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._jobs.container import Container
from ansible_collections.gaudi3.scale.plugins.modules import gaudi_container_image
from tests import stand_in_engine
from tests.served_folder import served

IMAGE = "vault.habana.ai/gaudi-metric-exporter/metric-exporter:1.23.0-695"


class Site:
    """A mirror with one image over http, and an engine without images."""

    def __init__(self, folder: Path) -> None:
        self.mirror, self.engine = folder / "mirror", folder / "engine"
        self.files: dict[str, str] = {}
        layer, config = self.blob(b"a layer"), self.blob(b"{}")
        top = self.blob(json.dumps({"config": config, "layers": [layer]}).encode())
        self.keep(f"images/{IMAGE.replace(':', '/')}/index.json", json.dumps({"manifests": [top]}).encode())
        rows = [{"path": path, "sha256": digest} for path, digest in self.files.items()]
        (self.mirror / "lock.json").write_text(json.dumps({"schema": 1, "release": "1.23.0-695", "files": rows}))
        stand_in_engine.make(folder / "podman", self.engine, sys.executable)

    def keep(self, path: str, content: bytes) -> str:
        (self.mirror / path).parent.mkdir(parents=True, exist_ok=True)
        (self.mirror / path).write_bytes(content)
        self.files[path] = hashlib.sha256(content).hexdigest()
        return self.files[path]

    def blob(self, content: bytes) -> dict[str, Any]:
        digest = hashlib.sha256(content).hexdigest()
        self.keep(f"images/blobs/sha256/{digest}", content)
        return {"digest": f"sha256:{digest}", "size": len(content)}

    def called(self) -> list[str]:
        return [call[0] for call in stand_in_engine.calls(self.engine)]


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Site, dict[str, Any]]]:
    found = Site(tmp_path)
    monkeypatch.setattr(Container, "program", property(lambda _self: str(tmp_path / "podman")))
    lock = hashlib.sha256((found.mirror / "lock.json").read_bytes()).hexdigest()
    with served(found.mirror) as address:
        yield found, {"image": IMAGE, "mirror": f"{address}/", "mirror_lock_sha256": lock}


def test_it_is_predicted_taken_from_the_mirror_and_there_the_second_time(
    run_module: Any, site: tuple[Site, dict[str, Any]]
) -> None:
    mirror, options = site
    first = run_module(gaudi_container_image, check=True, diff=True, **options)
    assert (first["changed"], first["diff"]) == (True, {"before": "", "after": f"{IMAGE}\n"})
    assert set(mirror.called()) == {"image"}, "nothing but a look"
    taken = run_module(gaudi_container_image, **options)
    assert (taken["changed"], taken["id"]) == (True, "0123456789abcdef")
    assert [each for each in mirror.called() if each != "image"] == ["pull", "tag", "untag"]
    again = run_module(gaudi_container_image, **{**options, "mirror": "http://127.0.0.1:9"})
    assert (again["changed"], again["id"]) == (False, "0123456789abcdef")


def test_what_the_mirror_does_not_have_is_refused_in_check_mode(
    run_module: Any, site: tuple[Site, dict[str, Any]]
) -> None:
    mirror, options = site
    said = run_module(gaudi_container_image, check=True, **{**options, "image": f"{IMAGE}0"})["msg"]
    assert said.startswith(f"The mirror {options['mirror'][:-1]} does not have the image {IMAGE}0: add it with ")
    said = run_module(gaudi_container_image, check=True, **{**options, "mirror_lock_sha256": "0" * 64})["msg"]
    assert "as gaudi_mirror_lock_sha256 says: it was changed after it was sealed" in said
    assert set(mirror.called()) == {"image"}
