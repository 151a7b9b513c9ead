"""upgrade: plan the upgrade of a fleet from its nodes' reports, and tell whether a plan still fits."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from gaudi3_deploy.app import Context, Json, app, print_json
from gaudi3_deploy.collection._files import write_file
from gaudi3_deploy.collection._refusal import Refusal
from gaudi3_deploy.collection._upgrade import planned
from gaudi3_deploy.collection._upgrade.plan import MOVE, STOPPED, NodePlan, Plan, Wish, make
from gaudi3_deploy.collection._upgrade.steps import said
from gaudi3_deploy.errors import DeployError, UsageError
from gaudi3_deploy.upgrade_files import read_plan, sign, states, verify

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
        write_file(str(into), plan.text())
    except OSError as error:
        raise UsageError(f"{into} cannot be written ({error.strerror}): give another file with --into.") from None
    signed = sign(into, plan.text(), key) if key and not plan.refusals else None
    if as_json:
        print_json(plan.as_plain())
    else:
        lines = [*_lines(plan), f"written to {into}", *([f"signed in {signed}"] if signed else [])]
        for line in lines:
            settings.console.print(line, highlight=False, markup=False, soft_wrap=True)
    if plan.refusals:
        raise typer.Exit(1)


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
        settings.console.print(line, highlight=False, markup=False, soft_wrap=True)
    if problems:
        raise DeployError(problems[-1])
    by = f", signed by {signer}" if signer else ""
    about = f"{plan} fits the {len(found['fleet'])} nodes: {found['fingerprint'][:16]}{by}"
    settings.console.print(about, highlight=False, markup=False, soft_wrap=True)


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
        yield from (f"  {number}. {step}: {said(step, plan.release)}" for number, step in enumerate(way.up, 1))
        yield from (f"  {name} {before} -> {after}" for name, (before, after) in way.packages.items())
        yield f"  way back: {', '.join(way.back)}; to the same versions and holds"
        yield from (f"  note: {each.rstrip('.')}" for each in way.cautions)
    yield from (f"refused: {each}" for each in plan.refusals)
    yield f"fingerprint of the fleet: {plan.fingerprint}"


_JOBS = {STOPPED: "stopped before", MOVE: "move to spares"}
