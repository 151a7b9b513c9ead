"""The simulated vendor repository, judged with apt's own tools: gpgv and dpkg-deb."""

from __future__ import annotations

import gzip
import hashlib
import subprocess
from pathlib import Path

import pytest

from gaudi3_simulator.vendor import RELEASES, Fault, Repository, build_repository
from gaudi3_simulator.vendor.catalogue import packages

SET = {
    "habanalabs-dkms": "all",
    "habanalabs-firmware": "amd64",
    "habanalabs-firmware-tools": "amd64",
    "habanalabs-firmware-odm": "amd64",
    "habanalabs-thunk": "all",
    "habanalabs-rdma-core": "all",
    "habanalabs-graph": "amd64",
    "habanalabs-qual": "amd64",
    "habanalabs-qual-workloads": "amd64",
    "habanalabs-container-runtime": "amd64",
    "habanalabs-perf-test": "amd64",
}


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    return build_repository(tmp_path_factory.mktemp("good") / "vendor")


def suite(repository: Repository, name: str = "jammy") -> Path:
    return repository.root / "artifactory/debian/dists" / name


def gpgv(repository: Repository, *files: Path) -> subprocess.CompletedProcess[str]:
    key = (repository.root / "artifactory/api/gpg/key/public").read_bytes()
    keyring = repository.root / "keyring"
    dearmored = subprocess.run(["gpg", "--dearmor"], input=key, capture_output=True, check=True).stdout
    keyring.write_bytes(dearmored)
    return subprocess.run(
        ["gpgv", "--status-fd", "1", "--keyring", str(keyring), *map(str, files)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip


def stanzas(repository: Repository, name: str = "jammy") -> list[dict[str, str]]:
    text = (suite(repository, name) / "main/binary-amd64/Packages").read_text()
    paragraphs = [paragraph.splitlines() for paragraph in text.split("\n\n")]
    return [dict(line.split(": ", 1) for line in lines if line[:1] != " ") for lines in paragraphs]


def members(repository: Repository, name: str, release: str) -> str:
    found = next(each for each in stanzas(repository) if (each["Package"], each["Version"]) == (name, release))
    path = repository.root / "artifactory/debian" / found["Filename"]
    return subprocess.run(["dpkg-deb", "-c", path], capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("name", ["jammy", "noble"])
def test_gpgv_finds_both_signatures_good(repository: Repository, name: str) -> None:
    folder = suite(repository, name)
    assert f"VALIDSIG {repository.fingerprint}" in gpgv(repository, folder / "InRelease").stdout
    detached = gpgv(repository, folder / "Release.gpg", folder / "Release")
    assert f"VALIDSIG {repository.fingerprint}" in detached.stdout


def test_every_package_is_there_in_every_release_with_the_vendors_architecture(repository: Repository) -> None:
    found = {(each["Package"], each["Version"]): each["Architecture"] for each in stanzas(repository)}
    assert found == {(name, release): kind for name, kind in SET.items() for release in RELEASES}


def test_digests_hold_from_release_to_package(repository: Repository) -> None:
    folder = suite(repository)
    index = (folder / "main/binary-amd64/Packages").read_bytes()
    assert gzip.decompress((folder / "main/binary-amd64/Packages.gz").read_bytes()) == index
    assert (
        f" {hashlib.sha256(index).hexdigest()} {len(index)} main/binary-amd64/Packages\n"
        in (folder / "Release").read_text()
    )
    for each in stanzas(repository):
        content = (repository.root / "artifactory/debian" / each["Filename"]).read_bytes()
        assert (each["SHA256"], int(each["Size"])) == (hashlib.sha256(content).hexdigest(), len(content))


def test_packages_need_each_other_in_the_same_release() -> None:
    for release in RELEASES:
        by_name = {package.name: package for package in packages(release)}
        inside = [need for package in by_name.values() for need in package.depends if need.startswith("habanalabs-")]
        assert "habanalabs-graph (= " + release + ")" in inside
        assert all(need.endswith(f" (= {release})") and need.split()[0] in by_name for need in inside)


def test_the_tools_lie_where_the_vendor_has_them(repository: Repository) -> None:
    assert "./usr/bin/hl-smi\n" in members(repository, "habanalabs-firmware-tools", "1.23.0-695")
    assert "./opt/habanalabs/qual/gaudi3/bin/manage_network_ifs.sh\n" in members(
        repository, "habanalabs-qual", "1.23.0-695"
    )
    assert "./lib/firmware/habanalabs/gaudi3/gaudi3-boot-fit.itb\n" in members(
        repository, "habanalabs-firmware", "1.23.0-695"
    )


@pytest.mark.parametrize(
    ("release", "there"), [("1.20.1-97", False), ("1.21.0-555", True), ("1.22.0-740", True), ("1.23.0-695", True)]
)
def test_the_compatibility_module_comes_with_newer_releases_only(release: str, there: bool) -> None:
    driver = next(package for package in packages(release) if package.name == "habanalabs-dkms")
    assert (f"/usr/src/habanalabs-{release}/habanalabs_compat.ko" in driver.files) is there


def test_every_package_says_that_it_is_simulated(repository: Repository) -> None:
    text = (suite(repository) / "main/binary-amd64/Packages").read_text()
    assert text.count("Description: Simulated stand-in for habanalabs-") == len(SET) * len(RELEASES)


def test_the_private_key_is_not_served(repository: Repository) -> None:
    key = repository.root.with_name("vendor-signing") / "key.asc"
    assert key.stat().st_mode & 0o777 == 0o600
    served = [path for path in (repository.root / "artifactory").rglob("*") if path.is_file()]
    assert not [path for path in served if b"PRIVATE KEY" in path.read_bytes()]


def test_equal_inputs_give_equal_bytes_and_the_key_is_kept(tmp_path: Path) -> None:
    def content(repository: Repository) -> dict[str, bytes]:
        root = repository.root / "artifactory/debian"
        files = [
            path for path in root.rglob("*") if path.suffix in (".deb", ".gz") or path.name in ("Packages", "Release")
        ]
        return {str(path.relative_to(root)): path.read_bytes() for path in files}

    first = build_repository(tmp_path / "one/vendor", RELEASES[:1])
    again = build_repository(tmp_path / "two/vendor", RELEASES[:1])
    assert content(first) == content(again)
    more = build_repository(tmp_path / "one/vendor", RELEASES)
    assert more.fingerprint == first.fingerprint != again.fingerprint


def test_an_unchanged_repository_is_not_built_again(tmp_path: Path) -> None:
    repository = build_repository(tmp_path / "vendor", RELEASES[:1])
    marker = suite(repository) / "InRelease"
    before = marker.stat()
    build_repository(tmp_path / "vendor", RELEASES[:1])
    assert (marker.stat().st_ino, marker.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    build_repository(tmp_path / "vendor", RELEASES[:2])
    assert {each["Version"] for each in stanzas(repository)} == set(RELEASES[:2])


@pytest.mark.parametrize(
    ("fault", "word"), [("other-key", "NO_PUBKEY"), ("tampered-release", "BADSIG"), ("expired", "VALIDSIG")]
)
def test_a_faulty_signature_is_found_by_gpgv(tmp_path: Path, fault: Fault, word: str) -> None:
    repository = build_repository(tmp_path / "vendor", RELEASES[:1], fault)
    assert word in gpgv(repository, suite(repository) / "InRelease").stdout
    assert ("Valid-Until: Thu, 02 Jan 2025" in (suite(repository) / "Release").read_text()) is (fault == "expired")


def test_a_tampered_index_does_not_have_the_signed_digest(tmp_path: Path) -> None:
    repository = build_repository(tmp_path / "vendor", RELEASES[:1], "tampered-index")
    folder = suite(repository)
    assert "VALIDSIG" in gpgv(repository, folder / "InRelease").stdout
    for name in ("Packages", "Packages.gz"):
        digest = hashlib.sha256((folder / "main/binary-amd64" / name).read_bytes()).hexdigest()
        assert digest not in (folder / "Release").read_text()
