# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""An apt node at work: reading it, asking the repository, carrying a plan out."""

from __future__ import annotations

import glob
import os
import tempfile
from typing import TYPE_CHECKING

from .._files import make_folder, write_file
from .._refusal import Refusal
from . import dpkg
from . import packages as apt
from .openpgp import Verdict, read_verdict
from .repository import (
    Repository,
    Source,
    Unreachable,
    check,
    follow,
    lacks_component,
    missing_release,
    names_only,
    other_sources,
)

if TYPE_CHECKING:
    from ansible.module_utils.basic import AnsibleModule

KEYRING = "/usr/share/keyrings/habana-artifactory.gpg"
SOURCE = "/etc/apt/sources.list.d/habana-artifactory.list"
PIN = "/etc/apt/preferences.d/habana-artifactory"
#: Where apt reads its sources.
SOURCES = ("/etc/apt/sources.list", "/etc/apt/sources.list.d/*.list", "/etc/apt/sources.list.d/*.sources")
OS_RELEASE = "/etc/os-release"


def read(path: str) -> bytes | None:
    """Content of a file, None where there is none."""
    try:
        with open(path, "rb") as stream:
            return stream.read()
    except FileNotFoundError:
        return None


_ADVICE = "check synapseai_repository_url, synapseai_apt_suite and synapseai_key_url"


def fetch(url: str, timeout: int, advice: str = _ADVICE) -> bytes:
    """Content of ``url``; Refusal, with advice, where it is not there."""
    from urllib.error import HTTPError, URLError

    from ansible.module_utils.urls import open_url

    try:
        content: bytes = open_url(url, timeout=timeout).read()
        return content
    except HTTPError as error:
        raise Refusal(f"{url} answered {error.code} {error.reason}; {advice}.") from error
    except (URLError, OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        raise Refusal(
            f"{url} cannot be reached ({reason}); check the URL, and the node's name resolution and proxy."
        ) from error


def redirection(url: str, timeout: int) -> str:
    """Where a host sends one on to for a file, empty where it has it; Unreachable where it has not.

    The first byte is asked for, not the head: addresses that a store signs are for one method.
    """
    from urllib.error import HTTPError, URLError

    from ansible.module_utils.urls import open_url

    try:
        open_url(url, timeout=timeout, follow_redirects="none", headers={"Range": "bytes=0-0"}).close()
    except HTTPError as error:
        target = str(error.headers.get("Location") or "")
        if error.code in (301, 302, 303, 307, 308) and target:
            return target
        raise Unreachable(f"{error.code} {error.reason}") from error
    except (URLError, OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        raise Unreachable(getattr(reason, "strerror", None) or str(reason)) from error
    return ""


_LIST_AGES = ("/var/lib/apt/lists", "/var/lib/apt/periodic/update-success-stamp")
"""What Ansible and apt's own timers take for the time of the last refresh of all lists."""


class Node:
    """The node as this module sees it: its package manager and three files."""

    def __init__(self, module: AnsibleModule, timeout: int) -> None:
        self.module = module
        self.timeout = timeout
        module.run_command_environ_update = {
            "LANGUAGE": "C",
            "LC_ALL": "C",
            "DEBIAN_FRONTEND": "noninteractive",
        }

    def run(self, command: list[str]) -> tuple[int, str, str]:
        """Run a command: status, output, errors."""
        status, output, errors = self.module.run_command(command)
        return int(status), str(output), str(errors)

    def run_or_fail(self, command: list[str], what: str) -> None:
        """Run a command that has to succeed."""
        self._checked(self.run(command), what)

    def _checked(self, done: tuple[int, str, str], what: str) -> None:
        status, output, errors = done
        if status:
            self.module.fail_json(
                msg=f"{what}: {apt.complaint(output, errors)}", rc=status, stdout=output, stderr=errors
            )

    def state(self, names: list[str]) -> dict[str, dpkg.Installed]:
        """What dpkg has of the family and of ``names``."""
        dpkg_query = self.module.get_bin_path("dpkg-query", required=True)
        return dpkg.read(self.run(dpkg.query(dpkg_query, [apt.FAMILY, *names]))[1])

    def verify(self, signed: bytes, keyring: bytes) -> tuple[Verdict, str]:
        """gpgv's verdict on a clear-signed text, and the text that it covers."""
        gpgv = self.module.get_bin_path("gpgv", required=True)
        with tempfile.TemporaryDirectory(dir=self.module.tmpdir) as folder:
            for name, content in (("keyring", keyring), ("signed", signed)):
                with open(os.path.join(folder, name), "wb") as stream:
                    stream.write(content)
            paths = {name: os.path.join(folder, name) for name in ("keyring", "signed", "text")}
            _code, status, _errors = self.run(
                [gpgv, "--homedir", folder, "--status-fd", "1", "--keyring", paths["keyring"],
                 "--output", paths["text"], paths["signed"]]
            )  # fmt: skip
            verdict = read_verdict(status)
            return verdict, (read(paths["text"]) or b"").decode(errors="replace")

    def write(self, path: str, content: bytes) -> None:
        """Write a file of root's that all may read, atomically."""
        make_folder(os.path.dirname(path))
        write_file(path, content)

    def install_prerequisites(self, plan: apt.Plan) -> None:
        """Install what the set needs beforehand."""
        if plan.prerequisites:
            apt_get = self.module.get_bin_path("apt-get", required=True)
            self.run_or_fail(apt.update_command(apt_get, self.timeout), "apt cannot refresh its package lists")
            self.run_or_fail(
                apt.prerequisites_command(apt_get, plan, self.timeout),
                "What synapseai_prerequisites names cannot be installed",
            )

    def refresh_vendor_lists(self, apt_get: str) -> None:
        """Refresh the vendor's lists alone, leaving the lists' age as it was.

        Others judge by that age whether the distribution's lists are fresh enough (``cache_valid_time`` of
        ansible.builtin.apt does), which this refresh says nothing about.
        """
        ages = [(path, os.stat(path)) for path in _LIST_AGES if os.path.exists(path)]
        self.run_or_fail(apt.update_command(apt_get, self.timeout, SOURCE), "apt cannot read the vendor's repository")
        for path, before in ages:
            os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))

    def carry_out(self, plan: apt.Plan, state: dict[str, dpkg.Installed], refresh: bool) -> None:
        """Install in one transaction, then hold."""
        apt_get = self.module.get_bin_path("apt-get", required=True)
        if refresh or plan.install:
            self.refresh_vendor_lists(apt_get)
        if plan.install:
            command = apt.install_command(apt_get, plan, state, self.timeout)
            if self.run([*command, "--simulate"])[0]:
                # The distribution's lists lack something: only then are they worth refreshing.
                self.run(apt.update_command(apt_get, self.timeout))
            self.run_or_fail(command, f"The packages of {plan.release} cannot be installed")
        if plan.hold or plan.install:
            apt_mark = self.module.get_bin_path("apt-mark", required=True)
            command = [apt_mark, "hold", *plan.packages]
            self._checked(dpkg.mark(self.run, command, self.timeout), "The packages cannot be put on hold")


def sources() -> dict[str, str]:
    """The texts of apt's source files, by path."""
    paths = [path for pattern in SOURCES for path in glob.glob(pattern)]
    return {path: (read(path) or b"").decode(errors="replace") for path in paths}


def foreign_sources(files: dict[str, str], url: str, take_over: bool) -> list[str]:
    """Other files that name the repository and are to be moved aside; Refusal where that is not to be done."""
    others = other_sources(files, url, SOURCE)
    mixed = [path for path in others if not names_only(files[path], url)]
    if others and not take_over:
        raise Refusal(
            f"{', '.join(others)} names {url} already, which apt refuses to have twice; set "
            "synapseai_take_over_sources=true to move it aside, or remove it."
        )
    if mixed:
        raise Refusal(
            f"{', '.join(mixed)} names {url} beside other repositories; take its lines out of that file and run again."
        )
    return others


#: Packages that compile on the node, and those that bring a compiler.
_COMPILED = ("habanalabs-dkms", "habanalabs-thunk")
_COMPILERS = ("build-essential", "gcc", "clang")
#: The package that needs pandoc, which Ubuntu has in universe.
_NEEDS_PANDOC = "habanalabs-rdma-core"
#: Packages of the distribution that say whether the set can be installed.
NEEDS = (*_COMPILERS, "pandoc")


def lacking(plan: apt.Plan, state: dict[str, dpkg.Installed], prerequisites: list[str], source: Source) -> str:
    """One sentence on what an Ubuntu lacks that packages need half-way through their installation; empty elsewhere."""
    system = (read(OS_RELEASE) or b"").decode(errors="replace").replace('"', "")
    if "ID=ubuntu" not in system.splitlines():
        return ""
    compiled = [name for name in _COMPILED if name in plan.install]
    if compiled and not any(name in state or name in prerequisites for name in _COMPILERS):
        return (
            f"{' and '.join(compiled)} is compiled on the node, which has no compiler; add build-essential to "
            "synapseai_prerequisites."
        )
    files = {path: text for path, text in sources().items() if path != SOURCE}
    without = lacks_component(files, source.suite, "universe", source.url)
    if _NEEDS_PANDOC in plan.install and "pandoc" not in state and without:
        return (
            f"{_NEEDS_PANDOC} needs pandoc of the component universe, which the node's sources of {source.suite} do "
            "not have; enable it with 'add-apt-repository universe', or install pandoc."
        )
    return ""


def open_repository(node: Node, source: Source, trusted: bytes | None, packages: list[str], release: str) -> Repository:
    """The repository, verified, with all ``packages`` at ``release`` and one of them within reach."""
    repository = check(source, trusted, lambda url: fetch(url, node.timeout), node.verify)
    problem = missing_release(repository, packages, release)
    if problem:
        raise Refusal(problem)
    places = [repository.places[name, release] for name in packages if (name, release) in repository.places]
    if places:
        follow(f"{source.url}/{places[0]}", lambda url: redirection(url, node.timeout))
    return repository
