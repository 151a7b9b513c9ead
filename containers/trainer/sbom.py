"""Writes what an image is made of as CycloneDX: distributions of Python, and packages of the system.

Runs in the image, with its Python and the standard library alone. The same image gives the same file.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import uuid
from importlib.metadata import distributions
from pathlib import Path
from typing import Any
from urllib.parse import quote

NAMESPACE = uuid.UUID("6f1b1f0e-3f0c-5c58-9d6f-6a8f2c9b6a11")


def component(kind: str, name: str, version: str, **more: Any) -> dict[str, Any]:
    """One part, known by its package URL."""
    url = f"pkg:{kind}/{quote(name, safe='/')}@{quote(version, safe='')}"
    return {"type": "library", "bom-ref": url, "name": name.rpartition("/")[2], "version": version, "purl": url, **more}


def of_python() -> list[dict[str, Any]]:
    """What pip and others have installed."""
    found = {}
    for each in distributions():
        name, version = each.metadata["Name"], each.metadata["Version"]
        if name and version:
            (given,) = each.metadata.get_all("License-Expression") or [""]
            licences = {"licenses": [{"expression": given}]} if given else {}
            found[name.lower()] = component("pypi", name.lower().replace("_", "-"), version, **licences)
    return list(found.values())


def of_system(release: str = "/etc/os-release") -> list[dict[str, Any]]:
    """Packages of dpkg or rpm; none where the image has neither."""
    known = {}
    if Path(release).exists():
        lines = Path(release).read_text(encoding="utf-8").splitlines()
        known = {name: value.strip('"') for name, _equals, value in (line.partition("=") for line in lines)}
    system = known.get("ID", "linux")
    queries = {
        "deb": ["dpkg-query", "--show", "--showformat", "${db:Status-Status} ${Package} ${Version}\\n"],
        "rpm": ["rpm", "-qa", "--queryformat", "installed %{NAME} %{VERSION}-%{RELEASE}\\n"],
    }
    for kind, command in queries.items():
        if shutil.which(command[0]):
            output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
            # dpkg also lists packages that were removed and have left their configuration.
            return [
                component(kind, f"{system}/{name}", version)
                for status, _blank, rest in (line.partition(" ") for line in output.splitlines())
                if status == "installed"
                for name, version in (rest.split(),)
            ]
    return []


def bill(base: str, version: str, components: list[dict[str, Any]]) -> dict[str, Any]:
    """The document."""
    parts = sorted(components, key=lambda each: str(each["bom-ref"]))
    whole = {"type": "container", "bom-ref": "image", "name": "gaudi3-scale-trainer", "version": version}
    seed = json.dumps([base, version, parts], sort_keys=True)
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(NAMESPACE, seed)}",
        "version": 1,
        "metadata": {"component": {**whole, "properties": [{"name": "base image", "value": base}]}},
        "components": parts,
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--base", required=True)
    parser.add_argument("--version", required=True)
    parser.add_argument("output", type=Path)
    given = parser.parse_args()
    given.output.parent.mkdir(parents=True, exist_ok=True)
    document = bill(given.base, given.version, [*of_python(), *of_system()])
    given.output.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
