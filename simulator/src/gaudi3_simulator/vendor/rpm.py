"""The vendor's packages as signed ``.rpm`` files, and their repository, for nodes with dnf.

rpmbuild, rpmsign and createrepo_c run in a container of the node image that has them, without a network.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from ..podman import Podman
from .catalogue import packages
from .deb import Package
from .faults import BROKEN, Fault, package_set
from .repository import RELEASES, check_releases
from .signing import signer

VERSIONS = ("9.4", "9.6")
# Names that differ from those of the Debian packages: see the vendor's installation pages.
_NAMES = {"habanalabs-dkms": "habanalabs"}
_SECTIONS = {"preinst": "%pre", "postinst": "%post", "prerm": "%preun", "postrm": "%postun"}
_BUILD = r"""
set -eu
cd /build
cp -r /keys /tmp/gnupg
chmod 0700 /tmp/gnupg
export GNUPGHOME=/tmp/gnupg
gpg --batch --quiet --import /tmp/gnupg/key.asc
for spec in specs/*.spec; do
  rpmbuild -bb --quiet --define '_topdir /tmp/rpm' --define "_sourcedir /build/trees/$(basename "$spec" .spec)" \
    --define '_dbpath /tmp/rpmdb' --define '_build_id_links none' --define '__os_install_post %{nil}' \
    --define 'debug_package %{nil}' --define 'source_date_epoch_from_changelog 0' "$spec"
done
mkdir -p repository
find /tmp/rpm/RPMS -name '*.rpm' -exec mv {} repository/ \;
rpmsign --define '_gpg_name FINGERPRINT' --define '__gpg /usr/bin/gpg' --addsign repository/*.rpm
createrepo_c --quiet repository
gpg --batch --yes --detach-sign --armor repository/repodata/repomd.xml
chmod -R u+rwX,go+rX repository
"""


def build_rpm_repository(
    podman: Podman, image: str, dest: Path, releases: Sequence[str] = RELEASES, fault: Fault | None = None
) -> None:
    """Build ``DEST/artifactory/rhel``, or leave it alone where it is what would be built.

    Of the faults, those of the package sets are made here; the signature is always good.
    """
    check_releases(releases)
    private = dest.with_name(f"{dest.name}-signing")
    record = private / "built-rpm.json"
    every = package_set((each for release in releases for each in packages(release)), fault)
    truncated = fault == "truncated-package"
    inputs = hashlib.sha256(Path(__file__).read_bytes() + bytes([truncated]))
    for package in every:
        inputs.update(spec(package).encode() + package.content)
    shelves = [dest / "artifactory" / "rhel" / "9" / version for version in VERSIONS]
    built = json.loads(record.read_text()) if record.exists() else {}
    if built.get("inputs") == inputs.hexdigest() and all(shelf.is_dir() for shelf in shelves):
        return
    record.unlink(missing_ok=True)
    with signer(private / "rpm-key.asc", "rsa4096") as sign, tempfile.TemporaryDirectory(dir=dest.parent) as folder:
        work = Path(folder)
        keys = work / "keys"
        keys.mkdir(mode=0o700)
        shutil.copy(private / "rpm-key.asc", keys / "key.asc")
        _lay_out(work, every)
        (work / "build.sh").write_text(_BUILD.replace("FINGERPRINT", sign.fingerprint))
        podman.run(
            "run", "--rm", "--network", "none", "-v", f"{work}:/build", "-v", f"{keys}:/keys:ro", image,
            "sh", "/build/build.sh",
        )  # fmt: skip
        for path in (work / "repository").glob(f"{BROKEN}-*.rpm") if truncated else ():
            # The index has the size and digest of the whole file.
            path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
        for shelf in shelves:
            shutil.rmtree(shelf, ignore_errors=True)
            shelf.parent.mkdir(parents=True, exist_ok=True)
            shutil.copytree(work / "repository", shelf)
        public = dest / "artifactory" / "gaudi-general" / "keyPairs" / "primary" / "public"
        public.parent.mkdir(parents=True, exist_ok=True)
        public.write_bytes(sign.public_key())
    record.write_text(json.dumps({"inputs": inputs.hexdigest()}))


def _lay_out(work: Path, every: Sequence[Package]) -> None:
    """A spec and the files of each package, where the build looks for them."""
    (work / "specs").mkdir()
    for package in every:
        label = f"{package.name}-{package.version}"
        (work / "specs" / f"{label}.spec").write_text(spec(package))
        tree = work / "trees" / label
        tree.mkdir(parents=True)
        for path, file in package.files.items():
            target = tree / path.lstrip("/")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(file.data)
            target.chmod(file.mode)


def spec(package: Package) -> str:
    """The recipe of one package: the same files and scripts as its Debian form."""
    version, _, build = package.version.partition("-")
    lines = [
        f"Name: {_NAMES.get(package.name, package.name)}",
        f"Version: {version}",
        f"Release: {build}.el9",
        f"Summary: Simulated stand-in for {package.name}",
        "License: Apache-2.0",
        "AutoReqProv: no",
    ]
    lines += ["BuildArch: noarch"] if package.architecture == "all" else ["BuildArch: x86_64"]
    lines += [f"Requires: {requirement(each)}" for each in package.depends]
    lines += ["%description", package.summary, "Made by the gaudi3.scale simulator: it holds nothing of the vendor's."]
    lines += ["%install", 'cp -a %{_sourcedir}/. "$RPM_BUILD_ROOT"/', "%files"]
    for path, file in sorted(package.files.items()):
        kind = "%config(noreplace) " if path.startswith("/etc/") else ""
        lines.append(f'%attr({file.mode:04o}, root, root) {kind}"{path}"')
    for name, text in sorted(package.scripts.items()):
        lines += [_SECTIONS[name], text.partition("\n")[2].rstrip()]
    return "\n".join(lines) + "\n"


def requirement(depends: str) -> str:
    """``habanalabs-thunk (= 1.23.0-695)`` as rpm writes it."""
    match = re.fullmatch(r"(\S+) \(= (\S+)\)", depends)
    return f"{_NAMES.get(match[1], match[1])} = {match[2]}.el9" if match else depends
