"""teams: accounts, queues and rights of a cluster's teams, from one file."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer
import yaml

from gaudi3_deploy import given_file, kubernetes_text, yaml_file
from gaudi3_deploy.app import app
from gaudi3_deploy.collection._printable import printable
from gaudi3_deploy.collection._refusal import Refusal
from gaudi3_deploy.collection._teams import accounting, declared, kueue, sudo
from gaudi3_deploy.errors import UsageError
from gaudi3_deploy.messages import reason

teams = typer.Typer(no_args_is_help=True, help="Accounts, queues and rights of teams, from one file; changes nothing.")
app.add_typer(teams, name="teams")

File = Annotated[Path, typer.Argument(help="The file of the teams.")]
Pairs = list[str] | None


@teams.command("check")
def check_teams(file: File) -> None:
    """Judge the file and show what it says.

    Exit codes: 0 it is right, 2 it is wrong.
    """
    for entry in _read(file):
        quota = entry.quota
        limits = (
            "any number of cards" if quota.cards is None else f"{quota.cards} cards",
            "any number of jobs" if quota.jobs is None else f"{quota.jobs} jobs",
            "any number of card-hours" if quota.card_hours is None else f"{quota.card_hours} card-hours",
        )
        typer.echo(f"{entry.name}: {', '.join(limits)}, priority {entry.priority}; {', '.join(entry.users)}")


@teams.command()
def slurm(
    file: File,
    assoc: Annotated[Path, typer.Option(help="What `sacctmgr -nP show assoc` printed; - for stdin.")],
    qos: Annotated[Path, typer.Option(help="What `sacctmgr -nP show qos` printed; - for stdin.")],
    cluster: Annotated[str, typer.Option(help="ClusterName of slurm.conf.")],
    gres: Annotated[str, typer.Option(help="What counts as a card, as AccountingStorageTRES has it.")] = "gres/gpu",
    remove: Annotated[bool, typer.Option(help="Also delete users and teams that the file has no more.")] = False,
) -> None:
    """Print the commands that bring Slurm's accounts to the file; none where all is right.

    Exit codes: 0 printed, 2 an input is wrong.
    """
    if str(assoc) == str(qos) == "-":
        raise UsageError("--assoc and --qos are both '-': give a file for one of them.")
    wanted = _read(file)
    try:
        found = accounting.associations(_text(assoc)), accounting.levels(_text(qos), gres)
        change = accounting.change(wanted, *found, cluster, gres, remove)
    except Refusal as refusal:
        raise UsageError(str(refusal)) from refusal
    for command in change.commands:
        typer.echo(shlex.join(command))
    for note in change.notes:
        typer.echo(note, err=True)


@teams.command("kueue")
def kueue_queues(
    file: File,
    resource: Annotated[str, typer.Option(help="What a card is called in pods.")] = kueue.CARDS,
    other: Annotated[
        Pairs, typer.Option(metavar="NAME=AMOUNT", help="A further resource of pods, as memory=800Gi; repeatable.")
    ] = None,
    label: Annotated[Pairs, typer.Option(metavar="NAME=VALUE", help="Label of nodes with cards; repeatable.")] = None,
    flavor: Annotated[str, typer.Option(help="Name of the ResourceFlavor.")] = "gaudi3",
) -> None:
    """Print the manifests of Kueue: a flavor, and for each team a ClusterQueue and a LocalQueue.

    Exit codes: 0 printed, 2 an input is wrong.
    """
    wanted = _read(file)
    try:
        found = kueue.manifests(wanted, resource, _pairs(other, "--other"), _pairs(label, "--label"), flavor)
    except Refusal as refusal:
        raise UsageError(str(refusal)) from refusal
    typer.echo(kubernetes_text.text_of(found), nl=False)
    for note in kueue.notes(wanted):
        typer.echo(note, err=True)


@teams.command()
def sudoers(
    file: File,
    job: Annotated[Pairs, typer.Option(help="Name this job's units alone, for sudo before 1.9.10; repeatable.")] = None,
    systemctl: Annotated[str, typer.Option(help="Path of systemctl on the nodes.")] = "/usr/bin/systemctl",
    password: Annotated[bool, typer.Option(help="Whether sudo asks for the user's password.")] = True,
) -> None:
    """Print a file for /etc/sudoers.d: each team starts, stops and sees the units of its jobs.

    Exit codes: 0 printed, 2 an input is wrong.
    """
    try:
        typer.echo(sudo.drop_in(_read(file), job or (), systemctl, password), nl=False)
    except Refusal as refusal:
        raise UsageError(str(refusal)) from refusal


def _read(file: Path) -> tuple[declared.TeamEntry, ...]:
    try:
        return declared.teams(yaml_file.read(_text(file)))
    except yaml.YAMLError as error:
        said = " ".join(str(error).split())
        raise UsageError(f"{file} is no YAML that can be read: {said}.") from None
    except Refusal as refusal:
        raise UsageError(f"{file}: {refusal}") from refusal


def _text(path: Path) -> str:
    try:
        return sys.stdin.read() if str(path) == "-" else given_file.read_text(path)
    except OSError as error:
        raise UsageError(f"{path} cannot be read ({reason(error)}): give a file.") from None
    except UnicodeDecodeError:
        raise UsageError(f"{path} is no text in UTF-8: give the file as it was written.") from None


def _pairs(given: Pairs, option: str) -> dict[str, str]:
    odd = next((each for each in given or () if "=" not in each), None)
    if odd is not None:
        raise UsageError(f"{option} is {odd!r}: give NAME=VALUE.")
    pairs = [each.split("=", 1) for each in given or ()]
    names = [name for name, _value in pairs]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise UsageError(f"{option} has {printable(twice, 80)} twice: give it once.")
    return dict(pairs)
