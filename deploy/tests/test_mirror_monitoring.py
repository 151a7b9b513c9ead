"""Monitoring packages in a mirror: the newest with all that they need, as the real apt takes them from nowhere else."""

from __future__ import annotations

import gzip
import os
import subprocess
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from conftest import ROOT
from gaudi3_deploy.errors import DeployError
from gaudi3_deploy.mirror import fill, monitoring
from gaudi3_deploy.mirror.sealed import Lock, verify

from gaudi3_simulator.vendor.deb import EPOCH, Package
from gaudi3_simulator.vendor.index import packages_text, pool_path, release_text
from gaudi3_simulator.vendor.repository import build_repository
from gaudi3_simulator.vendor.signing import Signer, signer
from tests.network_alone import ADDRESS, alone_with
from tests.served_folder import served

RELEASE = "1.23.0-695"
NAMES = monitoring.PACKAGES


def package(name: str, version: str, *depends: str) -> Package:
    """A package of nothing."""
    return Package(name, version, "amd64", "made for a test", depends)


# What only an older prometheus needs is not wanted: debconf.
MAIN = [package("libc6", "2.35"), package("debconf", "1.5"), package("mawk", "1.3"), package("unused", "1")]
UNIVERSE = [
    package(NAMES[0], "2.31.2-1", "libc6 (>= 2.34)", "debconf (>= 0.5) | debconf-2.0", "libjs-jquery"),
    package(NAMES[1], "0.23.0-4", "libc6", "nobody-has-it | awk"),
    package(NAMES[2], "1.3.1-1", "libc6"),
    package("libjs-jquery", "3.6.0", "libc6"),
]
NEWER = [package(NAMES[0], "2.31.2-1ubuntu0.1", "libc6", "debconf-2.0", "libjs-jquery", "libjs-newer")]
NEWER += [package("libjs-newer", "1", NAMES[0])]
GRAFANA = [package("grafana", version, "libc6") for version in ("11.9.0", "12.9.0", "12.10.1", "13.0.0")]
GRAFANA += [package("grafana-enterprise", "12.11.0")]


def suite(root: Path, name: str, components: dict[str, list[Package]], sign: Signer, *, provides: str = "") -> None:
    """A suite of a signed archive."""
    indexes: dict[str, bytes] = {}
    for component, packages in components.items():
        text = packages_text(packages)
        if provides:
            text = text.replace("Package: mawk\n", f"Package: mawk\nProvides: {provides}\n")
        path = f"{component}/binary-amd64/Packages"
        indexes |= {path: text.encode(), f"{path}.gz": gzip.compress(text.encode(), mtime=EPOCH)}
        for each in packages:
            target = root / pool_path(each)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(each.content)
    release = release_text(name, indexes, None)
    release = release.replace("Components: main\n", f"Components: {' '.join(components)}\nAcquire-By-Hash: yes\n")
    dists = root / "dists" / name
    dists.mkdir(parents=True)
    (dists / "InRelease").write_bytes(sign.clear_sign(release.encode()))
    for path, content in indexes.items():
        (dists / path).parent.mkdir(parents=True, exist_ok=True)
        (dists / path).write_bytes(content)


@pytest.fixture(scope="module")
def outside(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All that is on the internet: the vendor's repository, Ubuntu's archive and Grafana's."""
    root = tmp_path_factory.mktemp("outside")
    build_repository(root / "vendor/vault", (RELEASE,))
    with signer(root / "key.asc") as sign:
        (root / "public.asc").write_bytes(sign.public_key())
        suite(root / "ubuntu", "jammy", {"main": MAIN, "universe": UNIVERSE}, sign, provides="awk, debconf-2.0 (= 1)")
        suite(root / "ubuntu", "jammy-updates", {"main": [], "universe": NEWER}, sign)
        suite(root / "ubuntu", "jammy-security", {"main": [], "universe": []}, sign)
        suite(root / "grafana", "stable", {"main": GRAFANA}, sign)
    (root / "grafana/gpg.key").write_bytes((root / "public.asc").read_bytes())
    return root


@pytest.fixture(scope="module")
def mirror(outside: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Lock]:
    """A mirror that was filled from there."""
    folder = tmp_path_factory.mktemp("mirror") / "mirror"
    with served(outside) as address:
        sources = replace(
            monitoring.sources_of(ROOT), grafana=f"{address}/grafana", grafana_key=f"{address}/grafana/gpg.key",
            distribution=f"{address}/ubuntu",
        )  # fmt: skip
        vault = f"{address}/vendor/vault/artifactory"
        request = fill.Request(RELEASE, ("Ubuntu 22.04",), vault, False, monitoring=sources)
        lock, _fetched = fill.fill(folder, request, list[str]().append)
    return folder, lock


def named(paths: Iterable[str], below: str) -> list[str]:
    """The packages of a repository in the mirror."""
    return sorted(path.rpartition("/")[2] for path in paths if path.startswith(below) and path.endswith(".deb"))


def test_the_roles_say_what_is_installed() -> None:
    sources = monitoring.sources_of(ROOT)
    assert (sources.grafana, sources.grafana_key) == ("https://apt.grafana.com", "https://apt.grafana.com/gpg.key")
    assert sources.grafana_package == "grafana=12.*"
    for role, name in zip(("prometheus", "alertmanager", "node_exporter"), NAMES, strict=True):
        defaults = yaml.safe_load((ROOT / f"roles/{role}/defaults/main.yml").read_text())
        assert defaults[f"{role}_package"] == name or f" else '{name}' " in defaults[f"{role}_package"]


def test_the_newest_packages_with_all_that_they_need_and_no_more(mirror: tuple[Path, Lock], outside: Path) -> None:
    folder, lock = mirror
    assert named(lock.files, "grafana/apt/pool/") == ["grafana_12.10.1_amd64.deb"]
    assert named(lock.files, "ubuntu/pool/") == [
        "libc6_2.35_amd64.deb",
        "libjs-jquery_3.6.0_amd64.deb",
        "libjs-newer_1_amd64.deb",
        "mawk_1.3_amd64.deb",
        "prometheus-alertmanager_0.23.0-4_amd64.deb",
        "prometheus-node-exporter_1.3.1-1_amd64.deb",
        "prometheus_2.31.2-1ubuntu0.1_amd64.deb",
    ]
    for path in ("ubuntu/dists/jammy-updates/InRelease", "ubuntu/dists/jammy/universe/binary-amd64/Packages.gz"):
        assert (folder / path).read_bytes() == (outside / path).read_bytes(), "signed by its publisher"
    assert verify(folder)[1] == []
    assert fill.variables(lock, "https://m")["grafana_repository_url"] == "https://m/grafana/apt"
    assert fill.variables(lock, "https://m")["grafana_repository_key_url"] == "https://m/grafana/gpg.key"


def test_what_no_archive_has_is_said_by_name() -> None:
    listed = [{"Package": "a", "Version": "1", "Depends": "b | c:any (>= 1), d"}, {"Package": "c", "Version": "1"}]
    with pytest.raises(DeployError, match=r"^The distribution's index has no d, which a needs\.$"):
        monitoring.closure(listed, ["a"])
    with pytest.raises(DeployError, match=r"^The distribution's index has no z, which the role needs\.$"):
        monitoring.closure(listed, ["z"])


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes a network: apt did NOT install from the mirror")
def test_apt_installs_from_the_mirror_where_there_is_no_other_way(
    mirror: tuple[Path, Lock], outside: Path, tmp_path: Path
) -> None:
    """In a network of its own, which has nothing but this mirror: signatures, indexes and packages are enough."""
    folder, lock = mirror
    for name in ("lists/partial", "archives/partial", "etc/apt.conf.d", "etc/preferences.d", "etc/sources.list.d"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "status").touch()
    key = outside / "public.asc"
    jammy = f"URIs: {ADDRESS}/ubuntu\nSuites: jammy jammy-updates jammy-security\nComponents: main universe\n"
    stable = f"URIs: {ADDRESS}/grafana/apt\nSuites: stable\nComponents: main\n"
    for name, text in (("ubuntu", jammy), ("grafana", stable)):
        source = f"Types: deb\n{text}Architectures: amd64\nSigned-By: {key}\n"
        (tmp_path / f"etc/sources.list.d/{name}.sources").write_text(source)
    options = {
        "Dir::Etc": tmp_path / "etc", "Dir::State::status": tmp_path / "status", "Dir::Cache": tmp_path,
        "Dir::State::lists": tmp_path / "lists", "APT::Architecture": "amd64", "APT::Architectures": "amd64",
        "APT::Sandbox::User": "root", "Acquire::Languages": "none", "Debug::NoLocking": "1",
    }  # fmt: skip
    apt = " ".join(["apt-get", "-q", *(f"-o {name}={value}" for name, value in options.items())])
    script = (
        f"{apt} update && {apt} install --yes --download-only --no-install-recommends {' '.join(NAMES)} grafana=12.*"
    )
    done = subprocess.run([*alone_with(folder), "sh", "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "W:" not in done.stderr, done.stderr
    fetched = {path.name for path in (tmp_path / "archives").glob("*.deb")}
    assert {"grafana_12.10.1_amd64.deb", "prometheus_2.31.2-1ubuntu0.1_amd64.deb"} <= fetched
    assert fetched == {*named(lock.files, "ubuntu/pool/"), "grafana_12.10.1_amd64.deb"}
