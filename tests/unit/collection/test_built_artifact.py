"""What a built collection holds, told from galaxy.yml: ansible-galaxy leaves out what build_ignore matches."""

from __future__ import annotations

import fnmatch
import subprocess
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[3]
IGNORED = yaml.safe_load((ROOT / "galaxy.yml").read_text())["build_ignore"]


def shipped(path: str) -> bool:
    """Whether a file goes into the archive: neither it nor a folder above it is matched."""
    parts = path.split("/")
    above = ["/".join(parts[:depth]) for depth in range(1, len(parts) + 1)]
    return not any(fnmatch.fnmatch(each, pattern) for each in above for pattern in IGNORED)


@pytest.mark.parametrize(
    "path",
    [
        "examples/inventory/hosts.yml",
        "examples/inventory/group_vars/all.yml",
        "requirements/controller.txt",
        "requirements/controller.in",
        "playbooks/new_inventory.yml",
        "trainer/pyproject.toml",
        "trainer/src/gaudi3_scale/requirements.txt",
        "SECURITY.md",
    ],
)
def test_what_the_readme_needs_is_shipped(path: str) -> None:
    assert (ROOT / path).is_file() and shipped(path)


@pytest.mark.parametrize(
    "path",
    [
        "requirements/dev.txt",
        "requirements/trainer.txt",
        "requirements/torch.txt",
        "requirements/torch-cuda.txt",
        "requirements/hashes.py",
        "requirements/sbom.py",
        "requirements/docs.txt",
        "requirements/README.md",
        "inventories/simulated/nodes",
        "tests/plays/host.py",
        "trainer/tests/conftest.py",
        "simulator/README.md",
        ".ansible-lint",
        ".github/workflows/ci.yml",
        "Makefile",
    ],
)
def test_what_only_a_checkout_needs_is_not(path: str) -> None:
    assert not shipped(path)


def test_every_pattern_matches_something_or_a_product_of_builds() -> None:
    files = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    folders = {"/".join(file.split("/")[:depth]) for file in files for depth in range(1, file.count("/") + 1)}
    made = {"*.cdx.json", "*.tar.gz", "*.tar.gz.asc",
            "*.egg-info", "dist", "deployments", "terraform.tfstate.d", "*.tfstate", "*.tfstate.backup",
            "trainer/dist", "trainer/build"}  # fmt: skip
    unused = [
        pattern
        for pattern in IGNORED
        if "cache" not in pattern and pattern not in made and not fnmatch.filter([*files, *folders], pattern)
    ]
    assert unused == []
