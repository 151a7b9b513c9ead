"""`make build` packs what git tracks, and the same sources give the same bytes."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[3]
#: What a used checkout has besides its sources.
LEFT_BEHIND = (
    "terraform/aws/terraform.tfvars",
    "terraform/aws/mine.auto.tfvars",
    "terraform/aws/mine.auto.tfvars.json",
    "terraform/aws/backend.tf",
    "terraform/aws/.terraform/providers/a",
    "trainer/.venv/bin/python",
)


def git(folder: Path, *arguments: str) -> str:
    given = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null", "PATH": os.environ["PATH"]}
    who = ["-c", "user.name=nobody", "-c", "user.email=nobody@example.org"]
    command = ["git", "-C", str(folder), *who, *arguments]
    return subprocess.run(command, env=given, check=True, capture_output=True, text=True).stdout


def build(folder: Path) -> Path:
    artifact = folder.with_suffix(".tar.gz")
    subprocess.run([sys.executable, ROOT / "requirements/artifact.py", folder, artifact], check=True)
    return artifact


def test_two_used_checkouts_give_one_archive_without_what_is_not_tracked(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    about = {"namespace": "gaudi3", "name": "scale", "version": "9.9.9", "readme": "README.md", "authors": ["nobody"]}
    sources = {
        "galaxy.yml": yaml.safe_dump({**about, "license": ["Apache-2.0"], "dependencies": {}}),
        "README.md": "honest\n",
        "terraform/aws/main.tf": "",
        "roles/b/files/run": "#!/bin/sh\n",
        **{f"plugins/module_utils/{name}.py": "" for name in "zax"},
        ".gitignore": (ROOT / ".gitignore").read_text(),
    }
    for name, text in sources.items():
        (first / name).parent.mkdir(parents=True, exist_ok=True)
        (first / name).write_text(text)
    (first / "roles/b/files/run").chmod(0o755)
    git(first, "init", "--quiet")
    git(first, "add", ".")
    git(first, "commit", "--quiet", "--message", "sources")
    git(tmp_path, "clone", "--quiet", str(first), str(second))
    for name in sorted(sources, reverse=True):  # another order, other times, another umask
        data = (second / name).read_bytes()
        mode = (second / name).stat().st_mode & 0o700
        (second / name).unlink()
        (second / name).write_bytes(data)
        (second / name).chmod(mode)
        os.utime(second / name, (1, 1))
    for name in LEFT_BEHIND:
        (second / name).parent.mkdir(parents=True, exist_ok=True)
        (second / name).write_text("secret\n")
    assert git(second, "add", "--dry-run", "--all") == ""

    built = [build(folder) for folder in (first, second)]
    assert len({hashlib.sha256(artifact.read_bytes()).hexdigest() for artifact in built}) == 1
    with tarfile.open(built[1]) as archive:
        modes = {member.name: member.mode for member in archive if member.isfile()}
        listed = archive.extractfile("FILES.json")
        assert listed is not None
        names = [entry["name"] for entry in json.load(listed)["files"]]
    assert names == sorted(names), "as the file system has them"
    assert set(modes) == {*sources, "FILES.json", "MANIFEST.json"} - {"galaxy.yml"}
    assert modes["roles/b/files/run"] == 0o755 and modes["README.md"] == 0o644
    galaxy = Path(sys.executable).with_name("ansible-galaxy")
    install = [str(galaxy), "collection", "install", str(built[1]), "-p", str(tmp_path / "there")]
    subprocess.run(install, check=True, capture_output=True)
