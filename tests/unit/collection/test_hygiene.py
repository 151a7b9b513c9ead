"""Workflows call the targets that developers call, and the bill of materials and the signature hold."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[3]
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
TARGETS = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
ACTIONS = {"actions/checkout", "actions/setup-python", "actions/upload-artifact"}


def steps(path: Path) -> list[dict[str, Any]]:
    jobs = yaml.safe_load(path.read_text())["jobs"]
    return [step for job in jobs.values() for step in job["steps"]]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_calls_targets_that_there_are(path: Path) -> None:
    called = [step["run"].split()[1:] for step in steps(path) if step.get("run", "").startswith("make ")]
    assert called and {target for targets in called for target in targets} <= TARGETS


def test_the_workflows_lint_test_build_and_audit() -> None:
    runs = {step["run"] for path in WORKFLOWS for step in steps(path) if "run" in step}
    assert {"make lint", "make unit", "make plays", "make test", "make build", "make audit"} <= runs


def test_actions_are_github_s_own_by_their_major_version() -> None:
    used = [step["uses"] for path in WORKFLOWS for step in steps(path) if "uses" in step]
    assert {action.partition("@")[0] for action in used} <= ACTIONS
    assert [action for action in used if not re.fullmatch(r"[\w/-]+@v\d+", action)] == []


def test_workflows_may_read_alone() -> None:
    assert [yaml.safe_load(path.read_text())["permissions"] for path in WORKFLOWS] == [{"contents": "read"}] * 4


def test_updates_are_looked_for_where_pins_and_actions_are() -> None:
    updates = yaml.safe_load((ROOT / ".github/dependabot.yml").read_text())["updates"]
    assert {each["package-ecosystem"]: each["directory"] for each in updates} == {
        "pip": "/requirements", "github-actions": "/",
    }  # fmt: skip
    assert list((ROOT / "requirements").glob("*.in"))


@pytest.fixture(scope="module")
def artifact(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small collection, built by ansible-galaxy."""
    source = tmp_path_factory.mktemp("small")
    about = {"namespace": "gaudi3", "name": "scale", "version": "9.9.9", "readme": "README.md", "authors": ["nobody"]}
    (source / "galaxy.yml").write_text(yaml.safe_dump({**about, "license": ["Apache-2.0"], "dependencies": {}}))
    (source / "README.md").write_text("honest\n")
    galaxy("build", str(source), "--output-path", str(source))
    return source / "gaudi3-scale-9.9.9.tar.gz"


def galaxy(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [Path(sys.executable).with_name("ansible-galaxy"), "collection", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_bill_of_materials_lists_the_collection_and_every_pin(artifact: Path) -> None:
    written = artifact.with_name("gaudi3-scale-9.9.9.cdx.json")
    for _ in range(2):
        subprocess.run([sys.executable, ROOT / "requirements/sbom.py", artifact], check=True, capture_output=True)
    bill = json.loads(written.read_text())
    assert (bill["bomFormat"], bill["specVersion"], bill["version"]) == ("CycloneDX", "1.6", 1)
    about = bill["metadata"]["component"]
    assert (about["name"], about["version"], about["licenses"]) == (
        "gaudi3.scale", "9.9.9", [{"license": {"id": "Apache-2.0"}}],
    )  # fmt: skip
    assert about["hashes"][0]["alg"] == "SHA-256" and len(about["hashes"][0]["content"]) == 64
    listed = {each["purl"]: {p["value"] for p in each["properties"]} for each in bill["components"]}
    for path in (ROOT / "requirements").glob("*.txt"):
        for name, version in re.findall(r"^([^#\s][^=\s]*)==(\S+)", path.read_text(), re.MULTILINE):
            purl = f"pkg:pypi/{re.sub('[-_.]+', '-', name).lower()}@{quote(version)}"
            assert path.stem in listed[purl], purl
    assert listed["pkg:pypi/torch@2.13.0%2Bcpu"] == {"torch"}
    assert len(listed) == len(bill["components"]) > 200


def changed(artifact: Path, target: Path, name: str, old: bytes, new: bytes) -> Path:
    """The artifact with other bytes in one of its files."""
    with tarfile.open(artifact) as given, tarfile.open(target, "w:gz") as out:
        for member in given:
            data = given.extractfile(member)
            content = data.read() if data else b""
            if member.name == name:
                assert old in content
                content = content.replace(old, new)
                member.size = len(content)
            out.addfile(member, io.BytesIO(content))
    return target


@pytest.mark.skipif(not shutil.which("gpg"), reason="gpg is missing: apt-get install gpg")
def test_what_was_changed_after_it_was_signed_is_refused(artifact: Path, tmp_path: Path) -> None:
    home = tmp_path / "gnupg"
    home.mkdir(mode=0o700)
    environment = {**os.environ, "GNUPGHOME": str(home)}
    who = "A throw-away key <nobody@example.org>"
    key = ["gpg", "--batch", "--passphrase", "", "--quick-generate-key", who, "ed25519", "sign", "1d"]
    subprocess.run(key, env=environment, check=True, capture_output=True)
    sign = ["make", "--no-print-directory", "sign", f"ARTIFACT={artifact}"]
    refused = subprocess.run([*sign, "KEY="], cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert refused.returncode and refused.stdout.startswith("KEY is not set: give the fingerprint of the key to sign")
    subprocess.run([*sign, f"KEY={who}"], cwd=ROOT, env=environment, check=True, capture_output=True)
    keyring, signature = tmp_path / "keyring.gpg", f"file://{artifact}.asc"
    public = subprocess.run(["gpg", "--export"], env=environment, check=True, capture_output=True).stdout
    keyring.write_bytes(public)
    subprocess.run(["gpgconf", "--kill", "all"], env=environment, check=False)

    def check(file: Path) -> tuple[int, str]:
        """Install and verify, as SECURITY.md says; how it ended."""
        place = ["-p", str(tmp_path / f"at-{file.parent.name}")]
        installed = galaxy("install", str(file), *place)
        if installed.returncode:
            return installed.returncode, installed.stderr
        given = ["--offline", "--keyring", str(keyring), "--signature", signature]
        verified = galaxy("verify", "gaudi3.scale", *given, *place)
        return verified.returncode, verified.stdout + verified.stderr

    code, said = check(artifact)
    assert code == 0, said
    for name, old, new, sentence in [
        ("README.md", b"honest", b"hostile", "Checksum mismatch for 'README.md' inside collection"),
        ("MANIFEST.json", b'"nobody"', b'"somebody"', "Signature verification failed for 'gaudi3.scale'"),
    ]:
        place = tmp_path / name
        place.mkdir()
        code, said = check(changed(artifact, place / artifact.name, name, old, new))
        assert code and sentence in said
