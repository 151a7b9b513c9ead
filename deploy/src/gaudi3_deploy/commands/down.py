"""down and forget: the end of the machines, and of the record."""

from __future__ import annotations

import shutil
from typing import Annotated

import typer

from gaudi3_deploy import converge, leftover, replacement, runs, site, storage
from gaudi3_deploy.app import Context, Name, Yes, app
from gaudi3_deploy.console import Teller, tell_plan
from gaudi3_deploy.errors import DeployError, UsageError
from gaudi3_deploy.record import Deployment


@app.command()
def down(
    context: typer.Context,
    name: Name,
    yes: Yes = False,
    checkpoints: Annotated[bool, typer.Option("--checkpoints", help="Delete the checkpoints, too.")] = False,
) -> None:
    """Destroy what Terraform made for the deployment, but not a bucket with checkpoints in it; costs stay on record."""
    settings: Context = context.obj
    settings.find(name)
    with settings.alone(name, "down"):
        deployment = settings.find(name)
        take_down(settings, deployment, Teller(settings.console), yes, checkpoints)
        for record in (runs.FILE, replacement.FILE, replacement.ALL):  # there is nothing to go on with
            (deployment.directory / record).unlink(missing_ok=True)


@app.command()
def forget(context: typer.Context, name: Name) -> None:
    """Remove the record of a deployment that has nothing left in the cloud: one that was only planned, or is down."""
    settings: Context = context.obj
    deployment = settings.find(name)
    with settings.alone(name, "forget"):
        if deployment.phase not in ("new", "down"):
            raise UsageError(
                f"Deployment {name!r} is not down (its phase is {deployment.phase}), and its record is what takes it "
                f"down: run `gaudi3-deploy down {name}` first."
            )
        shutil.rmtree(deployment.directory)
    settings.console.print(f"the record of {name} is removed", highlight=False, markup=False)


def take_down(settings: Context, deployment: Deployment, teller: Teller, yes: bool, checkpoints: bool = False) -> None:
    """Destroy it, with a question before unless `yes`."""
    name = deployment.name
    terraform = settings.open(deployment, teller)
    converge.take_over_to_destroy(deployment, terraform)
    state = terraform.state()
    kept = storage.Kept() if checkpoints else storage.kept(deployment, state)
    kept = kept.with_(storage.logs(deployment, state))
    going = sorted({each.configured for each in state.resources if each.address not in kept.addresses})
    for sentence in kept.sentences:
        teller.log(sentence)
    if going:
        only = going if kept.addresses else ()
        planned = terraform.plan(deployment.variables, destroy=True, only=only)
        tell_plan(settings.console, planned)
        if not yes:
            more = " and every checkpoint" if checkpoints else ""
            question = f"Type {name} to destroy these {planned.count} resources{more}"
            if typer.prompt(question, default="", show_default=False) != name:
                planned.discard()
                raise UsageError("Nothing was destroyed: the name was not typed.")
        deployment.enter("destroying")
        converge.sweep(deployment, terraform, state)
        try:
            if checkpoints:
                planned.discard()
                storage.let_go(deployment, terraform, state)
                planned = terraform.plan(deployment.variables, destroy=True, only=only)
            terraform.apply(planned)
        finally:
            teller.stop()
            converge.count(deployment, terraform)
    left = [each.address for each in terraform.state().resources if each.address not in kept.addresses]
    if left:
        raise DeployError(
            f"{len(left)} resources are left ({', '.join(left[:5])}): run `gaudi3-deploy down {name}` again."
        )
    deployment.count(0, "", None)
    site.forget_inventory(deployment)
    if not kept.addresses:
        terraform.forget()
    deployment.enter("stored" if kept.addresses else "down")
    find = converge.finder(deployment)
    if find is not None:
        leftover.look(find, deployment.region, name, kept.ids, teller.log)
    teller.log(f"deployment {name} is gone" + (f", but for {' and '.join(kept.names)}" if kept.names else ""))
