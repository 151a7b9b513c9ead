"""The command `gaudi3-watch`."""

from __future__ import annotations

import contextlib
import sys
import urllib.parse
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from gaudi3_scale.calling import call, offer_version
from gaudi3_scale.errors import ConfigError, TrainerError
from gaudi3_watch import listening
from gaudi3_watch.pages import USER, Pages, Source

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
CALLERS = 64
"""A browser asks for six things at a time."""
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

    _check_folder("FOLDER", folder)
    _check_folder("--health", health)
    _serve(FolderSource(folder, health), listen, certificate, key, password_file, name)


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
    from gaudi3_watch.cluster import ClusterSource
    from gaudi3_watch.prometheus import Prometheus

    _check_address(prometheus, prometheus_password_file)
    _check_folder("--health", health)
    secret = listening.password("--prometheus-password-file", prometheus_password_file, shortest=1)
    server = Prometheus(
        prometheus, (prometheus_user, secret) if secret else None, listening.authority(prometheus_ca_file)
    )
    _serve(ClusterSource(server, health, simulated), listen, certificate, key, password_file, name)


def _check_folder(option: str, given: Path | None) -> None:
    if given is not None and not given.is_dir():
        raise ConfigError(f"{option} is {given}, which is no folder: give one that exists.")


def _check_address(prometheus: str, password_file: Path | None) -> None:
    try:
        parts = urllib.parse.urlsplit(prometheus)
        sound = parts.scheme in ("http", "https") and parts.hostname and (parts.port or 1) and not parts.query
    except ValueError:
        sound, parts = False, urllib.parse.urlsplit("")
    if not sound:
        raise ConfigError("--prometheus is no address: give one as https://monitor:9090.")
    if parts.username or parts.password:
        raise ConfigError(
            "--prometheus has a password in it, which every user here can see: give --prometheus-password-file."
        )
    if parts.scheme == "http" and password_file and parts.hostname not in ("localhost", "127.0.0.1", "::1"):
        raise ConfigError(
            "--prometheus is plain HTTP, which would send the password in the clear: give an https address."
        )


def _serve(
    source: Source,
    listen: str,
    certificate: Path | None,
    key: Path | None,
    password_file: Path | None,
    names: list[str] | None,
) -> None:
    from gaudi3_scale.serving import BoundedServer

    where = listening.listen_address(listen)
    tls = listening.tls(certificate, key)
    password = listening.password("--password-file", password_file)
    listening.check(where, tls is not None, bool(password))
    try:
        server = BoundedServer(where.address, where.port, Pages(source, password, names or ()), tls, CALLERS)
    except OSError as error:
        raise TrainerError(f"{listen} cannot be listened on ({error.strerror}): give another --listen.") from None
    with server:
        scheme = "https" if tls else "http"
        # Whoever started it, a person or a program, waits for this line.
        print(f"{scheme}://{where.host}:{server.server_port}/", flush=True)
        server.serve_forever()


def main() -> NoReturn:
    """Run the command line; what a user can act on is said in one sentence."""
    try:
        code = call(app, "gaudi3-watch")
    except TrainerError as error:
        with contextlib.suppress(OSError):
            print(f"gaudi3-watch: {error}", file=sys.stderr)
        code = error.exit_code
    sys.exit(code)
