"""plan and up: the nodes as they would be, and as they are made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import typer

from gaudi3_deploy import converge, estimate, nodes, partial, site
from gaudi3_deploy.app import (
    Asked,
    Beside,
    Cloud,
    Context,
    Json,
    Name,
    PriceOption,
    Size,
    SshKey,
    Type,
    Var,
    VarFile,
    Yes,
    app,
    confirm,
    print_json,
    talker,
)
from gaudi3_deploy.collection._terraform.state import MACHINES, State
from gaudi3_deploy.commands.reach import prepared_site
from gaudi3_deploy.console import Teller, tell_plan, tell_warnings
from gaudi3_deploy.errors import DeployError, UsageError
from gaudi3_deploy.plan import Plan
from gaudi3_deploy.record import Deployment
from gaudi3_deploy.terraform import Terraform


@dataclass
class Bill:
    """What a deployment would cost, and what of it that does not include."""

    price: estimate.Price | None
    count: int
    kind: str
    beside: list[str]
    beside_usd: float | None = None
    """USD per hour of what is billed beside the nodes, as the user gave it."""

    @property
    def usd_per_hour(self) -> float | None:
        """Of all nodes, where the price is known."""
        known = self.price.usd_per_hour if self.price else None
        return self.count * known if known is not None and self.count else None

    @property
    def all_in(self) -> float | None:
        """USD per hour of everything, where both prices are known."""
        total = self.usd_per_hour
        return None if total is None or self.beside_usd is None else total + self.beside_usd

    def sentences(self) -> list[str]:
        """For a person."""
        if self.price is None:
            return []
        total = self.usd_per_hour
        found = [f"machines: {self.count} x {self.kind}"] if self.count else []
        found.append(f"price: {self.price.description}")
        if total is not None:
            found[-1] += f"; {self.count} node(s): {total:.2f} USD per hour"
        if self.beside and self.beside_usd is None:
            what = f"billed beside the nodes, and not in this price: {', '.join(self.beside)}"
            found.append(f"{what}; give yours with --price-beside")
        elif self.beside:
            found.append(
                f"billed beside the nodes: {', '.join(self.beside)}: {self.beside_usd:.2f} USD per hour, as given"
            )
        if self.all_in is not None:
            found.append(f"all in: {self.all_in:.2f} USD per hour")
        return found

    def as_dict(self) -> dict[str, Any]:
        """For a program."""
        return {
            "usd_per_node_hour": self.price.usd_per_hour if self.price else None,
            "nodes": self.count,
            "usd_per_hour": self.usd_per_hour,
            "usd_per_hour_all_in": self.all_in,
            "reason": self.price.description if self.price else "the machines are your own",
            "not_included": self.beside,
        }


@app.command()
def plan(
    context: typer.Context,
    name: Name,
    cloud: Cloud = None,
    size: Size = None,
    type_: Type = None,
    var: Var = None,
    var_file: VarFile = None,
    ssh_key: SshKey = None,
    price: PriceOption = None,
    beside: Beside = None,
    as_json: Json = False,
) -> None:
    """Show what `up` would change and what it would cost; nothing is made, changed or destroyed in the cloud."""
    settings: Context = context.obj
    teller = talker(settings, as_json)
    asked = Asked(cloud, size, type_, var, var_file, ssh_key)
    settings.refuse(name, asked)
    with settings.alone(name, "plan"):
        deployment = settings.want(name, asked)
        terraform = settings.open(deployment, teller)
        planned = settings.plan(deployment, terraform, price)
        planned.discard()
        deployment.save()
        cost = bill(settings, deployment, planned, terraform.state(), price, beside)
    show_plan(settings, planned, cost)
    if as_json:
        print_json({"deployment": name, "cloud": deployment.cloud, **planned.as_dict(), "price": cost.as_dict()})


@app.command()
def up(
    context: typer.Context,
    name: Name,
    cloud: Cloud = None,
    size: Size = None,
    type_: Type = None,
    var: Var = None,
    var_file: VarFile = None,
    ssh_key: SshKey = None,
    price: PriceOption = None,
    beside: Beside = None,
    yes: Yes = False,
    all_or_none: Annotated[
        bool, typer.Option("--all-or-none", help="Where a machine can't be had, give back those that were made for it.")
    ] = False,
    allow_replace: Annotated[bool, typer.Option(help="Accept a plan that destroys or replaces running nodes.")] = False,
    then_site: Annotated[bool, typer.Option("--site", help="Run site.yml when the nodes are there.")] = False,
    as_json: Json = False,
) -> None:
    """Create or change the nodes. Interrupted at any point and run again, it goes on; done, it changes nothing."""
    settings: Context = context.obj
    teller = talker(settings, as_json)
    asked = Asked(cloud, size, type_, var, var_file, ssh_key)
    settings.refuse(name, asked)
    with settings.alone(name, "up"):
        deployment = settings.want(name, asked)
        before = {each.name for each in nodes.machines(nodes.on_record(deployment))}
        try:
            planned, cost = bring_up(settings, deployment, teller, price, yes, allow_replace, beside)
        except DeployError:
            if all_or_none:
                give_back(settings, deployment, teller, before)
            raise
        if as_json:
            print_json(
                {
                    "deployment": name,
                    "cloud": deployment.cloud,
                    "phase": deployment.phase,
                    "inventory": str(deployment.inventory),
                    "nodes": [nodes.as_dict(each) for each in nodes.machines(nodes.on_record(deployment))],
                    **planned.as_dict(),
                    "price": cost.as_dict(),
                }
            )
        if then_site:
            raise typer.Exit(prepared_site(settings, deployment, teller, []))
    settings.console.print(f"next: gaudi3-deploy site {name}", highlight=False, markup=False)


def bring_up(
    settings: Context,
    deployment: Deployment,
    teller: Teller,
    price: float | None,
    yes: bool,
    allow_replace: bool = False,
    beside: float | None = None,
) -> tuple[Plan, Bill]:
    """Make the nodes what is asked for, with a question before unless `yes`. What is asked for is recorded first."""
    terraform = settings.open(deployment, teller)
    planned = settings.plan(deployment, terraform, price)
    try:
        cost = bill(settings, deployment, planned, terraform.state(), price, beside)
        show_plan(settings, planned, cost)
        _refuse_losses(planned, allow_replace)
        deployment.save()
        if planned.changed and not yes:
            confirm(f"Make these {planned.count + len(planned.adopt)} changes?")
    except BaseException:
        planned.discard()
        raise
    known = cost.price.usd_per_hour if cost.price else None
    own = price is not None or deployment.given_price is not None
    _apply(deployment, terraform, teller, planned, (known, own))
    outputs = terraform.outputs()
    site.write_inventory(deployment, outputs)
    deployment.count(len(nodes.workers(outputs)), str(deployment.variables.get("instance_type", "")), known, given=own)
    deployment.enter("up")
    for each in nodes.machines(outputs):
        teller.log(f"{each.name}  {each.connect_to}")
    teller.log(f"inventory: {deployment.inventory}")
    if planned.changed:
        tell_warnings(settings.console, planned)
    return planned, cost


def _refuse_losses(planned: Plan, allow_replace: bool) -> None:
    if planned.storage_lost:
        raise UsageError(
            f"The plan destroys or replaces what checkpoints lie in or are encrypted with, "
            f"{', '.join(planned.storage_lost)}: change what was asked for."
        )
    if planned.machines_lost and not allow_replace:
        raise UsageError(
            f"The plan destroys or replaces {len(planned.machines_lost)} running node(s), "
            f"{', '.join(planned.machines_lost[:4])}: change what was asked for, or accept it with --allow-replace."
        )


def _apply(
    deployment: Deployment, terraform: Terraform, teller: Teller, planned: Plan, price: tuple[float | None, bool]
) -> None:
    if not planned.changed:
        planned.discard()
        return
    if deployment.phase == "applying":
        converge.count(deployment, terraform, price)
    deployment.enter("applying")
    try:
        terraform.apply(planned)
    except BaseException:
        converge.count(deployment, terraform, price)
        _report(deployment, terraform, teller, price[0])
        raise
    finally:
        teller.stop()


def _report(deployment: Deployment, terraform: Terraform, teller: Teller, usd: float | None) -> None:
    """What there is after a failure, whose own error is what counts."""
    try:
        state = terraform.state()
    except DeployError:
        return  # Whoever needs the state next is told why it cannot be read.
    partial.report(deployment, state, usd, teller.log)


def show_plan(settings: Context, planned: Plan, cost: Bill) -> None:
    """The plan, and its price."""
    tell_plan(settings.console, planned)
    for sentence in cost.sentences():
        settings.console.print(sentence, highlight=False, markup=False, soft_wrap=True)


def give_back(settings: Context, deployment: Deployment, teller: Teller, before: set[str]) -> None:
    """After an `up` that failed: destroy the machines that it made, so that no half of what was asked for is paid for.

    Those of `before` stay, by their names; so do network and storage, which the next `up` uses.
    """
    if deployment.phase != "applying":
        return  # It failed before anything was made.
    terraform = settings.open(deployment, teller)
    converge.take_over_to_destroy(deployment, terraform)
    state = terraform.state()
    fresh = {each["id"]: each["name"] for each in partial.machines(state) if each["name"] not in before}
    going = [each.address for each in state.of(MACHINES) if each.id in fresh]
    if not going:
        return
    teller.log(f"gives back {', '.join(sorted(fresh.values()))}, as some were not available")
    planned = terraform.plan(deployment.variables, destroy=True, only=going)
    try:
        terraform.apply(planned)
    finally:
        teller.stop()
        converge.count(deployment, terraform)
        _report(deployment, terraform, teller, None)


def bill(
    settings: Context,
    deployment: Deployment,
    planned: Plan,
    state: State,
    given: float | None,
    beside_usd: float | None = None,
) -> Bill:
    """The price of what there will be."""
    if deployment.cloud == "onprem":
        return Bill(None, 0, "", [])
    variables = deployment.variables
    kind = settings.kind(deployment)
    price = estimate.price_of(kind, deployment, given)
    there = {each.address for each in state.resources} | {*planned.create, *planned.adopt}
    beside = estimate.billed_beside(there - {*planned.delete})
    count, name = estimate.node_count(kind, variables), str(variables.get("instance_type", ""))
    return Bill(price, count, name, beside, beside_usd)
