"""Write what follows from the modules: the roots, the tables in the READMEs, and docs/clouds/instances.md.

    python terraform/generate.py           # write
    python terraform/generate.py --check   # say what is out of step, exit code 1

A module says each thing once: its variables with their checks, its outputs, the catalogue its types. The roots repeat
variables and outputs (Terraform has no other way to pass them on). A root's README lists its own ones, and
terraform/README.md those of every cloud.
"""

from __future__ import annotations

import json
import pprint
import re
import sys
import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
CLOUDS = ("aws", "azure", "gcp", "ibm", "onprem")
#: Modules that those of the clouds call.
INNER = ("cluster", "inventory")
#: Files of a module that its root repeats as they are.
SHARED = ("interface.tf", "machines.tf")
BEGIN, END = "<!-- BEGIN GENERATED: python terraform/generate.py -->", "<!-- END GENERATED -->"
NOTICE = "# Written by terraform/generate.py from terraform/modules/{cloud}, where each variable is checked.\n\n"


@dataclass(frozen=True)
class Block:
    """A variable or an output, as its file has it."""

    kind: str
    name: str
    text: str

    def argument(self, name: str) -> str | None:
        """The text of an argument, over as many lines as it has; None where it is missing."""
        match = re.search(rf"^  {name}\s*= ", self.text, re.MULTILINE)
        if match is None:
            return None
        value = ""
        for line in self.text[match.end() :].splitlines():
            value += line + "\n"
            if value.count("(") + value.count("{") + value.count("[") == (
                value.count(")") + value.count("}") + value.count("]")
            ):
                break
        return value.strip()

    @property
    def description(self) -> str:
        """What it is, without quotes."""
        return (self.argument("description") or '""')[1:-1].replace('\\"', '"')

    @property
    def validations(self) -> int:
        """How many checks it has."""
        return len(re.findall(r"^  validation \{", self.text, re.MULTILINE))

    def bare(self) -> str:
        """Without its checks."""
        return re.sub(r"\n\n  validation \{\n.*?\n  \}(?=\n)", "", self.text, flags=re.DOTALL)


def blocks_of(path: Path, kind: str) -> Iterator[Block]:
    """Blocks of one kind of a file."""
    for match in re.finditer(rf'^{kind} "(\w+)" \{{\n.*?^\}}\n', path.read_text(), re.MULTILINE | re.DOTALL):
        yield Block(kind, match.group(1), match.group(0))


def blocks(folder: Path, kind: str) -> Iterator[Block]:
    """Blocks of one kind of a module, file by file."""
    for path in sorted(folder.glob("*.tf")):
        yield from blocks_of(path, kind)


def root_files(cloud: str) -> dict[str, str]:
    """The files of a root that follow from its module."""
    module = HERE / "modules" / cloud
    notice = NOTICE.format(cloud=cloud)
    variables = list(blocks(module, "variable"))
    shared = {name: (module / name).read_text() for name in SHARED if (module / name).exists()}
    own = [block.bare() for block in variables if not any(block.text in text for text in shared.values())]
    width = max(len(block.name) for block in variables)
    passed = "".join(f"  {block.name:{width}} = var.{block.name}\n" for block in variables)
    output = 'output "{0}" {{\n  description = "{1}"\n{2}  value       = module.cluster.{0}\n}}\n'
    outputs = [
        output.format(block.name, block.description, "  sensitive   = true\n" if block.argument("sensitive") else "")
        for block in blocks(module, "output")
    ]
    return {
        **shared,
        "variables.tf": notice + "\n".join(own),
        "main.tf": f'{notice}module "cluster" {{\n  source = "../modules/{cloud}"\n\n{passed}}}\n',
        "outputs.tf": notice + "\n".join(outputs),
    }


def cell(text: str) -> str:
    """A text in one cell of a table."""
    return " ".join(text.split()).replace("|", "\\|")


def variable_table(variables: Iterable[Block]) -> list[str]:
    """Variables as a table, those without a default first; nothing where there are none."""
    lines = []
    for block in sorted(variables, key=lambda each: (each.argument("default") is not None, each.name)):
        kind = re.sub(r"\((?:.|\n)*\)$", "(...)", block.argument("type") or "") if "object" in block.text else None
        default = block.argument("default")
        lines.append(
            f"| `{block.name}` | `{cell(kind or block.argument('type') or '')}` "
            f"| {'**needed**' if default is None else f'`{cell(default)}`'} | {cell(block.description)} |"
        )
    return ["| name | type | default | what it is |", "|---|---|---|---|", *lines] if lines else []


def output_table(outputs: Iterable[Block]) -> list[str]:
    """Outputs as a table; nothing where there are none."""
    lines = [f"| `{block.name}` | {cell(block.description)} |" for block in outputs]
    return ["| name | what it is |", "|---|---|", *lines] if lines else []


def shared_blocks(name: str) -> list[Block]:
    """The variables of a file that the modules of several clouds have in common."""
    return list(blocks_of(HERE / "modules" / "aws" / name, "variable"))


def common_outputs() -> list[Block]:
    """The outputs that every cloud has."""
    names = [{block.name for block in blocks(HERE / "modules" / cloud, "output")} for cloud in CLOUDS]
    return [block for block in blocks(HERE / "modules" / "aws", "output") if all(block.name in each for each in names)]


def common_tables() -> str:
    """What the roots have in common, each thing once: the page of the whole tree has it."""
    lines = ["## Variables of every cloud", "", *variable_table(shared_blocks("interface.tf"))]
    lines += ["", "## Variables of every cloud that makes machines", "", "`onprem` does not have these.", ""]
    lines += variable_table(shared_blocks("machines.tf"))
    return "\n".join([*lines, "", "## Outputs of every cloud", "", *output_table(common_outputs())])


def tables(folder: Path, note: str) -> str:
    """Variables and outputs that a module has beside those of every cloud, below a note on these."""
    common = {block.name for name in SHARED for block in shared_blocks(name)} | {each.name for each in common_outputs()}
    lines = ["## Variables", "", note, ""]
    lines += variable_table(block for block in blocks(folder, "variable") if block.name not in common)
    outputs = output_table(block for block in blocks(folder, "output") if block.name not in common)
    return "\n".join([*lines, *(["", "## Outputs", "", *outputs] if outputs else [])])


def pointer(cloud: str) -> str:
    """The page of a cloud's module: its root's page has the tables."""
    title = (HERE / cloud / "README.md").read_text().splitlines()[0]
    return f"""{title}

The module that the root [terraform/{cloud}](../../{cloud}/README.md) calls, with the same variables and outputs,
which are listed there. [examples](../../examples/README.md) call modules from a
configuration of your own.
"""


def with_tables(readme: Path, generated: str) -> str:
    """A README with its generated part renewed; the part is put last where there is none yet."""
    text = readme.read_text() if readme.exists() else f"# {readme.parent.name}\n"
    head, begin, rest = text.partition(BEGIN)
    tail = rest.partition(END)[2] if begin else ""
    return f"{head.rstrip()}\n\n{BEGIN}\n\n{generated}\n\n{END}\n{tail.lstrip()}"


def instances(catalogue: dict[str, Any]) -> str:
    """The catalogue as a page."""
    types: dict[str, dict[str, Any]] = catalogue["types"]
    head = (
        "| type | cloud | accelerator | Gaudi | cards | vCPU | memory | network | EFA | NVMe | regions | fact of "
        "| seen |"
    )

    def row(name: str, each: dict[str, Any]) -> str:
        disks = f"{each['nvme_count']} x {each['nvme_gb']} GB" if each["nvme_count"] else "none"
        cells = [
            f"`{name}`",
            each["cloud"],
            each["accelerator"],
            each["gaudi_generation"] or "no",
            f"{each['cards']} x {each['card_memory_gb']} GB",
            each["vcpus"] or "?",
            f"{each['memory_gib']} GiB" if each["memory_gib"] else "?",
            (each["network"] or "?") + (f", {each['nic_gbps']} for an interface" if each["nic_gbps"] else ""),
            each["efa_interfaces"] or "none",
            disks if each["cloud"] != "onprem" else "?",
            ", ".join(each["regions"]) or "?",
            each["source_date"] or "?",
            each["seen"],
        ]
        return "| " + " | ".join(cell(str(each)) for each in cells) + " |"

    def table(chosen: dict[str, dict[str, Any]]) -> str:
        return "\n".join([head, "|---" * 13 + "|", *(row(name, each) for name, each in chosen.items())])

    # First what current releases drive.
    newest = sorted(types, key=lambda name: -(types[name]["gaudi_generation"] or 0))
    offered = {name: types[name] for name in newest if not types[name]["refused"] and not types[name]["withdrawn"]}
    gone = {name: types[name] for name in newest if types[name]["withdrawn"]}
    gaudi = {name: each for name, each in offered.items() if each["gaudi_generation"]}
    other = {name: each for name, each in offered.items() if not each["gaudi_generation"]}
    notes = "\n".join(f"- `{name}`: {each['note']}" for name, each in offered.items() if each["note"])
    sources = "\n".join(f"- `{name}`: {each['source']}" for name, each in types.items())
    refused = "\n".join(f"- {each['refused']}" for each in types.values() if each["refused"])
    withdrawn = "\n".join(
        f"- `{name}`: not offered on {each['cloud']} since {each['withdrawn']['since']} "
        f"({each['withdrawn']['source']}; seen {each['withdrawn']['seen']}). {each['note']}"
        for name, each in gone.items()
    )
    prices = "\n".join(
        f"| `{name}` | {price['market']} | {price['region']} | {price['usd_per_hour']} | {cell(price['source'])} "
        f"| {price['source_date']} | {price['seen']} |"
        for name, each in types.items()
        for price in each["prices"]
    )
    return f"""# Instance types: which machines have Gaudi

For whoever looks for a machine to rent: what each cloud offers, with the source and the date of each fact.

Written by `python terraform/generate.py` from `terraform/catalogue/instances.json`. {catalogue["about"]}

## With Gaudi

{table(gaudi)}

{notes}

## With other accelerators

These pass with `accept_other_accelerators = true` only.

{table(other)}

## Withdrawn

Their clouds no longer offer these. They pass with `accept_withdrawn_type = true` only, for a reservation that still
holds one.

{table(gone)}

{withdrawn}

## Refused

{refused}

## Prices

| type | market | region | USD per hour | source | price of | seen |
|---|---|---|---|---|---|---|
{prices}

## Sources

{sources}

## Next

- [ibm.md](ibm.md): rent Gaudi 3 on IBM Cloud.
- [terraform.md](terraform.md): from an account to an inventory.
"""


def everything() -> dict[Path, str]:
    """All generated files."""
    files: dict[Path, str] = {}
    for cloud in CLOUDS:
        files.update({HERE / cloud / name: text for name, text in root_files(cloud).items()})
    files[HERE / "README.md"] = with_tables(HERE / "README.md", common_tables())
    for name in INNER:
        readme = HERE / "modules" / name / "README.md"
        files[readme] = with_tables(
            readme,
            tables(
                readme.parent,
                "The others are handed on from [those of every cloud](../../README.md#variables-of-every-cloud).",
            ),
        )
    for cloud in CLOUDS:
        readme = HERE / cloud / "README.md"
        files[readme] = with_tables(
            readme,
            tables(
                HERE / "modules" / cloud,
                f"Beside these `{cloud}` has [those of every cloud](../README.md#variables-of-every-cloud).",
            ),
        )
        files[HERE / "modules" / cloud / "README.md"] = pointer(cloud)
    catalogue = json.loads((HERE / "catalogue" / "instances.json").read_text())
    files[HERE.parent / "docs" / "clouds" / "instances.md"] = instances(catalogue)
    files[HERE.parent / "plugins" / "module_utils" / "_cloud" / "instance_data.py"] = python_data(catalogue)
    return files


def python_data(catalogue: dict[str, Any]) -> str:
    """The catalogue as a Python file: all that travels with a module to where it runs is Python.

    What is not known of a type, and what it has not, is left out: that is how its reader takes what is missing.
    """
    types = {
        name: {key: value for key, value in each.items() if value is not False and value not in (None, [])}
        for name, each in catalogue["types"].items()
    }
    text = pprint.pformat({"types": types}, width=110, sort_dicts=False)
    return (
        "# Copyright (c) 2026 gaudi3.scale contributors\n"
        "# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)\n"
        '"""The catalogue. Written by terraform/generate.py from terraform/catalogue/instances.json."""\n\n'
        "from __future__ import annotations\n\nfrom typing import Any\n\n"
        f"CATALOGUE: dict[str, Any] = (\n{textwrap.indent(text, '    ')}\n)\n"
    )


def main(arguments: list[str]) -> int:
    """Write, or with --check tell what differs."""
    stale = [path for path, text in everything().items() if not path.exists() or path.read_text() != text]
    if "--check" in arguments:
        for path in stale:
            print(f"{path.relative_to(HERE.parent)} is out of step: run python terraform/generate.py")
        return 1 if stale else 0
    for path in stale:
        path.write_text(everything()[path])
        print(f"wrote {path.relative_to(HERE.parent)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
