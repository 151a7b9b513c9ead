# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""A package set that is to stand at one release: what dpkg has, what is to change, by which commands."""

from __future__ import annotations

from dataclasses import dataclass

from .._release.versions import Release, version_of
from .dpkg import Installed

#: Every package of the vendor's set is called so; those that are installed follow the release, named or not.
FAMILY = "habanalabs-*"


@dataclass(frozen=True)
class Plan:
    """What brings the set to the release; nothing to do where all three lists are empty."""

    release: str
    #: The whole set: asked for or installed.
    packages: list[str]
    install: list[str]
    hold: list[str]
    prerequisites: list[str]
    downgrades: list[str]

    @property
    def empty(self) -> bool:
        """Whether the node stands where it should."""
        return not (self.install or self.hold or self.prerequisites)


def make_plan(state: dict[str, Installed], packages: list[str], prerequisites: list[str], release: str) -> Plan:
    """Compare what is installed with the set at ``release``."""
    family = [name for name in state if name.startswith(FAMILY[:-1])]
    every = list(dict.fromkeys([*packages, *sorted(family)]))
    return Plan(
        release=release,
        packages=every,
        install=[name for name in every if name not in state or state[name].version != release],
        hold=[name for name in every if name not in state or not state[name].held],
        prerequisites=[name for name in prerequisites if name not in state],
        downgrades=[name for name in every if name in state and _is_newer(state[name].version, release)],
    )


def _is_newer(installed: str, release: str) -> bool:
    try:
        return Release.parse(installed) > Release.parse(release)
    except ValueError:
        return (version_of(installed) or "") > (version_of(release) or "")


def newer(state: dict[str, Installed], plan: Plan) -> str:
    """One sentence on a downgrade that was not asked for."""
    versions = sorted({state[name].version for name in plan.downgrades})
    return (
        f"{len(plan.downgrades)} packages are installed in a newer version ({', '.join(versions)}) than "
        f"{plan.release}; set synapseai_allow_downgrade=true to go back."
    )


def describe(state: dict[str, Installed], names: list[str]) -> str:
    """One line per package, for diffs."""
    lines = []
    for name in names:
        have = state.get(name)
        lines.append(f"{name} {have.version}{' (held)' if have.held else ''}" if have else f"{name} (not installed)")
    return "\n".join(lines) + "\n" if lines else ""


def describe_after(plan: Plan) -> str:
    """The same lines once the plan is carried out."""
    lines = [f"{name} {plan.release} (held)" for name in plan.packages]
    lines += [f"{name} (installed)" for name in plan.prerequisites]
    return "\n".join(lines) + "\n"


def preferences(release: str) -> str:
    """The apt pin; 1001 lets apt also go back to the release."""
    note = "# Managed by gaudi3.scale: the vendor's whole package set stays on one release.\n"
    return note + f"Package: {FAMILY}\nPin: version {release}\nPin-Priority: 1001\n"


def install_command(apt_get: str, plan: Plan, state: dict[str, Installed], lock_timeout: int) -> list[str]:
    """The one transaction that moves the whole set."""
    command = [*_install(apt_get, lock_timeout)]
    if plan.downgrades:
        command.append("--allow-downgrades")
    if any(name in state and state[name].held for name in plan.install):
        command.append("--allow-change-held-packages")
    return [*command, *(f"{name}={plan.release}" for name in plan.install)]


def prerequisites_command(apt_get: str, plan: Plan, lock_timeout: int) -> list[str]:
    """Installs what the set needs beforehand, in the distribution's own versions."""
    return [*_install(apt_get, lock_timeout), *plan.prerequisites]


def update_command(apt_get: str, lock_timeout: int, source: str | None = None) -> list[str]:
    """Refreshes the package lists: all, or those of one source file alone."""
    command = [apt_get, "update", "--quiet", "-o", f"DPkg::Lock::Timeout={lock_timeout}"]
    if source is None:
        return command
    only = [
        f"Dir::Etc::SourceList={source}",
        "Dir::Etc::SourceParts=-",
        "APT::Get::List-Cleanup=0",
        "APT::Update::Error-Mode=any",
    ]
    return command + [word for option in only for word in ("-o", option)]


def _install(apt_get: str, lock_timeout: int) -> list[str]:
    options = [
        f"DPkg::Lock::Timeout={lock_timeout}",
        # A configuration file that the administrator changed stays as it is.
        "Dpkg::Options::=--force-confdef",
        "Dpkg::Options::=--force-confold",
    ]
    words = [word for option in options for word in ("-o", option)]
    return [apt_get, "install", "--yes", "--quiet", "--no-install-recommends", *words]


def complaint(stdout: str, stderr: str) -> str:
    """The lines of apt's output that say what was wrong."""
    lines = [line.strip() for line in (stderr + "\n" + stdout).splitlines()]
    errors = [line for line in lines if line.startswith(("E:", "dpkg: error"))]
    depends = [line for line in lines if "Depends:" in line or "but it is not" in line]
    return " ".join((errors[:1] + depends[:3]) or [line for line in lines if line][-1:])
