"""What all commands of `gaudi3-deploy` share: where records and the Terraform tree are, and options of one meaning."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from gaudi3_deploy import __version__, audit, converge, estimate, lock, record, request, traces, tree, unchanged
from gaudi3_deploy.console import Teller
from gaudi3_deploy.errors import UsageError
from gaudi3_deploy.plan import Plan
from gaudi3_deploy.record import Deployment
from gaudi3_deploy.requested import given_names, requested_deployment
from gaudi3_deploy.terraform import Terraform

#: Variable of a root module for the price of a node, as one was quoted it.
PRICE = "node_usd_per_hour"

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="From an account to a running job: terraform and ansible-playbook, one step at a time or all at once.",
)


@dataclass
class Context:
    """Options of all commands."""

    console: Console
    terraform_dir: Path
    terraform: str
    deployments: Path
    """Where the records are."""

    @property
    def collection(self) -> Path:
        """The checkout around the Terraform tree."""
        return self.terraform_dir.parent

    def folder(self, name: str) -> Path:
        """Where the record of a deployment is, or is to be."""
        record.check_name(name)
        return self.deployments

    def every(self) -> list[Deployment]:
        """All deployments, by name."""
        return list(record.every(self.deployments))

    def find(self, name: str) -> Deployment:
        """A deployment that exists."""
        found = record.load(self.folder(name), name)
        if found is None:
            names = ", ".join(each.name for each in self.every()) or "none"
            raise UsageError(
                f"There is no deployment {name!r} in {self.deployments} (there is: {names}): "
                "`gaudi3-deploy up` makes one."
            )
        return found

    def want(self, name: str, asked: Asked) -> Deployment:
        """The record with what is asked for laid over it; not written yet."""
        given = (asked.cloud, asked.size, asked.kind, asked.var, asked.var_file, asked.ssh_key)
        return requested_deployment(self.folder(name), self.terraform_dir, name, *given)

    def refuse(self, name: str, asked: Asked, offered: bool = True) -> Deployment:
        """What is asked for, as `want` has it. Raises UsageError where that cannot be, before anything is written."""
        deployment = self.want(name, asked)
        request.refuse(deployment, self.terraform_dir, given_names(asked.var, asked.var_file), offered)
        return deployment

    def open(self, deployment: Deployment, teller: Teller) -> Terraform:
        """Its Terraform workspace, initialised."""
        folder = deployment.directory.parent
        where = tree.root(self.terraform_dir, folder, deployment.cloud, deployment.name)
        logs, environment = deployment.logs, deployment.environment
        terraform = Terraform(where, deployment.name, logs, teller, self.terraform, environment, deployment.directory)
        teller.log(f"terraform in {terraform.directory}, workspace {deployment.name}")
        terraform.init()
        return terraform

    def kind(self, deployment: Deployment) -> estimate.InstanceType | None:
        """What the catalogue says of its type of machine."""
        catalogue = estimate.read_catalogue(self.terraform_dir / tree.CATALOGUE)
        return catalogue.get(str(deployment.variables.get("instance_type", "")))

    def plan(self, deployment: Deployment, terraform: Terraform, price: float | None = None) -> Plan:
        """What `up` would do, with what an interrupted run left behind taken over."""
        wanted_nodes = estimate.node_count(self.kind(deployment), deployment.variables)
        unchanged.refuse_change(deployment, terraform)
        found = converge.take_over(deployment, terraform, wanted_nodes)
        given: dict[str, Any] = {"adopt": found} if found else {}
        price = deployment.given_price if price is None else price
        if price is not None and PRICE in terraform.variables() and PRICE not in deployment.variables:
            given[PRICE] = price  # by which max_hourly_usd is kept
        return terraform.plan(deployment.variables, given=given)

    @contextlib.contextmanager
    def alone(self, name: str, command: str, changes: bool = True) -> Iterator[None]:
        """Hold a deployment against other commands; what only looks is not in the audit record."""
        folder = self.folder(name)
        with (
            lock.held(folder / record.check_name(name), command),
            audit.recorded(folder, name, command) if changes else contextlib.nullcontext(),
            traces.command(command),
        ):
            yield


@dataclass(frozen=True)
class Asked:
    """What of a deployment is asked for now."""

    cloud: str | None = None
    size: int | None = None
    kind: str | None = None
    var: list[str] | None = None
    var_file: Path | None = None
    ssh_key: Path | None = None


def print_json(answer: Any) -> None:
    """The one thing on standard output of a command with --json."""
    typer.echo(json.dumps({"schema": 1, **answer}, indent=2))


def talker(settings: Context, as_json: bool) -> Teller:
    """Progress goes to standard error where standard output is for a program."""
    if as_json:
        settings.console = Console(stderr=True)
    return Teller(settings.console)


def confirm(question: str) -> None:
    """Ask. Raises UsageError where the answer is no, or nobody is there."""
    if not sys.stdin.isatty():
        raise UsageError("Nobody is there to be asked: look at the plan above and run the command again with --yes.")
    if not typer.confirm(question, default=False, err=True):
        raise UsageError("Nothing was changed: the question was answered with no.")


def user_folder() -> Path:
    """Where records are by default: outside of any checkout, which `git clean` empties."""
    state = os.environ.get("XDG_STATE_HOME") or ""
    return (Path(state) if state.startswith("/") else Path.home() / ".local/state") / "gaudi3-deploy"


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"gaudi3-deploy {__version__}")
        raise typer.Exit


@app.callback()
def root(
    context: typer.Context,
    deployments: Annotated[
        Path | None,
        typer.Option(
            envvar="GAUDI3_DEPLOYMENTS",
            help="Folder of the deployments' records and states [default: ~/.local/state/gaudi3-deploy]",
        ),
    ] = None,
    terraform_dir: Annotated[
        Path | None,
        typer.Option(
            envvar="GAUDI3_TERRAFORM_DIR",
            help="Folder with aws/, ibm/, onprem/, ... [default: ./terraform, or the one that came with this program]",
        ),
    ] = None,
    terraform: Annotated[str, typer.Option(help="The terraform executable.")] = "terraform",
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    """Options of all commands."""
    context.obj = Context(Console(), tree.find(terraform_dir), terraform, record_folder(deployments))


def record_folder(given: Path | None) -> Path:
    """Where the records are: in the folder that was given, or in the user's."""
    return given.resolve() if given else user_folder()


def known_names(context: typer.Context, incomplete: str) -> list[str]:
    """What a shell offers for the name of a deployment."""
    folder = record_folder(context.find_root().params.get("deployments"))
    found = (path.parent.name for path in folder.glob("*/deployment.json"))
    return sorted(name for name in found if name.startswith(incomplete))


Name = Annotated[
    str,
    typer.Argument(help="Name of the deployment; its Terraform workspace has the same.", autocompletion=known_names),
]
Cloud = Annotated[str | None, typer.Option(help="aws, azure, gcp, ibm or onprem; needed the first time.")]
Size = Annotated[int | None, typer.Option(help="Accelerator cards in all (variable cluster_size).")]
Type = Annotated[str | None, typer.Option("--type", help="Type of machine (variable instance_type).")]
Var = Annotated[
    list[str] | None,
    typer.Option("--var", metavar="KEY=VALUE", help="A variable of the root module; repeatable."),
]
VarFile = Annotated[Path | None, typer.Option(help="Variables of the root module, YAML or JSON.")]
SshKey = Annotated[
    Path | None, typer.Option(help="Public key that may log in [default: ~/.ssh/id_ed25519.pub, id_rsa.pub, ...]")
]
PriceOption = Annotated[float | None, typer.Option("--price", min=0, help="Your price of one node, USD per hour.")]
Beside = Annotated[
    float | None,
    typer.Option("--price-beside", min=0, help="Your price of all that is billed beside nodes, USD per hour in all."),
]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask.")]
Json = Annotated[bool, typer.Option("--json", help="One JSON document on standard output, the rest on standard error.")]
