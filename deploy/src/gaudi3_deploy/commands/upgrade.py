"""upgrade: plan the upgrade of a fleet from its nodes' reports, rehearse it, and tell whether a plan still fits."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from gaudi3_deploy import given_file
from gaudi3_deploy.app import Context, Json, app, print_json
from gaudi3_deploy.collection._refusal import Refusal
from gaudi3_deploy.collection._upgrade import planned, rehearsed, steps
from gaudi3_deploy.collection._upgrade.plan import MOVE, STOPPED, NodePlan, Plan, Wish, make
from gaudi3_deploy.collection._upgrade.record import RETURNED
from gaudi3_deploy.collection._upgrade.rehearsal import rehearse
from gaudi3_deploy.errors import DeployError, UsageError
from gaudi3_deploy.messages import reason
from gaudi3_deploy.upgrade_files import read_plan, records, sign, states, verify
from gaudi3_deploy.upgrade_files import reports as read_reports

upgrade = typer.Typer(no_args_is_help=True, help="Plan the upgrade of a fleet, offline, from its nodes' reports.")
app.add_typer(upgrade, name="upgrade")

Reports = Annotated[Path, typer.Option(help="Folder with a report NODE.json of each, as gaudi3.scale.doctor writes.")]


@upgrade.command("plan")
def plan_command(
    context: typer.Context,
    release: Annotated[str, typer.Argument(help="Release to go to, such as 1.23.0-695.")],
    reports: Reports,
    into: Annotated[Path, typer.Option(help="File of the plan.")] = Path("plan.json"),
    spare: Annotated[list[str] | None, typer.Option(help="A node that waits for others' jobs; repeatable.")] = None,
    canary: Annotated[str, typer.Option(help="Node to begin with [default: a spare, else the first].")] = "",
    share: Annotated[float, typer.Option(help="Share of the nodes in a batch after the canary.")] = 0.1,
    jobs: Annotated[str, typer.Option(help=f"{STOPPED}, or {MOVE}: to the spares, while they go on.")] = STOPPED,
    allow_downgrade: Annotated[bool, typer.Option("--allow-downgrade", help="Go back to an older release.")] = False,
    firmware: Annotated[
        str, typer.Option(help="Preboot firmware to flash, as a card will say it [default: none].")
    ] = "",
    key: Annotated[Path | None, typer.Option("--sign", help="SSH key to sign the plan with.")] = None,
    as_json: Json = False,
) -> None:
    """Plan an upgrade: order, steps, packages before and after, refusals, the way back. Changes nothing on a node.

    Exit codes: 0 the plan is whole, 1 something in it is refused, 2 an input is wrong or missing.
    """
    settings: Context = context.obj
    if jobs not in (STOPPED, MOVE):
        raise UsageError(f"--jobs is {jobs!r}: give {STOPPED} or {MOVE}.")
    made = datetime.now(UTC).isoformat(timespec="microseconds")
    wish = Wish(release, tuple(spare or ()), share, jobs, allow_downgrade, firmware, canary, made)
    try:
        plan = make(states(reports), wish)
    except Refusal as refusal:
        raise UsageError(str(refusal)) from None
    try:
        given_file.write_text(into, plan.text())
    except OSError as error:
        raise UsageError(f"{into} cannot be written ({reason(error)}): give another file with --into.") from None
    signed = sign(into, plan.text(), key) if key and not plan.refusals else None
    if as_json:
        print_json(plan.as_plain())
    else:
        lines = [*_lines(plan), f"written to {into}", *([f"signed in {signed}"] if signed else [])]
        for line in lines:
            _print(settings, line)
    if plan.refusals:
        raise typer.Exit(1)


@upgrade.command("rehearse")
def rehearse_command(
    context: typer.Context,
    plan: Annotated[Path, typer.Argument(help="File of the plan, into which the rehearsal is written.")],
    reports: Reports,
    minutes: Annotated[
        list[str] | None, typer.Option(help="STEP=MINUTES of a step on one node, as you know them; repeatable.")
    ] = None,
    earlier: Annotated[
        Path | None, typer.Option("--records", help="Folder of records of your earlier upgrades, for the minutes.")
    ] = None,
    key: Annotated[Path | None, typer.Option("--sign", help="SSH key to sign the rehearsed plan with.")] = None,
    as_json: Json = False,
) -> None:
    """Rehearse a plan on doubles of the nodes, by their reports: up, back from every step, power cuts at each instant.

    Exit codes: 0 rehearsed, and the plan says so, 1 it does not fit or went wrong, 2 an input is wrong or missing.
    """
    settings: Context = context.obj
    found, text = read_plan(plan)
    nodes = read_reports(reports)
    known = _minutes(minutes or [], earlier, any(each.is_simulated for each in nodes.values()))
    fleet = {name: each.state for name, each in nodes.items()}
    problems = planned.refusals(found, fleet, {})
    if problems:
        raise DeployError(" ".join(problems))
    done = rehearse(found, planned.digest(text), fleet, {name: each.held for name, each in nodes.items()})
    try:
        about = rehearsed.section(found, done, known, datetime.now(UTC).isoformat(timespec="microseconds"))
    except Refusal as refusal:
        raise DeployError(f"The rehearsal went wrong, and the plan is as it was. {refusal}") from None
    written = rehearsed.text(found, about)
    try:
        given_file.write_text(plan, written)
    except OSError as error:
        raise UsageError(f"{plan} cannot be written ({reason(error)}): rehearse a copy of it elsewhere.") from None
    signed = sign(plan, written, key) if key else None
    if as_json:
        print_json(about)
        return
    for line in [*_rehearsed(about), f"written into {plan}", *([f"signed in {signed}"] if signed else [])]:
        _print(settings, line)


def _print(settings: Context, line: str) -> None:
    """As it is: a card's address may have ``:cd:`` in it, which is the name of a picture elsewhere."""
    settings.console.print(line, highlight=False, markup=False, emoji=False, soft_wrap=True)


def _minutes(options: list[str], earlier: Path | None, is_simulated: bool) -> dict[str, rehearsed.Minutes]:
    """By records, and before these as they are given. Records of simulated nodes tell nothing of a Gaudi."""
    try:
        known = rehearsed.given(options)
    except Refusal as refusal:
        raise UsageError(str(refusal)) from None
    if earlier is None:
        return known
    if is_simulated:
        raise UsageError(
            "A report is of a simulated node, whose records tell no minutes of a Gaudi: leave --records out."
        )
    return {**rehearsed.measured(records(earlier)), **known}


def _rehearsed(about: dict[str, Any]) -> Iterator[str]:
    times = about["minutes"]
    for way in about["ways"]:
        head = f"{', '.join(way['nodes'])}: {way['cuts']} power cuts "
        back = ", ".join(way["back"])
        if not way["fails"]:
            yield f"{head}on the way up, and there each time"
        elif way["end"] == RETURNED:
            yield f"{head}where {way['fails']} fails, and back each time: {back}"
        else:
            yield f"{head}where {way['fails']} fails, and out of service for a person each time"
    yield from (f"drifted: {each}" for each in about["refusals"])
    yield f"{about['cuts']} power cuts, each continued by the same command; no step skipped, none done twice"
    if steps.FIRMWARE in {**times["steps"], **dict.fromkeys(times["unknown"])}:
        yield "a card whose flash was cut off is flashed again where it answers, else its node waits for a person"
    yield from (f"minutes of {name}: {each['minutes']:g} ({each['source']})" for name, each in times["steps"].items())
    if times["unknown"]:
        yield f"minutes unknown: {', '.join(times['unknown'])}"
    if times["fleet"] is not None:
        yield f"minutes of all batches, one after another: {times['fleet']:g}"


@upgrade.command("check")
def check_command(
    context: typer.Context,
    plan: Annotated[Path, typer.Argument(help="File of the plan.")],
    reports: Reports,
    allowed_signers: Annotated[
        Path | None, typer.Option(help="File of allowed signers: the plan has to be signed by one of them.")
    ] = None,
    signer: Annotated[str, typer.Option(help="Name of the signer in that file.")] = "",
    as_json: Json = False,
) -> None:
    """Tell whether a plan still fits the fleet, by new reports of its nodes, and whose signature it has.

    Exit codes: 0 it fits, 1 it does not, 2 an input is wrong or missing.
    """
    settings: Context = context.obj
    if (allowed_signers is None) != (not signer):
        raise UsageError("A signature is verified by a file and a name in it: give --allowed-signers and --signer.")
    found, text = read_plan(plan)
    if allowed_signers is not None:
        verify(plan, text, allowed_signers, signer)
    problems = planned.refusals(found, states(reports), {})
    if as_json:
        print_json({"fits": not problems, "fingerprint": found["fingerprint"], "refusals": problems})
        if problems:
            raise typer.Exit(1)
        return
    for line in problems[:-1]:
        _print(settings, line)
    if problems:
        raise DeployError(problems[-1])
    by = ", rehearsed" * ("rehearsal" in found) + (f", signed by {signer}" if signer else "")
    about = f"{plan} fits the {len(found['fleet'])} nodes: {found['fingerprint'][:16]}{by}"
    _print(settings, about)


def _lines(plan: Plan) -> Iterator[str]:
    going = f"{len(plan.nodes)} node{'s' * (len(plan.nodes) != 1)} in {len(plan.batches)} batches"
    yield f"to {plan.release}: {going}, {len(plan.there)} there already, jobs {_JOBS[plan.jobs]}"
    for number, batch in enumerate(plan.batches, 1):
        yield f"  batch {number}{' (canary)' if number == 1 else ''}: {', '.join(batch)}"
    same: dict[str, tuple[NodePlan, list[str]]] = {}
    for name, way in plan.nodes.items():
        same.setdefault(repr(way), (way, []))[1].append(name)
    for way, names in same.values():
        yield f"{', '.join(names)}: from {way.before}, {way.boots} boots, minutes unknown"
        yield from (f"  {number}. {step}: {steps.said(step, plan.release)}" for number, step in enumerate(way.up, 1))
        yield from (f"  {name} {before} -> {after}" for name, (before, after) in way.packages.items())
        yield f"  way back: {', '.join(way.back)}; to the same versions and holds"
        yield from (f"  note: {each.rstrip('.')}" for each in way.cautions)
    yield from (f"refused: {each}" for each in plan.refusals)
    yield f"fingerprint of the fleet: {plan.fingerprint}"


_JOBS = {STOPPED: "stopped before", MOVE: "move to spares"}
