"""status, cost and offers: what there is, what it has cost, and what a cloud sells."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Column, Table

from gaudi3_deploy import estimate, nodes, partial, ssh, tree
from gaudi3_deploy.app import Context, Json, Name, app, known_names, print_json
from gaudi3_deploy.errors import UsageError
from gaudi3_deploy.record import Deployment

#: Columns with what is typed into another command.
TYPED = ("deployment", "cloud", "type", "master")
#: Fewer columns than this have no room for regions and dates.
WIDE = 110


def _table(*names: str) -> Table:
    """A table that fits the screen by folding other columns than those with what is typed; nothing is cut."""
    columns = [Column(name, no_wrap=name in TYPED, overflow="fold") for name in names]
    return Table(*columns, box=None, pad_edge=False)


@app.command()
def status(
    context: typer.Context,
    name: Annotated[
        str | None, typer.Argument(help="One deployment; without it, all.", autocompletion=known_names)
    ] = None,
    as_json: Json = False,
) -> None:
    """What there is, and whether ssh is let in; nothing is changed and Terraform isn't asked."""
    settings: Context = context.obj
    found = [_status(each) for each in ([settings.find(name)] if name else settings.every())]
    if as_json:
        print_json({"deployments": found})
        return
    table = _table("deployment", "cloud", "phase", "nodes", "type", "answering", "master")
    for each in found:
        answers = sum(node["answers"] for node in each["nodes"])
        where = (each["deployment"], each["cloud"], each["phase"], str(each["paid_nodes"]), each["instance_type"])
        table.add_row(*where, f"{answers}/{len(each['nodes'])}", each["master_ip"] or "")
    settings.console.print(table if found else f"no deployments in {settings.deployments}", soft_wrap=not found)
    for each in (one for one in found if one["partial"]):
        sentence = f"{each['deployment']} is partial: {', '.join(each['partial'])}; `gaudi3-deploy up` goes on from it"
        settings.console.print(sentence, highlight=False, markup=False, soft_wrap=True)


def _status(deployment: Deployment) -> dict[str, Any]:
    outputs = nodes.on_record(deployment)
    machines = nodes.machines(outputs)
    answers = ssh.answering(deployment, outputs)
    under_way = deployment.phase in ("applying", "destroying")
    return {
        "deployment": deployment.name,
        "cloud": deployment.cloud,
        "region": deployment.region or None,
        "phase": deployment.phase,
        "instance_type": str(deployment.variables.get("instance_type", "")),
        "paid_nodes": deployment.nodes if under_way else len(machines),
        "master_ip": outputs.get("master_ip"),
        "directory": str(deployment.directory),
        "partial": partial.read(deployment),
        "nodes": [{**nodes.as_dict(each), "answers": answer} for each, answer in zip(machines, answers, strict=True)],
    }


@app.command()
def cost(context: typer.Context, name: Name, as_json: Json = False) -> None:
    """What the nodes have cost so far, at the prices they were estimated with."""
    settings: Context = context.obj
    deployment = settings.find(name)
    usd, priced, unpriced = estimate.accrued(deployment.periods)
    if as_json:
        periods = [
            {
                "from": _utc(each.began),
                "to": _utc(each.ended) if each.ended else None,
                "nodes": each.nodes,
                "instance_type": each.instance_type,
                "usd_per_node_hour": each.hourly_usd,
            }
            for each in deployment.periods
        ]
        hours = {"priced_node_hours": priced, "unpriced_node_hours": unpriced}
        print_json({"deployment": name, "usd": usd, **hours, "periods": periods})
        return
    table = _table("from", "to", "nodes", "type", "USD/node/h")
    for period in deployment.periods:
        table.add_row(
            _clock(period.began),
            _clock(period.ended) if period.ended else "now",
            str(period.nodes),
            period.instance_type,
            f"{period.hourly_usd:.2f}" if period.hourly_usd is not None else "unknown",
        )
    settings.console.print(table)
    settings.console.print(
        f"{usd:.2f} USD for {priced:.1f} node-hours"
        + (f", and {unpriced:.1f} node-hours without a known price" if unpriced else "")
        + "; nodes only, without storage, traffic and taxes",
        highlight=False,
    )


@app.command()
def offers(
    context: typer.Context,
    every: Annotated[bool, typer.Option("--all", help="Other accelerators, too.")] = False,
    as_json: Json = False,
) -> None:
    """Types of machines that the catalogue knows, with prices, sources and dates; withdrawn ones say so."""
    settings: Context = context.obj
    found = [each for each in read_offers(settings.terraform_dir / tree.CATALOGUE) if every or each["gaudi_generation"]]
    if as_json:
        print_json({"offers": found})
        return
    wide = settings.console.width >= WIDE
    table = _table("type", "cloud", "cards", "USD/node/h", *(("regions", "seen") if wide else ()), "notes")
    for each in found:
        price = next((f"{p['usd_per_hour']:.2f} {p['market']}" for p in each["prices"]), "unknown")
        note = _withdrawn(each) if each["withdrawn"] else "refused" if each["refused"] else ""
        price = "your own" if each["cloud"] == "onprem" else price
        where = (", ".join(each["regions"]), each["seen"]) if wide else ()
        table.add_row(each["type"], each["cloud"], f"{each['cards']} {each['accelerator']}", price, *where, note)
    settings.console.print(table)
    if not wide:
        settings.console.print("Regions and dates: --json, or a wider terminal", highlight=False)


def read_offers(path: Path) -> list[dict[str, Any]]:
    """The catalogue's types. Raises UsageError where it cannot be read."""
    try:
        types = json.loads(path.read_text())["types"]
        return [
            {
                "type": name,
                "cloud": each["cloud"],
                "cards": each["cards"],
                "accelerator": each["accelerator"],
                "gaudi_generation": each.get("gaudi_generation"),
                "regions": each.get("regions") or [],
                "prices": each.get("prices") or [],
                "withdrawn": each.get("withdrawn"),
                "refused": each.get("refused"),
                "note": each.get("note"),
                "vcpus": each.get("vcpus"),
                "nvme_count": each.get("nvme_count"),
                "nvme_gb": each.get("nvme_gb"),
                "source": each["source"],
                "seen": each["seen"],
            }
            for name, each in types.items()
        ]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(f"The catalogue of machines {path} cannot be read ({error}): restore it.") from None


def _withdrawn(offer: dict[str, Any]) -> str:
    about = offer["withdrawn"]
    return f"withdrawn {about['since']}" if isinstance(about, dict) else f"withdrawn {about}"


def _clock(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(seconds))


def _utc(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))
