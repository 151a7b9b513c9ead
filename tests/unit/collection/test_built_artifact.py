"""What a built collection holds, told from galaxy.yml: ansible-galaxy leaves out what build_ignore matches."""

from __future__ import annotations

import fnmatch
import re
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[3]
IGNORED = yaml.safe_load((ROOT / "galaxy.yml").read_text())["build_ignore"]
#: What is shipped, at the top of the tree, and what is not of what lies there.
TOP = {
    "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "README.md", "SECURITY.md", "benchmark-tool", "changelogs", "docs",
    "doctor", "examples", "meta", "migration", "playbooks", "plugins", "requirements", "roles", "terraform", "trainer",
    "watch",
}  # fmt: skip
ONLY_HERE = re.compile(
    r"requirements/(?!controller\.(?:in|txt)$)|changelogs/fragments/|"
    r"(?:benchmark-tool|doctor|migration|trainer|watch)/tests/|terraform/modules/\w+/tests/"
)


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
        "examples/inventory/.schemas/variables.schema.json",
        "examples/cost/.schemas/cost-inputs.schema.json",
        "requirements/controller.txt",
        "requirements/controller.in",
        "playbooks/new_inventory.yml",
        "trainer/pyproject.toml",
        "trainer/hatch_build.py",
        "benchmark-tool/src/gaudi3_benchmark/cli.py",
        "doctor/src/gaudi3_doctor/probes/base.py",
        "migration/src/gaudi3_migration/names.py",
        "watch/src/gaudi3_watch/static/index.html",
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
        "benchmark-tool/tests/conftest.py",
        "doctor/tests/conftest.py",
        "migration/tests/test_migration.py",
        "watch/tests/conftest.py",
        "simulator/README.md",
        "proofs/kill-matrix.md",
        ".ansible-lint",
        ".github/workflows/ci.yml",
        "Makefile",
    ],
)
def test_what_only_a_checkout_needs_is_not(path: str) -> None:
    assert not shipped(path)


#: What a checkout that was used has besides: secrets, states, environments, leftovers, of every kind that is known.
LITTER = (
    ".env", ".env.local", ".netrc", ".vault_pass", ".venv/bin/python", ".cache/big", ".terraform/providers/a",
    ".idea/a", "mine/hosts.yml", "mine/group_vars/all.yml", "mine/secrets/ca.key", "prod/hosts.ini", "inventory",
    "inventory.yml", "hosts", "hosts.yml", "group_vars/all/vault.yml", "host_vars/gaudi-1.yml", "vault.yml",
    "vault-password", "secrets.yml", "deployments/lab/terraform.tfstate", "deployments/lab/id_ed25519",
    "terraform.tfstate", "terraform.tfstate.d/a", "terraform.tfvars", "terraform.tfvars.json", "id_rsa",
    "id_ed25519.pub", "server.pem", "server.key", "kubeconfig", "docker-compose.yml", "doctor/gaudi-1.json",
    "health/fleet.json", "health/passports.key", "heal.log", "notes.txt", "plan", "plan.out", "tfplan", "core",
    "play.retry", "env/bin/python", "venv/bin/python", "run/checkpoint.pt", "a", "ab", "README.md.orig",
    "README.md~", "roles.bak/x/tasks/main.yml", "plugins2/a.py", "docs.old/a.md", "dist/a.whl",
    "gaudi3-scale-0.0.9.tar.gz", "gaudi3-scale-0.1.0.cdx.json", "trainer.log", "terraform.log", "requirements.yml",
    "changelogs/.plugin-cache.yaml", "changelogs/draft.txt", "docs/password.txt", "docs/.ipynb_checkpoints/a",
    "docs/x.pem", "examples/inventory/vault.yml", "examples/inventory/group_vars/vault.yml",
    "examples/inventory/host_vars/gaudi-1.yml", "examples/inventory/secrets/ca.key", "examples/.env",
    "examples/vault.json", "examples/.schemas/vault.yml", "examples/.ssh/a.yml", "examples/token.js",
    "meta/server.pem", "playbooks/hosts.yml", "playbooks/secrets.yml", "playbooks/group_vars/all.yml",
    "playbooks/host_vars/a.yml", "playbooks/site.retry", "playbooks/.vault_pass", "playbooks/vars/prod-vault.yml",
    "plugins/.env", "plugins/modules/id_rsa", "plugins/modules/a.pyc", "plugins/a.py.orig",
    "plugins/modules/__pycache__/a.cpython-311.pyc", "roles/trainer/files/server.key", "roles/trainer/files/ca.pem",
    "roles/trainer/files/ca.crt", "roles/trainer/vars/vault.yml", "roles/trainer/defaults/.main.yml.swp",
    "roles/trainer/files/id_ed25519", "roles/trainer/files/secrets.yml", "requirements/mine.txt",
    "requirements/.env", "terraform/aws/terraform.tfvars", "terraform/aws/mine.auto.tfvars",
    "terraform/aws/mine.auto.tfvars.json", "terraform/aws/backend.tf", "terraform/aws/backend.tf.json",
    "terraform/aws/.terraform/providers/a", "terraform/aws/.terraform.lock.hcl", "terraform/aws/terraform.tfstate",
    "terraform/aws/terraform.tfstate.backup", "terraform/aws/errored.tfstate", "terraform/aws/tfplan",
    "terraform/aws/plan", "terraform/aws/lab.tfplan", "terraform/aws/crash.log", "terraform/aws/override.tf",
    "terraform/aws/mine_override.tf", "terraform/aws/key.pem", "terraform/aws/id_ed25519",
    "terraform/aws/hosts.yml", "terraform/aws/inventory.yml", "terraform/aws/kubeconfig",
    "terraform/aws/credentials.json", "terraform/aws/secrets/a", "terraform/hosts/hosts.yml",
    "terraform/kubeconfig.yml", "trainer/.venv/bin/python", "trainer/.venv/lib/python3.11/site-packages/a.py",
    "trainer/venv/bin/python", "trainer/.pytest_cache/a", "trainer/.env", "trainer/dist/a.whl",
    "trainer/build/lib/a.py", "trainer/job.yml", "trainer/run/model.safetensors",
    "trainer/src/gaudi3_scale.egg-info/PKG-INFO", "trainer/src/a.pyc", "trainer/x.json",
    "benchmark-tool/a.json", "benchmark-tool/report.html", "benchmarks/mine.json", "benchmark/a.json", "bench/a.py",
    "doctor/x.json", "doctor/dist/a.whl", "doctor/src/a.pyc", "doctor/.venv/a.py",
    "migration/x.json", "migration/dist/a.whl", "migration/a.sh", "mine/a.py",
    "watch/x.pem", "watch/.venv/a.py", "watch/a.zip", "watchdog/a.py", "watch/node_modules/a.js",
)  # fmt: skip


@pytest.mark.parametrize("build", ["ansible-galaxy", "make build"])
def test_a_build_in_a_used_checkout_packs_what_git_tracks_and_nothing_else(tmp_path: Path, build: str) -> None:
    """The whole tree by its names: files of a few bytes, the contents of which do not count here."""
    checkout = tmp_path / "checkout"
    names = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    names = [name for name in names if (ROOT / name).is_file() and not (ROOT / name).is_symlink()]
    for name in (*names, *LITTER):
        (checkout / name).parent.mkdir(parents=True, exist_ok=True)
        (checkout / name).write_text("secret\n" if name in LITTER else "")
    (checkout / "galaxy.yml").write_bytes((ROOT / "galaxy.yml").read_bytes())
    assert not set(names) & set(LITTER)
    if build == "ansible-galaxy":
        galaxy = str(Path(sys.executable).with_name("ansible-galaxy"))
        subprocess.run([galaxy, "collection", "build", str(checkout), "--output-path", str(tmp_path)], check=True)
    else:
        for command in (["init", "--quiet"], ["add", "--force", "--pathspec-from-file=-"]):
            given = "\n".join(names) if "add" in command else None
            subprocess.run(["git", "-C", str(checkout), *command], input=given, text=True, check=True)
        artifact = [sys.executable, str(ROOT / "requirements/artifact.py"), str(checkout), str(tmp_path / "a.tar.gz")]
        subprocess.run(artifact, check=True)
    (built,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(built) as archive:
        packed = {member.name for member in archive if member.isfile()} - {"FILES.json", "MANIFEST.json"}
        folders = {member.name for member in archive if member.isdir()}
    assert packed == {name for name in names if name.split("/")[0] in TOP and not ONLY_HERE.match(name)}
    above = {"/".join(name.split("/")[:depth]) for name in packed for depth in range(1, name.count("/") + 1)}
    if build == "make build":
        assert folders == above
