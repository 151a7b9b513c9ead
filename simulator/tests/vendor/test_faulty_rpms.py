"""The package-set faults in the rpm repository. rpmbuild runs in a container; here a stand-in writes what it would."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from gaudi3_simulator.podman import Podman
from gaudi3_simulator.vendor import Fault, rpm, signing
from gaudi3_simulator.vendor.rpm import build_rpm_repository

CONTENT = b"stands in for what rpmbuild writes"


@pytest.fixture(autouse=True)
def _quick_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """A key of a kind that is made at once; rpm's own kind takes seconds."""
    monkeypatch.setattr(rpm, "signer", lambda key, _: signing.signer(key))


class Builder(Podman):
    """Writes a file for each spec, as the container does, and keeps the specs."""

    def __init__(self) -> None:
        self.specs: dict[str, str] = {}
        self.builds = 0

    def run(self, *arguments: str, check: bool = True, timeout: float = 600) -> subprocess.CompletedProcess[str]:
        self.builds += 1
        work = Path(next(each.partition(":")[0] for each in arguments if each.endswith(":/build")))
        (work / "repository").mkdir()
        for spec in sorted((work / "specs").iterdir()):
            self.specs[spec.stem] = spec.read_text()
            (work / "repository" / f"{spec.stem}.el9.rpm").write_bytes(CONTENT)
        return subprocess.CompletedProcess(arguments, 0)


def build(folder: Path, release: str, fault: Fault | None) -> tuple[dict[str, str], dict[str, bytes]]:
    builder = Builder()
    build_rpm_repository(builder, "image", folder / "vendor", (release,), fault)
    shelf = folder / "vendor/artifactory/rhel/9/9.6"
    return builder.specs, {path.name: path.read_bytes() for path in shelf.iterdir()}


@pytest.mark.parametrize("release", ["1.23.0-695", "1.20.1-97"])
def test_a_set_of_rpm_packages_can_be_broken_too(tmp_path: Path, release: str) -> None:
    thunk = f"habanalabs-thunk-{release}.el9.rpm"
    whole, files = build(tmp_path, release, None)
    assert set(files.values()) == {CONTENT}
    specs, files = build(tmp_path, release, "missing-package")
    assert thunk not in files
    assert set(whole) - set(specs) == {f"habanalabs-thunk-{release}"}
    specs, _ = build(tmp_path, release, "unmet-depends")
    wanted = re.search(r"Requires: habanalabs-thunk = (\S+)\.el9", specs[f"habanalabs-graph-{release}"])
    assert wanted is not None
    assert wanted[1] == re.sub(r"\d+$", lambda build: str(int(build[0]) + 1), release)
    _, files = build(tmp_path, release, "truncated-package")
    assert {name for name, content in files.items() if content != CONTENT} == {thunk}
    assert CONTENT.startswith(files[thunk])
    _, files = build(tmp_path, release, None)
    assert set(files.values()) == {CONTENT}
    assert thunk in files


def test_rpm_packages_are_not_built_again_for_a_fault_of_the_signature(tmp_path: Path) -> None:
    builder = Builder()
    for fault in (None, "other-key", "expired"):
        build_rpm_repository(builder, "image", tmp_path / "vendor", ("1.23.0-695",), fault)
    assert builder.builds == 1
