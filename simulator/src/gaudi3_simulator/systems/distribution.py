"""What a supported system's own repositories have and Debian's do not: stand-ins without content.

The roles install a compiler and kernel headers under the names of Ubuntu or Red Hat. No module is compiled on a
simulated node, so empty packages of these names are enough; their descriptions say what they are.
"""

from __future__ import annotations

import platform

from ..vendor.deb import Package
from ..vendor.index import packages_text, pool_path
from . import Presentation

SHELF = "/usr/lib/gaudi3-simulator/distribution"
_DNF_FILES = {
    # Debian's rpm looks for its database in the caller's home and for a gpg2 that does not exist.
    "/etc/rpm/macros": "%_dbpath /var/lib/rpm\n%__gpg /usr/bin/gpg\n",
    "/etc/dnf/vars/releasever": "9\n",
    # Debian has this plugin on: it copies each package aside and shows that copy as its origin.
    "/etc/dnf/plugins/local.conf": "[main]\nenabled = 0\n",
    "/etc/yum.repos.d/.keep": "",
}


def files(presented: Presentation, kernel: str = "") -> dict[str, bytes]:
    """Every file that makes a node present itself so, by absolute path."""
    kernel = kernel or platform.release()
    found = {path: text.encode() for path, text in presented.files.items()}
    if presented.family == "ubuntu":
        names = ("build-essential", f"linux-headers-{kernel}", f"linux-modules-extra-{kernel}")
        every = [_headers(name, presented) for name in names]
        found |= {f"{SHELF}/{pool_path(each)}": each.content for each in every}
        found[f"{SHELF}/Packages"] = packages_text(every).encode()
        source = f"deb [trusted=yes] file:{SHELF} ./\n"
        found["/etc/apt/sources.list.d/gaudi3-simulator.list"] = source.encode()
    else:
        found |= {path: text.encode() for path, text in _DNF_FILES.items()}
        found[f"{SHELF}/base.spec"] = base_spec(presented, kernel).encode()
    return found


def _headers(name: str, presented: Presentation) -> Package:
    return Package(name, f"{presented.version}.1", "all", f"Stands in for {name}: no module is compiled here.")


def base_spec(presented: Presentation, kernel: str) -> str:
    """The rpm database of a Debian is empty: one package that provides what the vendor's packages need."""
    provides = ["system-release(releasever) = 9", f"system-release = {presented.version}", "/bin/sh", "/usr/bin/sh"]
    provides += [
        "dkms",
        "ethtool",
        "gcc",
        "make",
        "kmod",
        "nftables",
        "systemd = 252",
        f"kernel-devel-{kernel}",
        f"kernel-headers-{kernel}",
    ]
    return (
        f"Name: redhat-release\nVersion: {presented.version}\nRelease: 1\nBuildArch: noarch\nLicense: Apache-2.0\n"
        "Summary: Simulated stand-in for the base system\n"
        + "".join(f"Provides: {each}\n" for each in provides)
        + "%description\nMade by the gaudi3.scale simulator: it holds nothing and provides names only.\n%files\n"
    )


def install_script(presented: Presentation) -> str:
    """What a booted node runs once; empty where the files are enough."""
    if presented.family != "rhel":
        return ""
    return (
        "set -eu\nwork=$(mktemp -d)\nmkdir -p /etc/pki/rpm-gpg\n"
        f'rpmbuild -bb --quiet --define "_topdir $work" {SHELF}/base.spec\n'
        'rpm -i "$work"/RPMS/noarch/*.rpm\nrm -rf "$work"\n'
    )
