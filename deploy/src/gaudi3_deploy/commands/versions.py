"""versions: what a wish needs, whether nodes are consistent, and the shortest way from here to there."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated

import typer

from gaudi3_deploy.app import Context, Json, app, print_json
from gaudi3_deploy.collection._refusal import Refusal
from gaudi3_deploy.collection._release.journey import KEEP, Journey, check_goal, journey
from gaudi3_deploy.collection._release.need import need as needs
from gaudi3_deploy.collection._release.node import Node, said_system
from gaudi3_deploy.collection._release.rules import Finding, consistent, culprit
from gaudi3_deploy.collection._release.rules import check as findings_of
from gaudi3_deploy.errors import DeployError, UsageError
from gaudi3_deploy.node_versions import nodes, pairs

versions = typer.Typer(no_args_is_help=True, help="Which versions go together, and how to get from some to others.")
app.add_typer(versions, name="versions")

Facts = Annotated[Path | None, typer.Option(help="File with a node's versions, as `check --json` has them.")]
Fact = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=VALUE", help="A version of the node, as driver=1.23.0 or system='RHEL 9.4'; repeatable."
    ),
]
Inventory = Annotated[Path | None, typer.Option(help="Inventory of Ansible whose nodes are asked.")]
Hosts = Annotated[str, typer.Option(help="Which hosts of the inventory.")]
Keep = Annotated[list[str] | None, typer.Option(help=f"A part that is to stay: {', '.join(KEEP)}; repeatable.")]


@versions.command()
def need(
    context: typer.Context,
    wish: Annotated[list[str], typer.Argument(metavar="NAME=VALUE...", help="As torch=2.11 system='RHEL 9.4'.")],
    as_json: Json = False,
) -> None:
    """Tell which release does all that is wished for, and what it needs, each with its source.

    Exit codes: 0 a release does it, 1 none does, 2 a wish is wrong.
    """
    settings: Context = context.obj
    try:
        found = needs(pairs(wish, "The wish"))
    except Refusal as refusal:
        raise UsageError(str(refusal)) from refusal
    if as_json:
        print_json(found.as_facts())
    elif found.release:
        rows = [("what", "value", "source"), *((row.axis, row.value, row.source) for row in found.rows)]
        widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
        # Not a table of the terminal's width, which would break names of images.
        _print(settings, (f"{row[0]:{widths[0]}}  {row[1]:{widths[1]}}  {row[2]}" for row in rows))
        if len(found.candidates) > 1:
            _print(settings, [f"also: {', '.join(found.candidates[1:])}"])
    else:
        _print(settings, ["No release does all of this.", *found.instead])
    if not found.release:
        raise typer.Exit(1)


@versions.command()
def check(
    context: typer.Context,
    facts: Facts = None,
    fact: Fact = None,
    inventory: Inventory = None,
    hosts: Hosts = "gaudi",
    keep: Keep = None,
    as_json: Json = False,
) -> None:
    """Tell which versions of nodes do not go together, by which rule, and what to change.

    Exit codes: 0 all go together, 1 some do not, 2 an input is wrong or missing.
    """
    settings: Context = context.obj
    kept = _kept(keep)
    asked = nodes(facts, fact or [], inventory, hosts, settings.collection)
    judged = {name: findings_of(node, keep=kept) for name, node in asked.items()}
    if as_json:
        answers = {
            name: {
                "versions": asked[name].as_facts(),
                "consistent": consistent(found),
                "culprit": culprit(found),
                "findings": [each.as_facts() for each in found],
            }
            for name, found in judged.items()
        }
        print_json({"nodes": answers})
    else:
        for name, found in judged.items():
            _print(settings, _judgement(name, asked[name], found))
    if not all(map(consistent, judged.values())):
        raise typer.Exit(1)


@versions.command()
def path(
    context: typer.Context,
    to: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE", help="release, system, torch, vllm or preboot; repeatable. None: consistent."
        ),
    ] = None,
    facts: Facts = None,
    fact: Fact = None,
    inventory: Inventory = None,
    hosts: Hosts = "gaudi",
    keep: Keep = None,
    confirmed: Annotated[bool, typer.Option(help="Over pairs alone that a source confirms.")] = False,
    as_json: Json = False,
) -> None:
    """Tell the shortest way from a node's versions to others: releases, boots, the rule of each step, what breaks.

    Exit codes: 0 there is a way, 1 there is none, 2 an input is wrong or missing.
    """
    settings: Context = context.obj
    kept = _kept(keep)
    try:
        goal = check_goal(pairs(to or [], "--to"))
        asked = nodes(facts, fact or [], inventory, hosts, settings.collection)
        ways = {name: journey(node, goal, keep=kept, confirmed=confirmed) for name, node in asked.items()}
    except Refusal as refusal:
        raise UsageError(str(refusal)) from refusal
    none = next((way.no_way for way in ways.values() if way.no_way), "")
    if as_json:
        print_json({"nodes": {name: way.as_facts() for name, way in ways.items()}})
        if none:
            raise typer.Exit(1)
        return
    if none:
        raise DeployError(none)
    same: dict[Journey, list[str]] = {}
    for name, way in ways.items():
        same.setdefault(way, []).append(name)
    for way, names in same.items():
        _print(settings, _way(names, way))


def _kept(keep: Sequence[str] | None) -> tuple[str, ...]:
    odd = [each for each in keep or () if each not in KEEP]
    if odd:
        raise UsageError(f"--keep is {odd[0]!r}: give one of {', '.join(KEEP)}.")
    return tuple(keep or ())


def _judgement(name: str, node: Node, found: Sequence[Finding]) -> Iterable[str]:
    about = [f"{said_system(node.system)}" if node.system else "", f"kernel {node.kernel}" if node.kernel else ""]
    about += [f"driver {node.driver}" if node.driver else "", f"PyTorch {node.torch}" if node.torch else ""]
    yield f"{name}: {', '.join(filter(None, about)) or 'versions as given'}"
    for each in found:
        yield f"  {each.level:11}  {each.sentence}"
        yield f"               {each.rule}: {each.source}"
        if each.cure:
            yield f"               do: {each.cure}"
    yield "  goes together" if consistent(found) else f"  does not go together: change {culprit(found)} first"


def _way(names: Sequence[str], way: Journey) -> Iterable[str]:
    yield f"{', '.join(names)}:"
    for number, step in enumerate(way.steps, 1):
        yield f"  {number}. {step.what}"
        source = f" ({step.source})" if step.source != "the request" else ""
        yield f"     because {step.because}{source}"
        yield from (f"     breaks: {each}" for each in step.breaks)
    yield from (f"  unconfirmed: {each}" for each in way.cautions)
    where = f"{way.release} on {said_system(way.system)}" if way.system else way.release
    changes = f"{way.changes} change{'s' * (way.changes != 1)}, {way.boots} boot{'s' * (way.boots != 1)}"
    yield f"  {changes}: {where}" if way.steps else f"  nothing to do: {where}"


def _print(settings: Context, lines: Iterable[str]) -> None:
    for line in lines:
        settings.console.print(line, highlight=False, markup=False, soft_wrap=True)
