"""synapseai_packages against a signed repository, with the real gpgv and apt: whose signature counts afterwards."""

from __future__ import annotations

import gzip
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from email.utils import formatdate
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.basic import AnsibleModule

from ansible_collections.gaudi3.scale.plugins.module_utils._apt import node as apt_node
from ansible_collections.gaudi3.scale.plugins.module_utils._apt.openpgp import fingerprints
from ansible_collections.gaudi3.scale.plugins.module_utils._module_bodies import packages
from ansible_collections.gaudi3.scale.plugins.modules import synapseai_packages

Run = Callable[..., dict[str, Any]]
NEEDED = ("gpg", "gpgv", "gpgconf", "apt-get")
pytestmark = pytest.mark.skipif(
    any(shutil.which(tool) is None for tool in NEEDED), reason=f"needs {', '.join(NEEDED)} of a Debian system"
)
PACKAGES = b"Package: habanalabs-dkms\nVersion: 1.23.0-695\nArchitecture: all\nFilename: x.deb\nSize: 1\nSHA256: 00\n"


class Keys:
    """Three keys made with gpg: of the vendor, of somebody else, and one of the vendor's that signs by a subkey."""

    def __init__(self, home: str) -> None:
        self.home = home
        self.vendor = self.make("vendor", "sign")
        self.other = self.make("other", "sign")
        self.parent = self.make("parent", "cert")
        self.gpg("--quick-add-key", self.parent, "ed25519", "sign", "never")

    def gpg(self, *arguments: str) -> bytes:
        command = ["gpg", "--homedir", self.home, "--batch", "--quiet", "--yes", "--pinentry-mode", "loopback"]
        done = subprocess.run([*command, "--passphrase", "", *arguments], capture_output=True, check=True)
        return done.stdout

    def make(self, name: str, usage: str) -> str:
        self.gpg("--quick-gen-key", f"{name} <{name}@example.org>", "ed25519", usage, "never")
        listing = self.gpg("--with-colons", "--list-keys", f"{name}@example.org").decode()
        return next(line.split(":")[9] for line in listing.splitlines() if line.startswith("fpr:"))

    def export(self, *names: str) -> bytes:
        """An armored key file; gpg sorts the keys of one export, so each is exported by itself."""
        return b"".join(self.gpg("--armor", "--export", name) for name in names)


@pytest.fixture(scope="module")
def keys() -> Iterator[Keys]:
    # Not below tmp_path, where the path of the agent's socket would be too long.
    home = tempfile.mkdtemp(prefix="gpg-")
    try:
        yield Keys(home)
    finally:
        subprocess.run(["gpgconf", "--homedir", home, "--kill", "all"], check=False)
        shutil.rmtree(home, ignore_errors=True)


class Vault:
    """A repository in a folder, a node's files beside it, and apt confined to them."""

    def __init__(self, folder: Path, keys: Keys) -> None:
        self.folder = folder
        self.keys = keys
        index = folder / "repo/dists/jammy/main/binary-amd64"
        index.mkdir(parents=True)
        (index / "Packages.gz").write_bytes(gzip.compress(PACKAGES, mtime=0))
        (folder / "repo/x.deb").touch()

    def sign(self, signer: str) -> None:
        suite = self.folder / "repo/dists/jammy"
        packed = (suite / "main/binary-amd64/Packages.gz").read_bytes()
        (suite / "Release").write_text(
            "Origin: test\nSuite: jammy\nCodename: jammy\nArchitectures: amd64\nComponents: main\n"
            f"Date: {formatdate(usegmt=True)}\nSHA256:\n"
            f" {hashlib.sha256(packed).hexdigest()} {len(packed)} main/binary-amd64/Packages.gz\n"
            f" {hashlib.sha256(PACKAGES).hexdigest()} {len(PACKAGES)} main/binary-amd64/Packages\n"
        )
        output = str(suite / "InRelease")
        self.keys.gpg("--local-user", signer, "--clearsign", "--output", output, str(suite / "Release"))

    def serve_key(self, *names: str) -> None:
        (self.folder / "repo/key").write_bytes(self.keys.export(*names))

    def update(self, command: list[str] | None = None) -> tuple[int, str, str]:
        """The real apt-get update with the source and the keyring that the module wrote, on empty lists."""
        root = self.folder / "root"
        shutil.rmtree(root, ignore_errors=True)
        (root / "lists/partial").mkdir(parents=True)
        (root / "cache/archives/partial").mkdir(parents=True)
        options = {
            "Dir::Etc": root / "etc",
            "Dir::Etc::SourceList": self.folder / "source",
            "Dir::Etc::SourceParts": "-",
            "Dir::State::Lists": root / "lists",
            "Dir::Cache": root / "cache",
            "APT::Sandbox::User": "root",
            "APT::Architecture": "amd64",
            "APT::Architectures": "amd64",
            "APT::Update::Error-Mode": "any",
        }
        words = [word for name, value in options.items() for word in ("-o", f"{name}={value}")]
        done = subprocess.run(
            [*(command or ["apt-get", "update"]), *words],
            env={**os.environ, "LC_ALL": "C", "APT_CONFIG": os.devnull},
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout, done.stderr

    def keyring(self) -> list[str]:
        return fingerprints((self.folder / "keyring").read_bytes())


@pytest.fixture
def vault(tmp_path: Path, keys: Keys, monkeypatch: pytest.MonkeyPatch) -> Vault:
    vault = Vault(tmp_path, keys)
    real = apt_node.Node.run

    def run(node: apt_node.Node, command: list[str]) -> tuple[int, str, str]:
        tool = Path(command[0]).name
        if tool == "gpgv":
            return real(node, command)
        if command[:2] == [command[0], "update"]:
            return vault.update(command)
        return 0, "", ""

    monkeypatch.setattr(apt_node.Node, "run", run)
    monkeypatch.setattr(
        AnsibleModule, "warn", lambda _module, warning: vault.__dict__.setdefault("w", []).append(warning)
    )
    for name in ("KEYRING", "SOURCE", "PIN"):
        monkeypatch.setattr(packages, name, str(tmp_path / name.lower()))
    monkeypatch.setattr(apt_node, "SOURCE", str(tmp_path / "source"))
    monkeypatch.setattr(apt_node, "_LIST_AGES", ())
    return vault


@pytest.fixture
def run(vault: Vault, run_module: Run) -> Run:
    def call(**options: Any) -> dict[str, Any]:
        repository = f"file://{vault.folder}/repo"
        given = {"release": "1.23.0-695", "packages": ["habanalabs-dkms"], "suite": "jammy", **options}
        return run_module(synapseai_packages, repository_url=repository, key_url=f"{repository}/key", **given)

    return call


@pytest.mark.parametrize("order", [("vendor", "other"), ("other", "vendor")])
def test_only_the_pinned_key_counts_whatever_else_is_in_the_key_file(
    vault: Vault, run: Run, keys: Keys, order: tuple[str, str]
) -> None:
    vault.serve_key(*order)
    vault.sign("vendor")
    result = run(key_fingerprint=keys.vendor)
    assert result["fingerprints"] == [keys.vendor], result
    assert vault.keyring() == [keys.vendor]
    assert vault.update()[0] == 0

    vault.sign("other")
    status, _output, errors = vault.update()
    assert (status, "is not signed" in errors) == (100, True), errors


def test_the_source_alone_pins_the_key_too(vault: Vault, run: Run, keys: Keys) -> None:
    vault.serve_key("vendor")
    vault.sign("vendor")
    run(key_fingerprint=keys.vendor)
    (vault.folder / "keyring").write_bytes(keys.gpg("--export", "vendor") + keys.gpg("--export", "other"))
    assert vault.update()[0] == 0
    vault.sign("other")
    assert vault.update()[0] == 100


def test_an_index_signed_by_another_key_of_the_key_file_is_refused(vault: Vault, run: Run, keys: Keys) -> None:
    vault.serve_key("vendor", "other")
    vault.sign("other")
    result = run(key_fingerprint=keys.vendor)
    assert f"not with the trusted key {keys.vendor}" in result["msg"]
    assert not (vault.folder / "keyring").exists()


def test_on_first_use_the_key_that_signs_is_kept_and_no_other(vault: Vault, run: Run, keys: Keys) -> None:
    vault.serve_key("other", "vendor")
    vault.sign("vendor")
    assert run()["fingerprints"] == [keys.vendor]
    assert vault.keyring() == [keys.vendor]
    (warning,) = vault.__dict__["w"]
    assert "is trusted on first use" in warning and keys.vendor in warning and keys.other not in warning
    vault.sign("other")
    assert vault.update()[0] == 100


def test_a_node_whose_keyring_holds_more_is_put_right_once(vault: Vault, run: Run, keys: Keys) -> None:
    vault.serve_key("vendor")
    vault.sign("vendor")
    run(key_fingerprint=keys.vendor)
    (vault.folder / "keyring").write_bytes(keys.gpg("--export", "other") + keys.gpg("--export", "vendor"))
    (vault.folder / "source").write_text(
        f"deb [signed-by={vault.folder}/keyring] file://{vault.folder}/repo jammy main\n"
    )
    assert run(key_fingerprint=keys.vendor, check=True)["changed"] is True
    assert run(key_fingerprint=keys.vendor)["changed"] is True
    assert vault.keyring() == [keys.vendor]


def test_a_signature_by_a_subkey_of_the_pinned_key_counts(vault: Vault, run: Run, keys: Keys) -> None:
    vault.serve_key("parent")
    vault.sign("parent")
    assert run(key_fingerprint=keys.parent)["fingerprints"] == [keys.parent]
    assert vault.update()[0] == 0
