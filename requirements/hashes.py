"""Write the SHA-256 of every file that the package indexes offer for a pinned version behind its pin.

    python requirements/hashes.py requirements/dev.txt

Versions and comments stay as they are. A version with a local part, such as 2.13.0+cpu, is torch's and on PyTorch's CPU
index; where that does not answer, its hashes stay as they are, too.
"""

from __future__ import annotations

import json
import re
import sys
import urllib.error
import urllib.request
from pathlib import Path
from urllib.parse import unquote

PYPI = "https://pypi.org/simple"
CPU = "https://download.pytorch.org/whl/cpu"
PIN = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)==([A-Za-z0-9.+!_-]+)( *;[^\\]*)?")


def get(url: str) -> bytes:
    accept = "application/vnd.pypi.simple.v1+json, text/html;q=0.5"
    with urllib.request.urlopen(urllib.request.Request(url, headers={"Accept": accept}), timeout=60) as answer:
        return bytes(answer.read())


def version_of(file: str, name: str) -> str:
    """The version that a wheel or a source archive has in its name."""
    stem = re.sub(r"\.(whl|tar\.gz|zip|tar\.bz2|tgz)$", "", file)
    return stem.split("-")[1] if file.endswith(".whl") else stem[len(name) + 1 :]


def from_pypi(name: str, version: str) -> set[str]:
    page = json.loads(get(f"{PYPI}/{re.sub(r'[-_.]+', '-', name).lower()}/"))
    return {each["hashes"]["sha256"] for each in page["files"] if version_of(each["filename"], name) == version}


def from_cpu_index(version: str) -> set[str]:
    links = re.findall(r"/torch-([^-/]+)-[^/#\"]*\.whl#sha256=([0-9a-f]{64})", get(f"{CPU}/torch/").decode())
    return {digest for found, digest in links if unquote(found) == version}


def block(pin: str, digests: set[str]) -> str:
    return " \\\n".join([pin, *(f"    --hash=sha256:{digest}" for digest in sorted(digests))])


def hashed(text: str) -> str:
    """The file with the hashes of its pins."""
    result = []
    for line in text.replace("\\\n", " ").splitlines():
        pin, *rest = line.split(" --hash=sha256:")
        match = PIN.fullmatch(pin.strip())
        if match is None:
            result.append(line)
            continue
        name, version = match[1], match[2]
        if "+" in version:
            try:
                digests = from_cpu_index(version)
            except (urllib.error.URLError, TimeoutError):
                digests = {each.strip() for each in rest}
        else:
            digests = from_pypi(name, version)
        if not digests:
            sys.exit(f"No index has a file of {name} {version}: pin a version that is there.")
        result.append(block(pin.strip(), digests))
    return "\n".join(result) + "\n"


if __name__ == "__main__":
    for path in map(Path, sys.argv[1:]):
        path.write_text(hashed(path.read_text(encoding="utf-8")), encoding="utf-8")
