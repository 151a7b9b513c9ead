"""mirror: a folder with all that one release is installed from, sealed and verified."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
import yaml

from gaudi3_deploy.app import Context, Json, app, print_json, talker
from gaudi3_deploy.collection._mirror import LOCK
from gaudi3_deploy.collection._printable import printable
from gaudi3_deploy.errors import UsageError
from gaudi3_deploy.mirror import fill, images
from gaudi3_deploy.mirror.download import amount, check_url
from gaudi3_deploy.mirror.monitoring import sources_of
from gaudi3_deploy.mirror.sealed import digest_of, read, verify
from gaudi3_deploy.mirror.signature import sign, signer_of

mirror = typer.Typer(no_args_is_help=True, help="A folder with all that one release is installed from, sealed.")
app.add_typer(mirror, name="mirror")

Folder = Annotated[Path, typer.Argument(help="Folder of the mirror.")]


@mirror.command("fill")
def fill_command(
    context: typer.Context,
    folder: Folder,
    release: Annotated[str, typer.Option(help="Release, such as 1.23.0-695.")],
    system: Annotated[list[str], typer.Option(help="System of the nodes, as 'Ubuntu 24.04'; repeatable.")],
    vault: Annotated[str, typer.Option(help="Where the vendor's repositories are.")] = (
        "https://vault.habana.ai/artifactory"
    ),
    pytorch: Annotated[bool, typer.Option(help="With the vendor's PyTorch.")] = True,
    requirements: Annotated[
        list[Path] | None,
        typer.Option(help="Wheels to have, with hashes, as requirements/trainer.txt; repeatable."),
    ] = None,
    python: Annotated[str, typer.Option(help="Python of the nodes, for the wheels.")] = "3.12",
    index: Annotated[str, typer.Option(help="Index of the wheels [default: pip's own].")] = "",
    extra_index: Annotated[str, typer.Option(help="Index that is asked for wheels besides.")] = "",
    ofi_wrapper: Annotated[bool, typer.Option("--ofi-wrapper", help="With the sources of the OFI wrapper.")] = False,
    monitoring: Annotated[
        bool,
        typer.Option("--monitoring", help="With node_exporter, Grafana, and for Ubuntu Prometheus and Alertmanager."),
    ] = False,
    image: Annotated[
        list[str] | None,
        typer.Option(help="Container image to have: pytorch, vllm, exporter, or a name with registry; repeatable."),
    ] = None,
    registry: Annotated[str, typer.Option(help="Where the vendor's images are.")] = "https://vault.habana.ai",
    as_json: Json = False,
) -> None:
    """Fetch all of one release into a folder, each file once, and write its lock; goes on where it was stopped.

    Exit codes: 0 whole and sealed, 1 something is not available or is not right, 2 an input is wrong.
    """
    settings: Context = context.obj
    talker(settings, as_json)
    url, digests = fill.wrapper_of(settings.collection) if ofi_wrapper else ("", ())
    systems = fill.check(release, system)
    request = fill.Request(
        release, systems, check_url("--vault", vault), pytorch, tuple(requirements or ()), python,
        check_url("--index", index) if index else "", check_url("--extra-index", extra_index) if extra_index else "",
        url, digests,
        sources_of(settings.collection) if monitoring else None,
        images.names(release, systems, tuple(image or ())), check_url("--registry", registry),
    )  # fmt: skip

    def tell(line: str) -> None:
        settings.console.print(line, highlight=False, markup=False, soft_wrap=True)

    lock, fetched = fill.fill(folder.resolve(), request, tell)
    size, digest = sum(each.size for each in lock.files.values()), digest_of(folder / LOCK)
    if as_json:
        print_json({"release": release, "files": len(lock.files), "bytes": size, "fetched": fetched, "lock": digest})
        return
    tell(f"{folder}: {len(lock.files)} files of {release}, {amount(size)}, {fetched} fetched now")
    tell(f"{LOCK} has SHA-256 {digest}")


@mirror.command("verify")
def verify_command(
    context: typer.Context,
    folder: Folder,
    lock_sha256: Annotated[str, typer.Option(help="SHA-256 that the lock must have, as `fill` printed it.")] = "",
    signers: Annotated[
        Path | None, typer.Option(help="Who may have signed the lock, as allowed_signers of ssh.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Read every byte of a mirror and name what is changed, missing, not in the lock, or of another release.

    Exit codes: 0 all is as the lock says, 1 it is not, 2 there is no mirror.
    """
    settings: Context = context.obj
    signer = signer_of(folder, signers) if signers else ""
    lock, faults = verify(folder, lock_sha256)
    if as_json:
        print_json({"release": lock.release, "files": len(lock.files), "faults": faults, "signer": signer})
    else:
        size = amount(sum(each.size for each in lock.files.values()))
        end = f"{len(faults)} of them or beside them not as {LOCK} says" if faults else f"all as {LOCK} says"
        end += f", signed by {signer}" if signer else ""
        about = f"{folder}: {len(lock.files)} files of {printable(lock.release)}, {size}, {end}"
        for line in (*faults, about):
            settings.console.print(line, highlight=False, markup=False, soft_wrap=True)
    if faults:
        raise typer.Exit(1)


@mirror.command("sign")
def sign_command(
    context: typer.Context,
    folder: Folder,
    key: Annotated[Path, typer.Option(help="SSH key that signs, or its public half where an agent has it.")],
) -> None:
    """Sign the lock of a mirror with an SSH key, so that nobody can change both files and lock.

    Exit codes: 0 signed, 1 ssh-keygen does not sign, 2 there is no mirror or no key.
    """
    settings: Context = context.obj
    settings.console.print(f"signed: {sign(folder, key)}", highlight=False, markup=False, soft_wrap=True)


@mirror.command()
def variables(
    context: typer.Context,
    folder: Folder,
    url: Annotated[str, typer.Argument(help="Address that the nodes have the folder at.")],
) -> None:
    """Print the variables that let the collection install from a mirror, for group_vars.

    Exit codes: 0 printed, 2 there is no mirror, or the address is wrong.
    """
    lock = read(folder / LOCK)
    if lock is None:
        raise UsageError(f"{folder} has no {LOCK}: `gaudi3-deploy mirror fill` writes one when a mirror is whole.")
    typer.echo(
        yaml.safe_dump(fill.variables(lock, check_url("The address", url)), sort_keys=False, width=1000), nl=False
    )
