"""The module that tells whether a node's versions go together."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._driver import versions_found
from ansible_collections.gaudi3.scale.plugins.modules import gaudi_release_info


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A node of which everything is a file: its system and one loaded driver."""
    (tmp_path / "sys/module/habanalabs").mkdir(parents=True)
    (tmp_path / "sys/module/habanalabs/version").write_text("1.23.0-2eae87a\n")
    (tmp_path / "os-release").write_text("ID=rhel\nVERSION_ID=9.4\n")
    places = versions_found.Places(*(str(tmp_path / name) for name in ("sys", "modules", "boot", "os-release")))
    monkeypatch.setattr(gaudi_release_info, "Places", lambda: places)
    monkeypatch.setattr(gaudi_release_info.os, "uname", lambda: type("Uname", (), {"release": "5.14.0-427.el9"}))
    kernel = tmp_path / "modules/5.14.0-427.el9/extra"
    kernel.mkdir(parents=True)
    (kernel / "habanalabs.ko").write_text("x")
    return tmp_path


def test_versions_that_go_together(run_module: Any, node: Path) -> None:
    result = run_module(gaudi_release_info)
    assert (result["changed"], result["consistent"], result["culprit"], result["findings"]) == (False, True, "", [])
    assert result["versions"]["system"] == "RedHat 9.4"
    assert (result["path"]["steps"], result["path"]["changes"], result["no_way"]) == ([], 0, "")


def test_the_firmware_of_each_card_that_its_driver_shows(run_module: Any, node: Path) -> None:
    assert run_module(gaudi_release_info)["firmware"] == {}
    shown = {"status": "Operational", "pci_addr": "0000:19:00.0", "preboot_btl_ver": "Preboot version hl-gaudi3-1.23.0"}
    for name, files in {"accel0": shown, "accel1": {"status": "In reset", "pci_addr": "0000:1a:00.0"}}.items():
        folder = node / f"sys/class/accel/{name}/device"
        folder.mkdir(parents=True)
        for file, text in files.items():
            (folder / file).write_text(f"{text}\n")
    assert run_module(gaudi_release_info)["firmware"] == {"0000:19:00.0": "Preboot version hl-gaudi3-1.23.0"}


def test_what_does_not_fit_is_named_with_the_way_out(run_module: Any, node: Path) -> None:
    image = "vault.habana.ai/gaudi-docker/1.24.0/ubuntu24.04/habanalabs/pytorch-installer-2.10.0:1.24.0-1007"
    result = run_module(gaudi_release_info, image=image, check=True)
    assert (result["changed"], result["consistent"], result["culprit"]) == (False, False, "image")
    assert [step["kind"] for step in result["path"]["steps"]] == ["image"]
    kept = run_module(gaudi_release_info, image=image, keep=["image"])
    assert kept["culprit"] == "driver"
    assert (kept["path"]["release"], kept["path"]["changes"]) == ("1.24.0-1007", 1)


def test_the_way_to_a_wish(run_module: Any, node: Path) -> None:
    result = run_module(gaudi_release_info, to={"torch": 2.11})
    assert (result["path"]["release"], result["path"]["system"], result["path"]["boots"]) == (
        "1.24.1-482",
        "RedHat 9.6",
        1,
    )
    none = run_module(gaudi_release_info, to={"system": "Ubuntu 24.04"})
    assert none["path"] is None
    assert none["no_way"] == (
        "No way leads from 1.23.0-695 on RHEL 9.4 to system Ubuntu 24.04: no upgrade leads from RHEL 9.4 to Ubuntu "
        "24.04."
    )


def test_a_wish_that_is_none_fails_in_one_sentence(run_module: Any, node: Path) -> None:
    result = run_module(gaudi_release_info, to={"colour": "red"})
    assert result["failed"] is True
    assert result["msg"].startswith("'colour' is nothing to go to: give NAME=VALUE with one of release, system, torch")
