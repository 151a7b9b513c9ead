"""The command `gaudi3-deploy`."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from rich.console import Console
from rich.table import Table

from gaudi3_deploy import __version__, converge, estimate, leftover, nodes, record, site, storage
from gaudi3_deploy.console import Teller, tell_plan, tell_warnings
from gaudi3_deploy.errors import DeployError, UsageError
from gaudi3_deploy.record import Deployment
from gaudi3_deploy.terraform import Plan, Terraform
from gaudi3_deploy.wanted import wanted

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="From an account to a running job: terraform and ansible-playbook, one step at a time or all at once.",
)


@dataclass
class Context:
    """Options of all commands."""

    console: Console
    deployments: Path
    terraform_dir: Path
    terraform: str

    @property
    def collection(self) -> Path:
        """The checkout around the Terraform tree."""
        return self.terraform_dir.parent

    def find(self, name: str) -> Deployment:
        """A deployment that exists."""
        found = record.load(self.deployments, name)
        if found is None:
            names = ", ".join(each.name for each in record.every(self.deployments)) or "none"
            raise UsageError(
                f"There is no deployment {name!r} in {self.deployments} (there is: {names}): "
                "`gaudi3-deploy up` makes one."
            )
        return found

    def open(self, deployment: Deployment, teller: Teller) -> Terraform:
        """Its Terraform workspace, initialised."""
        root = self.terraform_dir / deployment.cloud
        terraform = Terraform(root, deployment.name, deployment.logs, teller, self.terraform, deployment.environment)
        teller.say(f"terraform in {terraform.directory}, workspace {deployment.name}")
        terraform.init()
        return terraform

    def kind(self, deployment: Deployment) -> estimate.InstanceType | None:
        """What the catalogue says of its type of machine."""
        catalogue = estimate.read_catalogue(self.terraform_dir / "catalogue" / "instances.json")
        return catalogue.get(str(deployment.variables.get("instance_type", "")))

    def plan(self, deployment: Deployment, terraform: Terraform) -> Plan:
        """What `up` would do, with what an interrupted run left behind taken over."""
        wanted = estimate.node_count(self.kind(deployment), deployment.variables)
        converge.refuse_change(deployment, terraform)
        found = converge.take_over(deployment, terraform, wanted)
        given = {"adopt": found} if found else {}
        return terraform.plan(deployment.variables_file, deployment.directory / "plan", given=given)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"gaudi3-deploy {__version__}")
        raise typer.Exit


@app.callback()
def root(
    context: typer.Context,
    deployments: Annotated[
        Path, typer.Option(envvar="GAUDI3_DEPLOYMENTS", help="Folder of the deployments' records.")
    ] = Path("deployments"),
    terraform_dir: Annotated[
        Path, typer.Option(envvar="GAUDI3_TERRAFORM_DIR", help="Folder with aws/, ibm/, onprem/, ...")
    ] = Path("terraform"),
    terraform: Annotated[str, typer.Option(help="The terraform executable.")] = "terraform",
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    """Options of all commands."""
    context.obj = Context(Console(), deployments.resolve(), terraform_dir.resolve(), terraform)


Name = Annotated[str, typer.Argument(help="Name of the deployment; its Terraform workspace has the same.")]
Cloud = Annotated[str | None, typer.Option(help="aws, azure, gcp, ibm or onprem; needed the first time.")]
Size = Annotated[int | None, typer.Option(help="Accelerator cards in all (variable cluster_size).")]
Type = Annotated[str | None, typer.Option("--type", help="Type of machine (variable instance_type).")]
Var = Annotated[
    list[str] | None,
    typer.Option("--var", metavar="KEY=VALUE", help="A variable of the root module; repeatable."),
]
VarFile = Annotated[Path | None, typer.Option(help="Variables of the root module, YAML or JSON.")]
PriceOption = Annotated[float | None, typer.Option("--price", help="Your price of one node, USD per hour.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask.")]


@app.command()
def plan(
    context: typer.Context,
    name: Name,
    cloud: Cloud = None,
    size: Size = None,
    type_: Type = None,
    var: Var = None,
    var_file: VarFile = None,
    price: PriceOption = None,
) -> None:
    """Show what `up` would change and what it would cost; nothing is made, changed or destroyed in the cloud."""
    settings: Context = context.obj
    deployment = wanted(settings.deployments, settings.terraform_dir, name, cloud, size, type_, var, var_file)
    teller = Teller(settings.console)
    planned = settings.plan(deployment, settings.open(deployment, teller))
    planned.path.unlink()
    tell_plan(settings.console, planned)
    _price(settings, deployment, planned, price)


@app.command()
def up(
    context: typer.Context,
    name: Name,
    cloud: Cloud = None,
    size: Size = None,
    type_: Type = None,
    var: Var = None,
    var_file: VarFile = None,
    price: PriceOption = None,
    yes: Yes = False,
    allow_replace: Annotated[bool, typer.Option(help="Accept a plan that destroys or replaces running nodes.")] = False,
    then_site: Annotated[bool, typer.Option("--site", help="Run site.yml when the nodes are there.")] = False,
) -> None:
    """Create or change the nodes. Interrupted at any point and run again, it goes on; done, it changes nothing."""
    settings: Context = context.obj
    deployment = wanted(settings.deployments, settings.terraform_dir, name, cloud, size, type_, var, var_file)
    teller = Teller(settings.console)
    terraform = settings.open(deployment, teller)
    planned = settings.plan(deployment, terraform)
    tell_plan(settings.console, planned)
    try:
        if planned.storage_lost:
            raise UsageError(
                f"The plan destroys or replaces what checkpoints lie in or are encrypted with, "
                f"{', '.join(planned.storage_lost)}: change what was asked for."
            )
        if planned.nodes_lost and not allow_replace:
            raise UsageError(
                f"The plan destroys or replaces {len(planned.nodes_lost)} running node(s), "
                f"{', '.join(planned.nodes_lost[:4])}: change what was asked for, or accept it with --allow-replace."
            )
        known = _price(settings, deployment, planned, price)
        own = price is not None or deployment.given_price is not None
        if not planned.empty and not yes:
            _confirm(f"Make these {planned.changes + len(planned.adopt)} changes?")
    except BaseException:
        planned.path.unlink(missing_ok=True)
        raise
    if not planned.empty:
        if deployment.phase == "applying":
            converge.count(deployment, terraform, (known, own))
        deployment.enter("applying")
        try:
            terraform.apply(planned)
        except BaseException:
            converge.count(deployment, terraform, (known, own))
            raise
        finally:
            teller.stop()
    else:
        planned.path.unlink(missing_ok=True)
    outputs = terraform.outputs()
    site.write_inventory(deployment, outputs)
    machines = [node for node in nodes.machines(outputs) if node.get("role") != "monitor"]
    deployment.count(len(machines), str(deployment.variables.get("instance_type", "")), known, given=own)
    deployment.enter("up")
    _tell_nodes(settings.console, deployment, outputs)
    if not planned.empty:
        tell_warnings(settings.console, planned)
    if then_site:
        raise typer.Exit(_run_site(settings, deployment, []))
    settings.console.print(f"next: gaudi3-deploy site {name}", highlight=False, markup=False)


@app.command()
def inventory(
    context: typer.Context,
    name: Name,
    output: Annotated[bool, typer.Option("--outputs", help="Print Terraform's outputs as JSON instead.")] = False,
) -> None:
    """Write the inventory anew from Terraform's outputs and print its path, for `ansible-playbook -i`."""
    settings: Context = context.obj
    deployment = settings.find(name)
    teller = Teller(Console(stderr=True))
    outputs = settings.open(deployment, teller).outputs()
    site.write_inventory(deployment, outputs)
    typer.echo(json.dumps(outputs, indent=2) if output else str(deployment.inventory))


@app.command("site", context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def run_site(context: typer.Context, name: Name) -> None:
    """Run site.yml on the nodes; what follows the name goes to ansible-playbook (--check --diff, --tags, -e ...)."""
    settings: Context = context.obj
    deployment = settings.find(name)
    if not deployment.outputs.exists():
        raise UsageError(f"Deployment {name!r} has no inventory yet: run `gaudi3-deploy up {name}` first.")
    raise typer.Exit(_run_site(settings, deployment, context.args))


@app.command()
def status(
    context: typer.Context,
    name: Annotated[str | None, typer.Argument(help="One deployment; without it, all.")] = None,
) -> None:
    """What there is, and whether the nodes answer; nothing is changed and Terraform isn't asked."""
    settings: Context = context.obj
    found = [settings.find(name)] if name else list(record.every(settings.deployments))
    table = Table("deployment", "cloud", "phase", "nodes", "type", "answering", "master", box=None, pad_edge=False)
    for deployment in found:
        outputs = nodes.on_record(deployment)
        machines = nodes.machines(outputs)
        answers = site.reachable([nodes.address(each) for each in machines])
        table.add_row(
            deployment.name,
            deployment.cloud,
            deployment.phase,
            str(deployment.nodes if deployment.phase in ("applying", "destroying") else len(machines)),
            str(deployment.variables.get("instance_type", "")),
            f"{sum(answers)}/{len(machines)}",
            str(outputs.get("master_ip") or ""),
        )
    settings.console.print(table if found else f"no deployments in {settings.deployments}")


@app.command()
def cost(context: typer.Context, name: Name) -> None:
    """What the nodes have cost so far, at the prices they were estimated with."""
    settings: Context = context.obj
    deployment = settings.find(name)
    usd, priced, unpriced = estimate.accrued(deployment.periods)
    table = Table("from", "to", "nodes", "type", "USD/node/h", box=None, pad_edge=False)
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
def down(
    context: typer.Context,
    name: Name,
    yes: Yes = False,
    checkpoints: Annotated[bool, typer.Option("--checkpoints", help="Delete the checkpoints, too.")] = False,
) -> None:
    """Destroy what Terraform made for the deployment, but not a bucket with checkpoints in it; costs stay on record."""
    settings: Context = context.obj
    deployment = settings.find(name)
    teller = Teller(settings.console)
    terraform = settings.open(deployment, teller)
    converge.take_over_to_destroy(deployment, terraform)
    state = terraform.state()
    kept = storage.Kept() if checkpoints else storage.kept(deployment, state)
    going = sorted({each.configured for each in state.resources if each.address not in kept.addresses})
    if kept.sentence:
        teller.say(kept.sentence)
    if going:
        only = going if kept.addresses else ()
        planned = terraform.plan(deployment.variables_file, deployment.directory / "plan", destroy=True, only=only)
        tell_plan(settings.console, planned)
        if not yes:
            more = " and every checkpoint" if checkpoints else ""
            question = f"Type {name} to destroy these {planned.changes} resources{more}"
            if typer.prompt(question, default="", show_default=False) != name:
                planned.path.unlink(missing_ok=True)
                raise UsageError("Nothing was destroyed: the name was not typed.")
        deployment.enter("destroying")
        converge.sweep(deployment, terraform, state)
        try:
            if checkpoints:
                planned.path.unlink()
                storage.let_go(deployment, terraform, state)
                planned = terraform.plan(deployment.variables_file, deployment.directory / "plan", destroy=True)
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
    leftover.look(deployment.cloud, converge.region_of(deployment), deployment.name, kept.ids, teller.say)
    teller.say(f"deployment {name} is gone" + (", but for the storage of its checkpoints" if kept.addresses else ""))


def _price(settings: Context, deployment: Deployment, planned: Plan, given: float | None) -> float | None:
    """Tell the price of what there will be; of one node, if known."""
    if deployment.cloud == "onprem":
        return None
    variables = deployment.variables
    kind = settings.kind(deployment)
    before = deployment.given_price if given is None else None
    region, market = str(variables.get("region", "")), estimate.market(variables)
    price = estimate.Price.of(kind, region, market, before if given is None else given, before is not None)
    count = estimate.node_count(kind, variables)
    words = f"price: {price.words}"
    if price.usd_per_hour is not None and count:
        words += f"; {count} node(s): {count * price.usd_per_hour:.2f} USD per hour"
    settings.console.print(words, highlight=False, markup=False, soft_wrap=True)
    return price.usd_per_hour


def _confirm(question: str) -> None:
    if not sys.stdin.isatty():
        raise UsageError("Nobody is there to be asked: look at the plan above and run the command again with --yes.")
    if not typer.confirm(question, default=False):
        raise UsageError("Nothing was changed: the question was answered with no.")


def _run_site(settings: Context, deployment: Deployment, arguments: list[str]) -> int:
    deployment.enter("site")
    code = site.run_site(deployment, settings.collection, arguments)
    if code == 0 and not {"--check", "-C", "--syntax-check", "--list-tasks", "--list-hosts"} & set(arguments):
        deployment.enter("ready")
    return code


def _tell_nodes(console: Console, deployment: Deployment, outputs: dict[str, Any]) -> None:
    for each in nodes.machines(outputs):
        console.print(f"{each['name']}  {nodes.address(each)[0]}", highlight=False, markup=False)
    console.print(f"inventory: {deployment.inventory}", highlight=False, markup=False, soft_wrap=True)


def _clock(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(seconds))


def main() -> NoReturn:
    """Exit codes: 0 done, 1 failed, 2 asked for something that can't be, 130 interrupted."""
    try:
        result = app(standalone_mode=False)
        code = result if isinstance(result, int) else 0  # a command's typer.Exit comes back as a value
    except UsageError as error:
        print(f"gaudi3-deploy: {error}", file=sys.stderr)
        code = 2
    except DeployError as error:
        print(f"gaudi3-deploy: {error}", file=sys.stderr)
        code = 1
    except (KeyboardInterrupt, typer.Abort):
        print("gaudi3-deploy: interrupted; run again, it goes on", file=sys.stderr)
        code = 130
    except Exception as error:
        click_message = getattr(error, "format_message", None)
        if click_message is None:
            raise
        print(f"gaudi3-deploy: {click_message()}", file=sys.stderr)
        code = 2
    sys.stdout.flush()
    sys.exit(code)
