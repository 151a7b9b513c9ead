"""Serves a page until it is stopped, with its terms checked first; for the command and for the unit of role watch."""

from __future__ import annotations

import urllib.parse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gaudi3_scale.errors import ConfigError, TrainerError
from gaudi3_scale.metrics_listener import BoundedServer
from gaudi3_watch import listening
from gaudi3_watch.cluster import ClusterSource
from gaudi3_watch.pages import Pages, Source
from gaudi3_watch.prometheus import Prometheus

CALLERS = 64
"""A browser asks for six things at a time."""


@dataclass(frozen=True)
class Terms:
    """Where a page is served, and to whom."""

    where: listening.Place
    certificate: Path | None = None
    key: Path | None = None
    password_file: Path | None = None
    names: Sequence[str] = ()
    """Those by which browsers reach the page, beside its addresses."""


def cluster_source(
    prometheus: str,
    user: str,
    password_file: Path | None,
    ca_file: Path | None,
    health: Path | None = None,
    simulated: bool = False,
) -> ClusterSource:
    """The figures of a cluster; ConfigError for an address or a file that cannot be."""
    _check_address(prometheus, password_file)
    check_folder("--health", health)
    secret = listening.password("--prometheus-password-file", password_file, shortest=1)
    server = Prometheus(prometheus, (user, secret) if secret else None, listening.authority(ca_file))
    return ClusterSource(server, health, simulated)


def serve(source: Source, terms: Terms) -> None:
    """Print the address of the page and serve it; ConfigError or TrainerError where that cannot be."""
    tls = listening.tls(terms.certificate, terms.key)
    password = listening.password("--password-file", terms.password_file)
    listening.check(terms.where, tls is not None, bool(password))
    where = f"{terms.where.host}:{terms.where.port}"
    try:
        pages = Pages(source, password, terms.names)
        server = BoundedServer(terms.where.address, terms.where.port, pages, tls, CALLERS)
    except OSError as error:
        raise TrainerError(f"{where} cannot be listened on ({error.strerror}): give another --listen.") from None
    with server:
        # Whoever started it, a person or a program, waits for this line.
        print(f"{'https' if tls else 'http'}://{terms.where.host}:{server.server_port}/", flush=True)
        server.serve_forever()


def check_folder(option: str, given: Path | None) -> None:
    """ConfigError for what is no folder."""
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
