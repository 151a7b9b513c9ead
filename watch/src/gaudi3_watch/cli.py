"""The command `gaudi3-watch`."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from gaudi3_scale.calling import call, offer_version
from gaudi3_scale.errors import TrainerError
from gaudi3_watch import listening
from gaudi3_watch.pages import USER
from gaudi3_watch.serve import Terms, check_folder, cluster_source, serve

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Show a training, its cards, its nodes and its cost on one page that only reads.",
)

Listen = Annotated[str, typer.Option(help="Address and port of the page; port 0 takes any that is free.")]
Certificate = Annotated[Path | None, typer.Option(help="Certificate of the page, PEM; needed beyond this machine.")]
Key = Annotated[Path | None, typer.Option(help="The certificate's key.")]
PasswordFile = Annotated[
    Path | None, typer.Option(help=f"File with the page's password, whose user is {USER}; needed beyond this machine.")
]
Name = Annotated[
    list[str] | None, typer.Option(help="A name by which browsers reach the page, beside its address; may be repeated.")
]
Health = Annotated[Path | None, typer.Option(help="Folder of the reports and passports of gaudi3.scale.health.")]
LISTEN = f"127.0.0.1:{listening.PORT}"


offer_version(app, "gaudi3-watch")


@app.command()
def run(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="A job's output_dir, or a folder of such folders.")],
    health: Health = None,
    listen: Listen = LISTEN,
    certificate: Certificate = None,
    key: Key = None,
    password_file: PasswordFile = None,
    name: Name = None,
) -> None:
    """Show a job, or the jobs in a folder, from their own files: no Prometheus and no Ansible. Ctrl+C ends it."""
    from gaudi3_watch.folder import FolderSource

    check_folder("FOLDER", folder)
    check_folder("--health", health)
    source = FolderSource(folder, health)
    serve(source, Terms(listening.listen_address(listen), certificate, key, password_file, name or ()))


@app.command()
def cluster(
    prometheus: Annotated[str, typer.Option(help="Address of the cluster's Prometheus, as https://monitor:9090.")],
    prometheus_user: Annotated[str, typer.Option(help="Its user.")] = "prometheus",
    prometheus_password_file: Annotated[Path | None, typer.Option(help="File with that user's password.")] = None,
    prometheus_ca_file: Annotated[
        Path | None, typer.Option(help="Certificate of the authority that signed Prometheus', PEM.")
    ] = None,
    simulated: Annotated[
        bool, typer.Option("--simulated", help="Say on the page that the cluster is a simulated one.")
    ] = False,
    health: Health = None,
    listen: Listen = LISTEN,
    certificate: Certificate = None,
    key: Key = None,
    password_file: PasswordFile = None,
    name: Name = None,
) -> None:
    """Show a cluster from its Prometheus: training, cards and ports, nodes, cost and alerts. Ctrl+C ends it."""
    source = cluster_source(
        prometheus, prometheus_user, prometheus_password_file, prometheus_ca_file, health, simulated
    )
    serve(source, Terms(listening.listen_address(listen), certificate, key, password_file, name or ()))


def main() -> NoReturn:
    """Run the command line; what a user can act on is said in one sentence."""
    try:
        code = call(app, "gaudi3-watch")
    except TrainerError as error:
        with contextlib.suppress(OSError):
            print(f"gaudi3-watch: {error}", file=sys.stderr)
        code = error.exit_code
    sys.exit(code)
