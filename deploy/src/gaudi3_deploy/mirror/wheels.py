"""Wheels by their hashes, chosen by pip for the nodes' Python, and the index that pip reads them from."""

from __future__ import annotations

import html
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from gaudi3_deploy import given_file
from gaudi3_deploy.collection._known_bad import refuse_known_bad_pins
from gaudi3_deploy.collection._mirror import INDEX, WHEELS, poisoned
from gaudi3_deploy.collection._printable import printable
from gaudi3_deploy.collection._refusal import Refusal
from gaudi3_deploy.errors import DeployError, UsageError
from gaudi3_deploy.messages import reason
from gaudi3_deploy.mirror.download import Folder, Wanted

#: Of every Linux that the vendor supports, glibc is 2.34 or newer; machines with Gaudi 3 are x86-64.
_PLATFORMS = [f"manylinux_2_{minor}_x86_64" for minor in range(34, 4, -1)]
_PLATFORMS += ["manylinux2014_x86_64", "manylinux2010_x86_64", "manylinux1_x86_64", "linux_x86_64"]


def wheels(requirements: Path, python: str, index: str, extra_index: str = "") -> list[Wanted]:
    """The wheels that a file of requirements with hashes comes to, for a Python such as 3.12.

    Raises:
        UsageError: The file is missing, or names a release that must not be installed.
        DeployError: pip does not find them all.
    """
    try:
        text = given_file.read_text(requirements)
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{requirements} cannot be read ({reason(error)}): correct --requirements.") from error
    pins = {normal(name): version for name, version in re.findall(r"^([A-Za-z0-9._-]+)==([^\s;\\]+)", text, re.M)}
    try:
        refuse_known_bad_pins(str(requirements), pins)
    except Refusal as refusal:
        raise UsageError(str(refusal)) from refusal
    report = _report(requirements, python, index, extra_index)
    found = []
    for each in report:
        info = each["download_info"]
        url, digest = str(info["url"]), str(info["archive_info"]["hashes"]["sha256"])
        name = url.partition("#")[0].rpartition("/")[2]
        if not url.startswith(("http://", "https://")) or "@" in url.split("/")[2]:
            raise UsageError(f"pip takes {name} from {printable(url.partition(':')[0])}: give an index without a user.")
        found.append(Wanted(f"{WHEELS}/{name.replace('%2B', '+')}", url, digest))
    for path, said in poisoned(each.path for each in found):
        raise UsageError(f"{requirements} comes to {path.rpartition('/')[2]}, which {said}: write another release.")
    return found


def _report(
    requirements: Path, python: str, index: str, extra_index: str
) -> Sequence[dict[str, dict[str, dict[str, dict[str, str]]]]]:
    with tempfile.TemporaryDirectory() as target:
        command = [sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed", "--no-deps", "--quiet"]
        command += ["--disable-pip-version-check", "--require-hashes", "--only-binary", ":all:", "--target", target]
        command += ["--python-version", python, "--implementation", "cp", "--report", f"{target}/report.json"]
        command += [word for each in _PLATFORMS for word in ("--platform", each)]
        command += ["--index-url", index] if index else []
        command += ["--extra-index-url", extra_index] if extra_index else []
        done = subprocess.run([*command, "-r", str(requirements)], capture_output=True, text=True, check=False)
        if done.returncode:
            errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR")] or done.stderr.splitlines()
            raise DeployError(f"pip did not find all of {requirements}: {printable((errors or ['no reason'])[-1])}")
        found: Sequence[dict[str, dict[str, dict[str, dict[str, str]]]]]
        found = json.loads(Path(target, "report.json").read_text())["install"]
        return found


def normal(name: str) -> str:
    """A project's name as indexes write it.

    >>> normal("Jinja2.Extra_Things")
    'jinja2-extra-things'
    """
    return re.sub(r"[-_.]+", "-", name).lower()


def write_index(folder: Folder) -> None:
    """Write the pages that pip reads, for all wheels of a mirror."""
    projects: dict[str, list[str]] = {}
    for path in sorted(folder.files):
        if path.startswith(f"{WHEELS}/"):
            name = path.rpartition("/")[2]
            link = f"../../wheels/{name.replace('+', '%2B')}#sha256={folder.files[path].sha256}"
            projects.setdefault(normal(name.partition("-")[0]), []).append(_link(link, name))
    for project, links in projects.items():
        folder.put(f"{INDEX}/{project}/index.html", _page(links), "gaudi3-deploy mirror fill")
    if projects:
        links = [_link(f"{project}/", project) for project in sorted(projects)]
        folder.put(f"{INDEX}/index.html", _page(links), "gaudi3-deploy mirror fill")


def _link(target: str, name: str) -> str:
    return f'<a href="{html.escape(target)}">{html.escape(name)}</a><br>\n'


def _page(links: Sequence[str]) -> str:
    return f"<!DOCTYPE html>\n<html><body>\n{''.join(links)}</body></html>\n"
