"""check: what can be known before anything is rented."""

from __future__ import annotations

from collections.abc import Sequence

import typer

from gaudi3_deploy import estimate, preflight, tree
from gaudi3_deploy.app import (
    Asked,
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
    app,
    print_json,
    talker,
)
from gaudi3_deploy.commands.show import read_offers
from gaudi3_deploy.console import Teller
from gaudi3_deploy.errors import DeployError
from gaudi3_deploy.record import Deployment


@app.command()
def check(
    context: typer.Context,
    name: Name,
    cloud: Cloud = None,
    size: Size = None,
    type_: Type = None,
    var: Var = None,
    var_file: VarFile = None,
    ssh_key: SshKey = None,
    price: PriceOption = None,
    as_json: Json = False,
) -> None:
    """Look at tools, credentials, quota, price and the way in, before anything is rented; nothing is written."""
    settings: Context = context.obj
    teller = talker(settings, as_json)
    deployment = settings.refuse(name, Asked(cloud, size, type_, var, var_file, ssh_key), offered=False)
    found = findings(settings, deployment, price)
    if as_json:
        print_json({"deployment": name, "checks": [each.as_dict() for each in found]})
    else:
        show(found, teller)
    if any(each.verdict == preflight.PROBLEM for each in found):
        raise typer.Exit(1)


def findings(settings: Context, deployment: Deployment, price: float | None) -> list[preflight.Finding]:
    """Everything that was found out."""
    variables = deployment.variables
    offers = {each["type"]: each for each in read_offers(settings.terraform_dir / tree.CATALOGUE)}
    offer = offers.get(str(variables.get("instance_type", "")))
    known = None
    if deployment.cloud != "onprem":
        known = estimate.price_of(settings.kind(deployment), deployment, price)
    return [*preflight.look(deployment, offer, known, settings.terraform)]


def show(found: Sequence[preflight.Finding], teller: Teller) -> None:
    """One line each."""
    for each in found:
        teller.log(f"{each.verdict:8} {each.what}: {each.sentence}")


def require(found: Sequence[preflight.Finding]) -> None:
    """Raise DeployError where there is a problem."""
    problems = [f"{each.what}: {each.sentence}" for each in found if each.verdict == preflight.PROBLEM]
    if problems:
        raise DeployError(f"This would fail, and nothing was made. {'; '.join(problems)}.")
