"""Monitoring packages for RHEL in a mirror: node_exporter of EPEL, with what EPEL has of what it needs."""

from __future__ import annotations

import gzip
import hashlib
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from conftest import ROOT
from gaudi3_deploy.errors import DeployError
from gaudi3_deploy.mirror import dnf, fill, monitoring
from gaudi3_deploy.mirror.download import Folder
from gaudi3_deploy.mirror.sealed import verify

from tests.served_folder import served

RELEASE = "1.23.0-695"
HEAD = '<?xml version="1.0" encoding="UTF-8"?>\n<{} xmlns="http://linux.duke.edu/metadata/{}"'
RPM = 'xmlns:rpm="http://linux.duke.edu/metadata/rpm"'
#: Name, epoch, version, release, machine, what it needs, what it provides.
VENDOR = [("habanalabs", 0, "1.23.0", "695.el9", "x86_64", "", "")]
EPEL = [
    ("node-exporter", 0, "1.9.1", "2.el9", "x86_64", "old-need", ""),
    ("node-exporter", 0, "1.10.2", "3.el9", "x86_64", "/bin/sh shadow-utils helper(x86-64) /usr/bin/tool", ""),
    ("node-exporter", 0, "9.0", "1.el9", "aarch64", "", ""),
    ("helper-libs", 1, "1", "1.el9", "x86_64", "node-exporter", "helper(x86-64)"),
    ("helper-libs", 0, "7", "1.el9", "x86_64", "", "helper(x86-64)"),
    ("tools", 0, "2", "1.el9", "noarch", "", "/usr/bin/tool"),
    ("old-need", 0, "1", "1.el9", "x86_64", "", ""),
    ("dkms", 0, "3.2.2", "1.el9", "noarch", "gcc", ""),
]  # fmt: skip


def repository(folder: Path, rows: list[tuple[str, int, str, str, str, str, str]]) -> None:
    """A repository as createrepo_c makes it."""
    (folder / "repodata").mkdir(parents=True)
    text = HEAD.format("metadata", "common") + f' {RPM} packages="{len(rows)}">\n'
    for name, epoch, version, release, machine, needs, gives in rows:
        path = f"Packages/{name[0]}/{name}-{version}-{release}.{machine}.rpm"
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        content = path.encode()
        (folder / path).write_bytes(content)
        provides = [each for each in [name, *gives.split()] if not each.startswith("/")]
        files = [f"<file>{each}</file>" for each in gives.split() if each.startswith("/")]
        listed = {"provides": provides, "requires": needs.split()}
        entries = "".join(
            f"<rpm:{kind}>" + "".join(f'<rpm:entry name="{each}"/>' for each in names) + f"</rpm:{kind}>"
            for kind, names in listed.items()
        )
        about = entries + "".join(files)
        text += (
            f'<package type="rpm"><name>{name}</name><arch>{machine}</arch>'
            f'<version epoch="{epoch}" ver="{version}" rel="{release}"/>'
            f'<checksum type="sha256" pkgid="YES">{hashlib.sha256(content).hexdigest()}</checksum>'
            f'<size package="{len(content)}"/><location href="{path}"/><format>{about}</format></package>\n'
        )
    lists = {"primary": text + "</metadata>\n", "filelists": "<filelists/>\n"}
    data = ""
    for kind, content_of in lists.items():
        packed = gzip.compress(content_of.encode(), mtime=0)
        digest = hashlib.sha256(packed).hexdigest()
        (folder / f"repodata/{kind}.xml.gz").write_bytes(packed)
        data += (
            f'<data type="{kind}"><checksum type="sha256">{digest}</checksum>'
            f'<location href="repodata/{kind}.xml.gz"/><size>{len(packed)}</size></data>'
        )
    (folder / "repodata/repomd.xml").write_text(HEAD.format("repomd", "repo") + f" {RPM}>{data}</repomd>\n")


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """The vendor's repository for RHEL, EPEL, and Grafana's."""
    root = tmp_path / "outside"
    repository(root / "artifactory/rhel/9/9.4", VENDOR)
    repository(root / "epel", EPEL)
    for path in ("artifactory/gaudi-general/keyPairs/primary/public", "key-of-epel"):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text("a key")
    return root


def test_the_role_says_what_is_installed_on_rhel() -> None:
    defaults = yaml.safe_load((ROOT / "roles/node_exporter/defaults/main.yml").read_text())
    assert monitoring.RPM_PACKAGES == ("node-exporter",)
    assert defaults["node_exporter_package"].startswith("{{ 'node-exporter' if ansible_facts.os_family == 'RedHat' ")
    sources = monitoring.sources_of(ROOT)
    assert sources.epel == "https://dl.fedoraproject.org/pub/epel/9/Everything/x86_64"
    assert sources.epel_key == "https://dl.fedoraproject.org/pub/epel/RPM-GPG-KEY-EPEL-9"


def test_node_exporter_with_what_it_needs_of_epel_and_what_is_not_there_is_said_first(
    outside: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fill, "grafana", lambda _folder, _sources: [])
    said: list[str] = []
    with served(outside) as address:
        sources = replace(monitoring.sources_of(ROOT), epel=f"{address}/epel", epel_key=f"{address}/key-of-epel")
        request = fill.Request(RELEASE, ("RedHat 9.4",), f"{address}/artifactory", False, monitoring=sources)
        lock, _fetched = fill.fill(tmp_path / "mirror", request, said.append)
    assert said[0] == (
        "Of the monitoring packages the mirror gets node_exporter for RHEL, and Grafana. Prometheus, Alertmanager and "
        "Grafana run on Ubuntu and Debian alone: add --system 'Ubuntu 24.04' for a monitoring host with it."
    )
    assert sorted(path for path in lock.files if path.startswith("epel/")) == [
        "epel/9/Packages/h/helper-libs-1-1.el9.x86_64.rpm",
        "epel/9/Packages/n/node-exporter-1.10.2-3.el9.x86_64.rpm",
        "epel/9/Packages/t/tools-2-1.el9.noarch.rpm",
        "epel/9/repodata/filelists.xml.gz",
        "epel/9/repodata/primary.xml.gz",
        "epel/9/repodata/repomd.xml",
        "epel/RPM-GPG-KEY-EPEL-9",
    ]
    assert verify(tmp_path / "mirror")[1] == []


def test_a_package_that_epel_lacks_is_said_by_name(outside: Path, tmp_path: Path) -> None:
    folder = Folder.open(tmp_path / "mirror", RELEASE, list[str]().append)
    with served(outside) as address, pytest.raises(DeployError) as caught:
        dnf.closure(folder, f"{address}/epel", "epel/9", ["prometheus"])
    assert str(caught.value) == f"{address}/epel has no prometheus, which the role needs."
    assert not list((tmp_path / "mirror").rglob("*.rpm"))
