"""fabric gaudinet: the addresses of a routed fabric, from what hosts hear of their switches, without a playbook."""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from gaudi3_deploy.app import Json, print_json
from gaudi3_deploy.collection._fabric.gaudinet import file_text
from gaudi3_deploy.collection._fabric.lldp import HostPort, entries
from gaudi3_deploy.collection._fabric_lint.cabling import Cable
from gaudi3_deploy.collection._files import write_file
from gaudi3_deploy.collection._printable import printable
from gaudi3_deploy.collection._refusal import Refusal
from gaudi3_deploy.commands.fabric import fabric, pairs, print_lines, site_of, text_of
from gaudi3_deploy.errors import UsageError
from gaudi3_deploy.messages import reason


@fabric.command()
def gaudinet(
    context: typer.Context,
    neighbours: Annotated[
        list[str],
        typer.Argument(
            metavar="HOST=FILE...", help="What `lldpcli -f json0 show neighbors details` printed on a host."
        ),
    ],
    site: Annotated[Path, typer.Option(help="YAML with cables, which says what ports each host has.")],
    links: Annotated[
        list[str], typer.Option(metavar="HOST=FILE", help="What `ip -json link` printed on a host; repeatable.")
    ],
    into: Annotated[Path, typer.Option(help="Folder for HOST.json, the gaudinet.json of each host.")],
    check: Annotated[bool, typer.Option("--check", help="Only show what would change.")] = False,
    as_json: Json = False,
) -> None:
    """Write each host's gaudinet.json, with the addresses that switches tell of their ports by LLDP.

    Nothing is written unless all hosts are cabled as planned and each neighbour tells an address and a MAC address.

    Exit codes: 0 written or as they are to be, 2 an input is wrong or missing, or a port is not as planned.
    """
    cables = [Cable(**{key: str(value) for key, value in each.items()}) for each in site_of(site)["cables"]]
    answers = dict(pairs(neighbours))
    macs = {host: _macs(host, Path(path)) for host, path in pairs(links)}
    texts: dict[str, str] = {}
    for host, path in answers.items():
        if "/" in host or host.startswith("."):
            raise UsageError(f"The host {host!r} cannot be the name of a file: give its name in the inventory.")
        if host not in macs:
            raise UsageError(f"--links has no {host}: give {host}=FILE, what `ip -json link` printed there.")
        ports = _ports(host, cables, macs[host], site)
        try:
            texts[host] = file_text(entries(host, ports, text_of(Path(path)), cables))
        except Refusal as refusal:
            said = str(refusal).rstrip(".")
            raise UsageError(f"{said[:1].upper()}{said[1:]}.") from refusal
    rows = [_written(into / f"{host}.json", text, check) for host, text in texts.items()]
    if as_json:
        print_json({"files": rows, "check": check})
        return
    lines: list[str] = []
    for row in rows:
        lines += [*row["diff"], f"{row['path']}: {'changed' if row['changed'] else 'as it is to be'}"]
    print_lines(context.obj, lines)


def _macs(host: str, path: Path) -> dict[str, str]:
    """MAC addresses by network device, of what `ip -json link` prints."""
    try:
        found = json.loads(text_of(path))
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise UsageError(f"--links of {host}: {path} is no answer of `ip -json link`: give what it printed there.")
    return {str(each.get("ifname")): str(each.get("address", "")).lower() for each in found}


def _ports(host: str, cables: list[Cable], macs: Mapping[str, str], site: Path) -> list[HostPort]:
    names = sorted({cable.port for cable in cables if cable.host == host})
    if not names:
        raise UsageError(f"cables of {site} have no port of {host}: give its cables, or leave the host out.")
    absent = next((name for name in names if not macs.get(name)), None)
    if absent:
        raise UsageError(
            f"{host} has no device {printable(absent, 40)}, which cables of {site} name: compare the names."
        )
    return [HostPort(name, macs[name]) for name in names]


def _written(path: Path, text: str, check: bool) -> dict[str, Any]:
    """Bring a file to its text, whole; what changed, as lines of a diff."""
    try:
        before = path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""
        if before != text and not check:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_file(str(path), text)
    except OSError as error:
        raise UsageError(f"{path} cannot be written ({reason(error)}): give another folder by --into.") from None
    names = (f"{path} (before)", f"{path} (after)")
    diff = list(difflib.unified_diff(before.splitlines(), text.splitlines(), *names, n=1, lineterm=""))
    return {"path": str(path), "changed": before != text, "diff": [printable(line) for line in diff]}
