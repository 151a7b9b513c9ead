"""inventory, wait, site, ssh, logs and stop: from here to the nodes."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any

import typer
from rich.console import Console

from gaudi3_deploy import audit, collected, jobs, nodes, site, ssh
from gaudi3_deploy.app import Context, Json, Name, app, print_json, talker
from gaudi3_deploy.collected import Question
from gaudi3_deploy.console import Teller
from gaudi3_deploy.errors import UsageError
from gaudi3_deploy.record import Deployment

MINUTES = 60.0
#: Arguments with which ansible-playbook reaches no node, and those with which it changes none.
LISTS = {"--syntax-check", "--list-tasks", "--list-hosts", "--list-tags"}
CHECKS = {"--check", "-C"}


@app.command()
def inventory(
    context: typer.Context,
    name: Name,
    output: Annotated[bool, typer.Option("--outputs", help="Print Terraform's outputs as JSON instead.")] = False,
) -> None:
    """Write the inventory again from Terraform's outputs and print its path, for `ansible-playbook -i`."""
    settings: Context = context.obj
    deployment = settings.find(name)
    teller = Teller(Console(stderr=True))
    with settings.alone(name, "inventory"):
        outputs = settings.open(deployment, teller).outputs()
        site.write_inventory(deployment, outputs)
    typer.echo(json.dumps(outputs, indent=2) if output else str(deployment.inventory))


@app.command()
def wait(
    context: typer.Context,
    name: Name,
    minutes: Annotated[float, typer.Option(min=0, help="For how long at most.")] = 15,
) -> None:
    """Wait until the machines let ssh in and have ended their first start; their host keys are learnt on the way."""
    settings: Context = context.obj
    deployment = settings.find(name)
    with settings.alone(name, "wait"):
        ssh.wait(deployment, made(deployment), Teller(settings.console).log, minutes * MINUTES)


@app.command("site", context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def run_site(context: typer.Context, name: Name) -> None:
    """Wait for the nodes and run site.yml; what follows the name goes to ansible-playbook (--check, --tags, -e ...)."""
    settings: Context = context.obj
    deployment = settings.find(name)
    made(deployment)
    with settings.alone(name, "site", changes=not (LISTS | CHECKS) & set(context.args)):
        raise typer.Exit(prepared_site(settings, deployment, Teller(settings.console), context.args))


@app.command("ssh", context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def run_ssh(context: typer.Context, name: Name) -> None:
    """Log in to a node, or run a command there: ssh NAME [NODE] [-- COMMAND]; without NODE, the first one."""
    settings: Context = context.obj
    deployment = settings.find(name)
    there = [machine.name for machine in nodes.machines(made(deployment))]
    given = list(context.args)
    if given and given[0] in there:
        ssh.enter(deployment, given[0], given[1:])
    if given and "--" not in sys.argv:
        raise UsageError(
            f"Deployment {name!r} has no node {given[0]!r} (there is: {', '.join(there)}): name one, or write a "
            f"command as in `gaudi3-deploy ssh {name} -- uptime`."
        )
    ssh.enter(deployment, nodes.head(made(deployment)), given)


@app.command()
def logs(
    context: typer.Context,
    name: Name,
    job: Annotated[str | None, typer.Argument(help="A job; without it, what Terraform said last.")] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on as the job writes.")] = False,
    lines: Annotated[int, typer.Option(min=0, help="How many of the last lines to show.")] = 100,
    node: Annotated[str | None, typer.Option(help="The job's log on another node than the first.")] = None,
    everywhere: Annotated[bool, typer.Option("--all", help="On all nodes, as the monitoring machine has it.")] = False,
    rank: Annotated[int | None, typer.Option(min=0, help="Of one process of the job, on whichever node.")] = None,
    since: Annotated[str | None, typer.Option(help="On all nodes, how far back: 10m, 2h.")] = None,
    kernel: Annotated[bool, typer.Option("--kernel", help="On all nodes, the kernel's messages, too.")] = False,
) -> None:
    """What a job writes, on the first node or another or all of them; or what Terraform said last."""
    settings: Context = context.obj
    deployment = settings.find(name)
    if everywhere or kernel or rank is not None or since is not None:
        question = Question(job, rank, since, kernel, node, max(1, lines))
        if follow:
            raise UsageError("What has been collected is shown once: leave --follow out, or ask one node alone.")
        show = partial(typer.echo, err=True)
        raise typer.Exit(collected.show(deployment, made(deployment), question, typer.echo, show))
    if job is None:
        found = sorted(deployment.logs.glob("*.log"), key=lambda path: path.stat().st_mtime)
        if not found:
            raise UsageError(
                f"Terraform has said nothing for deployment {name!r} yet: run `gaudi3-deploy plan {name}`."
            )
        typer.echo(f"{found[-1]}:")
        typer.echo("\n".join(found[-1].read_text(errors="replace").splitlines()[-lines:]))
        return
    if not ssh.PATTERN.match(job):
        raise UsageError(f"The job {job!r} has a name that no job has: give lower-case letters, digits, - and _.")
    root = 'sudo=""; [ "$(id -u)" -eq 0 ] || sudo="sudo -n"; $sudo'
    command = f"{root} journalctl --no-pager -u gaudi-train-{job}.service -n {lines}" + (" -f" if follow else "")
    ssh.enter(deployment, node or nodes.head(made(deployment)), [command])


@app.command()
def stop(
    context: typer.Context,
    name: Name,
    job: Annotated[str | None, typer.Argument(help="A job; without it, all that run.")] = None,
    as_json: Json = False,
) -> None:
    """Have a job save a checkpoint and end, on all nodes; it stays so until it is resumed. The machines stay."""
    settings: Context = context.obj
    deployment = settings.find(name)
    made(deployment)
    teller = talker(settings, as_json)
    # Whoever follows the job holds the deployment meanwhile, so this does not ask for it: it changes no record.
    with audit.recorded(settings.deployments, name, "stop", **({"job": job} if job else {})):
        stopped = jobs.stop(deployment, settings.collection, teller.log, job)
    if as_json:
        print_json({"deployment": name, "stopped": stopped})


def made(deployment: Deployment) -> dict[str, Any]:
    """The outputs as they were last read. Raises UsageError before the first `up`."""
    outputs = nodes.on_record(deployment)
    if not outputs:
        raise UsageError(
            f"Deployment {deployment.name!r} has no inventory yet: run `gaudi3-deploy up {deployment.name}` first."
        )
    there = [deployment.inventory / each for each in (site.NAME, site.EARLIER)]
    if not (deployment.directory / ssh.CONFIG).exists() or not any(each.exists() for each in there):  # as after a kill
        site.write_inventory(deployment, outputs)
    return outputs


def prepared_site(settings: Context, deployment: Deployment, teller: Teller, arguments: Sequence[str]) -> int:
    """Wait for the nodes and run site.yml on them; its exit code."""
    quiet = LISTS & set(arguments)
    if not quiet:
        ssh.wait(deployment, made(deployment), teller.log, 15 * MINUTES)
    deployment.enter("site")
    code = site.run_site(deployment, settings.collection, arguments)
    if code == 0 and not quiet and not CHECKS & set(arguments):
        deployment.enter("ready")
    return code
