"""What a provider's resources take, out of a cdktf wheel: ``python extract_schema.py WHEEL PROVIDER VERSION``.

Writes tests/terraform/schemas/PROVIDER.json with the types that terraform/ uses. The wheels (PyPI
cdktf-cdktf-provider-google 16.12.1 and -azurerm 14.23.1, MPL-2.0) hold bindings that were generated from the
provider's own schema: names of arguments and
attributes, what is required, what nests. Types of values are not in it.
"""

from __future__ import annotations

import io
import json
import re
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parents[1]
META = {"connection", "count", "depends_on", "for_each", "lifecycle", "provider", "provisioners"}

#: Properties of every class of the bindings, which are none of the resource.
CDKTF = {"tf_resource_type", "cdktf_stack", "fqn", "friendly_unique_id", "terraform_meta_arguments", "raw_overrides"}


def assembly(wheel: Path) -> Any:
    """The jsii description of the bindings in a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [each for each in archive.namelist() if each.endswith(".jsii.tgz")]
        with tarfile.open(fileobj=io.BytesIO(archive.read(name))) as tar:
            member = tar.extractfile("package/.jsii")
            assert member is not None
            return json.load(member)


def snake(name: str) -> str:
    """A property's name as Terraform writes it."""
    return re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name).lower()


def arguments(described: Any, struct: str, seen: frozenset[str] = frozenset()) -> dict[str, Any]:
    """Arguments of a configuration struct, with those of its blocks."""
    types = described["types"]
    found: dict[str, Any] = {}
    if struct in seen:
        return found
    for each in types.get(struct, {}).get("properties", []):
        docs = each.get("docs", {})
        text = " ".join(docs.get(key, "") for key in ("summary", "remarks", "see"))
        told = re.search(r"\w+#([a-z0-9_]+)\}", text)
        entry: dict[str, Any] = {"required": not each.get("optional", False)}
        inner = [
            name
            for name in re.findall(r'"fqn": "([^"]+)"', json.dumps(each["type"]))
            if name.startswith(described["name"] + ".") and types[name].get("datatype")
        ]
        if inner:
            entry["block"] = arguments(described, inner[0], seen | {struct})
        found[told.group(1) if told else snake(each["name"])] = entry
    return found


def schema(described: Any, used: set[str]) -> dict[str, dict[str, Any]]:
    """The used resources and data sources."""
    out: dict[str, dict[str, Any]] = {"resource": {}, "data": {}}
    for entry in described["types"].values():
        if not any(each["name"] == "tfResourceType" for each in entry.get("properties", [])):
            continue
        text = json.dumps(entry.get("docs", {}))
        told = re.search(r"docs/(resources|data-sources)/[a-z0-9_]+ ([a-z0-9_]+)\}", text)
        if told is None or told.group(2) not in used:
            continue
        (config,) = [
            each["type"]["fqn"]
            for each in entry["initializer"]["parameters"]
            if each.get("type", {}).get("fqn", "").endswith("Config")
        ]
        kind = "resource" if told.group(1) == "resources" else "data"
        found = arguments(described, config)
        out[kind][told.group(2)] = {
            "arguments": {name: each for name, each in found.items() if name not in META},
            "attributes": sorted({snake(each["name"]) for each in entry["properties"]} - CDKTF),
        }
    return {kind: dict(sorted(each.items())) for kind, each in out.items()}


def main(wheel: str, provider: str, version: str) -> None:
    """See the module."""
    used = set()
    for path in (HERE.parents[1] / "terraform").rglob("*.tf"):
        used.update(re.findall(rf'^(?:resource|data) "({provider}_\w+)"', path.read_text(), re.MULTILINE))
    about = {"provider": provider, "version": version, "source": Path(wheel).name, "licence": "MPL-2.0"}
    target = HERE / "schemas" / f"{provider}.json"
    target.parent.mkdir(exist_ok=True)
    target.write_text(json.dumps({**about, **schema(assembly(Path(wheel)), used)}, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
