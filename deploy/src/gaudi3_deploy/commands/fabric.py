"""fabric: hold switches' configurations and cables against what the site wants, without a playbook."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
import yaml

from gaudi3_deploy import given_file
from gaudi3_deploy.app import Context, Json, app, print_json
from gaudi3_deploy.collection._fabric_lint.cabling import KEYS, compared, seen
from gaudi3_deploy.collection._fabric_lint.request import Verdict, look
from gaudi3_deploy.collection._fabric_lint.rules import ASKED, SYNTAXES, wanted
from gaudi3_deploy.collection._printable import printable
from gaudi3_deploy.collection._refusal import Refusal
from gaudi3_deploy.errors import DeployError, UsageError
from gaudi3_deploy.messages import reason
from gaudi3_deploy.yaml_file import read

fabric = typer.Typer(no_args_is_help=True, help="Switches and cables between nodes.")
app.add_typer(fabric, name="fabric")

#: Of a site's file: what it may say.
_SITE = ("wanted", "cables", "host_mtus")
#: No answer of lldpcli is longer.
_MOST_BYTES = 16 * 1024 * 1024


@fabric.command()
def lint(
    context: typer.Context,
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE...", help="Configurations of switches, each file named after its switch."),
    ],
    syntax: Annotated[
        str, typer.Option(help=f"Language of the files: {', '.join(SYNTAXES)}. Default: by the text.")
    ] = "",
    site: Annotated[
        Path | None, typer.Option(help=f"YAML with {', '.join(_SITE)}, as the module gaudi_fabric_lint takes them.")
    ] = None,
    port: Annotated[
        list[str] | None, typer.Option(metavar="SWITCH:PORT", help="A port that is to be judged; repeatable.")
    ] = None,
    neighbours: Annotated[
        list[str] | None,
        typer.Option(metavar="HOST=FILE", help="What `lldpcli -f json show neighbors details` printed; repeatable."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Tell which ports and cables are not as the site wants them, by rule, with the cure.

    Exit codes: 0 all are, 1 some are not, 2 an input is wrong or missing.
    """
    if syntax and syntax not in SYNTAXES:
        raise UsageError(f"--syntax is {syntax!r}: give one of {', '.join(SYNTAXES)}.")
    given = site_of(site)
    ports = _ports(port or [])
    switches = [
        {"name": file.stem, "syntax": syntax or _syntax(file), "path": str(file), "ports": ports.pop(file.stem, [])}
        for file in files
    ]
    if ports:
        raise UsageError(f"--port names the switch {next(iter(ports))}, and no FILE is named after it: give it.")
    answers = {host: text_of(Path(path)) for host, path in pairs(neighbours or [])}
    try:
        goal = wanted(given["wanted"])
        verdict = look(switches, answers, given["cables"], goal, given["host_mtus"])
    except Refusal as refusal:
        text = str(refusal).rstrip(".")
        raise UsageError(f"{text[:1].upper()}{text[1:]}.") from refusal
    facts = verdict.as_facts()
    if as_json:
        print_json(facts)
    else:
        print_lines(context.obj, _lines(verdict, facts))
    if not facts["ok"]:
        raise typer.Exit(1)


@fabric.command()
def cables(
    context: typer.Context,
    neighbours: Annotated[
        list[str],
        typer.Argument(metavar="HOST=FILE...", help="What `lldpcli -f json show neighbors details` printed on a host."),
    ],
    as_json: Json = False,
) -> None:
    """Write the cables that hosts see, as `fabric lint --site` takes them for the wanted ones.

    Exit codes: 0 written, 1 a port of a host or switch has two cables or a host none, 2 an input is wrong or missing.
    """
    answers = {host: text_of(Path(path)) for host, path in pairs(neighbours)}
    try:
        found = [cable for host, answer in answers.items() for cable in seen(host, answer)]
    except Refusal as refusal:
        text = str(refusal)
        raise UsageError(f"{text[:1].upper()}{text[1:]}.") from refusal
    doubled = compared([], found, list(answers))
    lone = sorted(set(answers) - {cable.host for cable in found})
    if doubled:
        first = doubled[0]
        sees = f"sees {first.given}" if first.rule == "shared" else f"has two neighbours, {first.given}"
        raise DeployError(f"{printable(f'{first.host} {first.port} {sees}: {first.cure}', 500)}.")
    if lone:
        raise DeployError(
            f"{printable(lone[0], 100)} sees no neighbour: take its ports up, and see whether lldpd runs there."
        )
    rows = [{name: printable(value, 200) for name, value in asdict(cable).items()} for cable in sorted(found)]
    if as_json:
        print_json({"cables": rows})
    else:
        dumped = [yaml.safe_dump(row, default_flow_style=True, sort_keys=False, width=10_000).strip() for row in rows]
        print_lines(context.obj, ["cables:", *(f"  - {row}" for row in dumped)])


def _lines(verdict: Verdict, facts: Mapping[str, Any]) -> Iterable[str]:
    for each in facts["findings"]:
        where = f"{each['switch']} {each['port']}".strip()
        yield f"{where}: {each['rule']}: {each['given']}, wanted {each['wanted']}"
        yield f"    do: {each['cure']}"
    for each in facts["miswired"]:
        where = f"{each['host']} {each['port']}".strip()
        yield f"{where}: {each['rule']}: {each['given']}, wanted {each['wanted']}"
        yield f"    do: {each['cure']}"
    ports = sum(each["ports"] for each in verdict.switches)
    counts = ((ports, "port"), (len(verdict.switches), "switch"), (len(verdict.cables), "cable"))
    faults = _counted(len(facts["findings"]) + len(facts["miswired"]), "finding")
    yield f"{', '.join(_counted(*each) for each in counts)}: {faults}"
    if verdict.not_judged:
        yield f"not judged, as nothing is wanted of it: {', '.join(verdict.not_judged)}"


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 'es' if what.endswith('ch') else 's'}"


def site_of(path: Path | None) -> dict[str, Any]:
    """The site's file, each part of the kind that the linter takes. Raises UsageError for another."""
    try:
        found = {} if path is None else read(text_of(path)) or {}
    except yaml.YAMLError as error:
        raise UsageError(f"{path} is no YAML: {' '.join(str(error).split())}.") from None
    if not isinstance(found, dict) or set(found) - set(_SITE):
        odd = next((str(each) for each in found if each not in _SITE), "") if isinstance(found, dict) else ""
        raise UsageError(f"{path} has {odd or 'no mapping'}: give a mapping of {', '.join(_SITE)}.")
    goal, cables, mtus = (found.get(name) or {} for name in _SITE)
    if not isinstance(goal, dict) or set(goal) - set(ASKED):
        raise UsageError(f"wanted of {path} is {goal!r}: give a mapping of {', '.join(ASKED)}.")
    cables = cables or []
    if not isinstance(cables, list) or not all(isinstance(each, dict) and set(each) == set(KEYS) for each in cables):
        raise UsageError(f"cables of {path} is no list of cables: give each {', '.join(KEYS)}.")
    if not isinstance(mtus, dict) or not all(
        isinstance(each, dict) and all(isinstance(size, int) for size in each.values()) for each in mtus.values()
    ):
        raise UsageError(f"host_mtus of {path} is {mtus!r}: give bytes by host and port.")
    return {"wanted": goal, "cables": cables, "host_mtus": mtus}


def _syntax(file: Path) -> str:
    """The language of a configuration, by what only that one has."""
    text = text_of(file)
    lines = text.splitlines()
    if text.lstrip().startswith("{"):
        return "sonic"
    if any(line.startswith("nv set ") for line in lines):
        return "cumulus"
    if any(line.startswith("! device: ") and "EOS" in line for line in lines):
        return "eos"
    if any(line.startswith(("class-map type qos ", "policy-map type ", "!Command: ")) for line in lines):
        return "nxos"
    raise UsageError(f"The language of {file} is not clear from its text: give --syntax, one of {', '.join(SYNTAXES)}.")


def _ports(given: Sequence[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for each in given:
        switch, colon, name = each.partition(":")
        if not (switch and colon and name):
            raise UsageError(f"--port is {each!r}: give SWITCH:PORT, such as leaf1:Ethernet1/1.")
        found.setdefault(switch, []).append(name)
    return found


def pairs(given: Sequence[str]) -> Iterable[tuple[str, str]]:
    """Hosts and files of HOST=FILE. Raises UsageError for another form, and for a host twice."""
    hosts = [each.partition("=")[0] for each in given]
    for each in given:
        host, equals, path = each.partition("=")
        if not (host and equals and path):
            raise UsageError(f"The neighbours {each!r} name no host: give HOST=FILE, such as gaudi-1=gaudi-1.json.")
        if hosts.count(host) > 1:
            raise UsageError(f"The neighbours of {host} are given {hosts.count(host)} times: give them once.")
        yield host, path


def text_of(path: Path) -> str:
    """The text of a file, of which bytes that are no UTF-8 are replaced. Raises UsageError where it cannot be read."""
    try:
        return given_file.read_bytes(path, _MOST_BYTES).decode("utf-8-sig", "replace")
    except OSError as error:
        raise UsageError(f"{path} cannot be read ({reason(error)}): give a file.") from None


def print_lines(settings: Context, lines: Iterable[str]) -> None:
    """Print lines as they are: what looks like markup in them is text."""
    for line in lines:
        settings.console.print(line, highlight=False, markup=False, soft_wrap=True)
