"""Where the page is served, and on which terms: beyond this machine only over TLS and with a password."""

from __future__ import annotations

import ipaddress
import os
import ssl
import stat
from dataclasses import dataclass
from pathlib import Path

from gaudi3_scale.errors import ConfigError

PORT = 9109
SHORTEST_PASSWORD = 12
LONGEST_PASSWORD = 1000
EXPIRED, NOT_YET = 10, 9
"""OpenSSL's numbers of what is wrong with a certificate."""
_PARTIAL_CHAIN = 0x80000
"""The certificate itself may be the one that is trusted."""


@dataclass(frozen=True)
class Place:
    """An address and a port."""

    address: str
    port: int

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine reaches it. A name may be any machine's."""
        try:
            return self.address == "localhost" or ipaddress.ip_address(self.address).is_loopback
        except ValueError:
            return False

    @property
    def host(self) -> str:
        """As it stands in an address of a browser."""
        return f"[{self.address}]" if ":" in self.address else self.address


def listen_address(given: str) -> Place:
    """The value of --listen: ADDRESS, ADDRESS:PORT or [ADDRESS]:PORT."""
    address, colon, port = given.rpartition(":") if given.count(":") == 1 or given.startswith("[") else (given, "", "")
    if given.startswith("[") and given.endswith("]"):
        address, colon = given, ""
    address = address.removeprefix("[").removesuffix("]")
    try:
        if address != "localhost":
            ipaddress.ip_address(address)
        number = int(port) if colon else PORT
    except ValueError:
        raise ConfigError(f"--listen is {given!r}: give an address and a port, as 127.0.0.1:{PORT}.") from None
    if not 0 <= number <= 65535:
        raise ConfigError(f"--listen has the port {number}: give one of 0 to 65535.")
    return Place(address, number)


def check(where: Place, has_tls: bool, has_password: bool) -> None:
    """Refuse an address that others reach without TLS and a password."""
    if where.is_loopback or (has_tls and has_password):
        return
    missing = " and ".join(
        name for name, given in (("--certificate and --key", has_tls), ("--password-file", has_password)) if not given
    )
    raise ConfigError(
        f"--listen is {where.address}, which other machines reach: give {missing}, or listen on 127.0.0.1."
    )


def password(option: str, path: Path | None, shortest: int = SHORTEST_PASSWORD) -> str:
    """The one line of a file that others cannot read; nothing without a file."""
    if path is None:
        return ""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(handle, "rb") as file:
            mode = os.fstat(handle).st_mode
            content = file.read(LONGEST_PASSWORD + 2)
    except OSError as error:
        raise ConfigError(f"{option} is {path}, which cannot be read: {error.strerror}.") from None
    if stat.S_ISREG(mode) and mode & 0o007:
        raise ConfigError(f"{option} is {path}, which every user of this machine can use: run chmod 600 on it.")
    try:
        found = content.decode().rstrip("\r\n")
    except UnicodeDecodeError:
        found = ""
    if not shortest <= len(found) <= LONGEST_PASSWORD or not found.isprintable():
        raise ConfigError(
            f"{option} is {path}: write a password of {shortest} to {LONGEST_PASSWORD} characters into it, in one line."
        )
    return found


def tls(certificate: Path | None, key: Path | None) -> ssl.SSLContext | None:
    """For a server; a certificate out of date is refused now, since browsers would do it later."""
    if certificate is None and key is None:
        return None
    if certificate is None or key is None:
        raise ConfigError("--certificate and --key belong together: give both.")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(certificate, key)
    except ssl.SSLError:
        raise ConfigError(
            f"{certificate} and {key} are not a certificate and its key: give both as PEM files."
        ) from None
    except OSError as error:
        raise ConfigError(f"{certificate} or {key} cannot be read: {error.strerror}.") from None
    code = _verified(context, certificate)
    if code == EXPIRED:
        raise ConfigError(f"The certificate {certificate} has expired: renew it.")
    if code == NOT_YET:
        raise ConfigError(f"The certificate {certificate} is not valid yet: set this machine's clock.")
    return context


def _verified(server: ssl.SSLContext, certificate: Path) -> int:
    """What a client that trusts this very certificate finds wrong with it; 0 where nothing is."""
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.check_hostname = False
    client.load_verify_locations(certificate)
    client.verify_flags |= ssl.VerifyFlags(_PARTIAL_CHAIN)
    there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [client.wrap_bio(back, there), server.wrap_bio(there, back, server_side=True)]
    for _round in range(4):
        for end in ends:
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                continue
            except ssl.SSLCertVerificationError as error:
                return error.verify_code
            except ssl.SSLError:
                return 0
    return 0


def authority(path: Path | None) -> ssl.SSLContext:
    """For a client: whom it trusts."""
    try:
        return ssl.create_default_context(cafile=str(path) if path else None)
    except (OSError, ssl.SSLError) as error:
        said = error.strerror if isinstance(error, (FileNotFoundError, PermissionError)) else "it has no certificate"
        raise ConfigError(f"--prometheus-ca-file is {path}, which cannot be used: {said}.") from None
