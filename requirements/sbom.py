"""Write the bill of materials of a built collection beside it, as CycloneDX JSON.

    python requirements/sbom.py gaudi3-scale-0.1.0.tar.gz

It lists the collection and every pinned Python package, with the lists that it is in. Equal inputs make equal files.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
import tarfile
import uuid
from pathlib import Path
from typing import Any
from urllib.parse import quote

HERE = Path(__file__).resolve().parent
PIN = re.compile(r"^([A-Za-z0-9][A-Za-z0-9._-]*)==([A-Za-z0-9.+!_-]+)", re.MULTILINE)


def pinned() -> dict[tuple[str, str], list[str]]:
    """The lists that a package is in, by name and version."""
    found: dict[tuple[str, str], list[str]] = {}
    for path in sorted(HERE.glob("*.txt")):
        for name, version in PIN.findall(path.read_text(encoding="utf-8")):
            found.setdefault((re.sub(r"[-_.]+", "-", name).lower(), version), []).append(path.stem)
    return dict(sorted(found.items()))


def component(name: str, version: str, lists: list[str]) -> dict[str, Any]:
    url = f"pkg:pypi/{name}@{quote(version, safe='.')}"
    properties = [{"name": "gaudi3.scale:list", "value": each} for each in lists]
    return {"type": "library", "bom-ref": url, "name": name, "version": version, "purl": url, "properties": properties}


def bill(artifact: Path) -> dict[str, Any]:
    with tarfile.open(artifact) as archive:
        manifest = archive.extractfile("MANIFEST.json")
        assert manifest is not None
        about = json.load(manifest)["collection_info"]
    digest = hashlib.sha256(artifact.read_bytes()).hexdigest()
    name = f"{about['namespace']}.{about['name']}"
    components = [component(*key, lists) for key, lists in pinned().items()]
    inputs = json.dumps([digest, components])
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, inputs)}",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": f"{name}@{about['version']}",
                "name": name,
                "version": about["version"],
                "licenses": [{"license": {"id": each}} for each in about["license"]],
                "hashes": [{"alg": "SHA-256", "content": digest}],
            }
        },
        "components": components,
    }


if __name__ == "__main__":
    for given in map(Path, sys.argv[1:]):
        target = given.with_name(given.name.removesuffix(".tar.gz") + ".cdx.json")
        target.write_text(json.dumps(bill(given), indent=2) + "\n", encoding="utf-8")
        print(f"Wrote {target}")
