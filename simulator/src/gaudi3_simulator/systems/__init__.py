"""Operating systems of simulated nodes, and the supported systems that a node can present itself as.

Nodes are Debian 11, 12 or 13, whose package versions bracket those of Ubuntu 22.04 and 24.04. A node that presents
itself as Ubuntu or Red Hat Enterprise Linux gives the facts that Ansible and the support matrix look at. It proves that
a role takes the right branch, writes the right files and stays as it is on a second run. It proves nothing about that
system's own packages: the node's are Debian's.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from .. import RequestError


@dataclass(frozen=True)
class System:
    """A Debian that nodes run."""

    name: str
    codename: str
    python: str
    """Version of its ``python3``."""

    @property
    def title(self) -> str:
        return "Debian " + self.name.partition("-")[2]

    @property
    def packages_folder(self) -> str:
        """Where its Python looks for packages that are not the distribution's, without the leading slash."""
        return f"usr/local/lib/python{self.python}/dist-packages"


SYSTEMS = {
    "debian-11": System("debian-11", "bullseye", "3.9"),
    "debian-12": System("debian-12", "bookworm", "3.11"),
    "debian-13": System("debian-13", "trixie", "3.13"),
}
DEFAULT = "debian-12"


@dataclass(frozen=True)
class Presentation:
    """A supported system, as a node's files name it."""

    name: str
    family: str
    """``ubuntu`` or ``rhel``."""
    version: str
    files: dict[str, str] = field(default_factory=dict)


def _ubuntu(version: str, point: str, codename: str, name: str) -> Presentation:
    title = f"Ubuntu {version}.{point} LTS"
    return Presentation(
        f"ubuntu-{version}",
        "ubuntu",
        version,
        {
            "/usr/lib/os-release": f'PRETTY_NAME="{title}"\nNAME="Ubuntu"\nVERSION_ID="{version}"\n'
            f'VERSION="{version}.{point} LTS ({name})"\nVERSION_CODENAME={codename}\nID=ubuntu\nID_LIKE=debian\n'
            f"UBUNTU_CODENAME={codename}\n",
            "/etc/lsb-release": f"DISTRIB_ID=Ubuntu\nDISTRIB_RELEASE={version}\nDISTRIB_CODENAME={codename}\n"
            f'DISTRIB_DESCRIPTION="{title}"\n',
        },
    )


def _rhel(version: str) -> Presentation:
    title = f"Red Hat Enterprise Linux {version} (Plow)"
    return Presentation(
        f"rhel-{version}",
        "rhel",
        version,
        {
            "/usr/lib/os-release": f'NAME="Red Hat Enterprise Linux"\nVERSION="{version} (Plow)"\nID="rhel"\n'
            f'ID_LIKE="fedora"\nVERSION_ID="{version}"\nPLATFORM_ID="platform:el9"\nPRETTY_NAME="{title}"\n',
            # Without it Ansible takes the long name of os-release for the distribution.
            "/etc/redhat-release": f"Red Hat Enterprise Linux release {version} (Plow)\n",
        },
    )


PRESENTATIONS = {
    each.name: each
    for each in (
        _ubuntu("22.04", "5", "jammy", "Jammy Jellyfish"),
        _ubuntu("24.04", "2", "noble", "Noble Numbat"),
        _rhel("9.4"),
        _rhel("9.6"),
    )
}


def choose(system: str, present_as: str) -> System:
    """The Debian of a node; SimulatorError where a name is unknown or the two do not go together."""
    if system and system not in SYSTEMS:
        raise RequestError(f"--system was {system}: give one of {', '.join(SYSTEMS)}.")
    if present_as and present_as not in PRESENTATIONS:
        raise RequestError(f"--present-as was {present_as}: give one of {', '.join(PRESENTATIONS)}.")
    if present_as and PRESENTATIONS[present_as].family == "rhel" and system == "debian-11":
        raise RequestError(f"--present-as {present_as} needs dnf of Debian 12 or 13: leave out --system.")
    return SYSTEMS[system or DEFAULT]
