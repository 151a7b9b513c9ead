# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""The ssh that restic speaks SFTP through: never a question, no unknown host key, and no key on the disk.

Key and host keys are in memory, and ssh reads them through this process: nothing is left where it is killed, and no
argument has them.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import shutil
from collections.abc import Iterator
from typing import NamedTuple

from .._refusal import Refusal
from .process import command

SCHEME = "sftp:"
_HOST = r"[A-Za-z0-9_](?:[A-Za-z0-9._-]*[A-Za-z0-9])?"
_USER = r"(?:(?P<user>[A-Za-z0-9_][A-Za-z0-9._-]*)@)?"
_URL = re.compile(rf"sftp://{_USER}(?P<host>{_HOST}|\[[0-9A-Fa-f:.]+\])(?::(?P<port>[1-9][0-9]{{0,4}}))?/.+")
_SHORT = re.compile(rf"sftp:(?!//){_USER}(?P<host>{_HOST}):.+")
#: In seconds, after which a store that does not answer is away: at the beginning, and later four times that.
_PATIENCE = 30
_KEY = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----\n.+\n-----END [A-Z ]*PRIVATE KEY-----", re.DOTALL)


class Login(NamedTuple):
    """Where a repository's store is reached."""

    user: str
    host: str
    port: str


def login_of(address: str) -> Login:
    """What an address says to ssh; ``Refusal``, which begins with the name of the option, where it cannot be read."""
    found = _URL.fullmatch(address) or _SHORT.fullmatch(address)
    if not found or int(found.groupdict().get("port") or 22) > 65535:
        raise Refusal(
            f"repository is {address!r}: give a store over SFTP as sftp:USER@HOST:/FOLDER, or with a port as "
            "sftp://USER@HOST:PORT//FOLDER"
        )
    parts = found.groupdict()
    return Login(parts["user"] or "", parts["host"].strip("[]"), parts.get("port") or "")


def check(address: str, key: str, known_hosts: str) -> None:
    """``Refusal`` of what cannot work, before anything is asked; it begins with the name of the option."""
    if not address.startswith(SCHEME):
        for name, given in (("ssh_key", key), ("ssh_known_hosts", known_hosts)):
            if given:
                raise Refusal(f"{name} is given, and the repository is not reached by sftp: leave it out")
        return
    login_of(address)
    if key and not _KEY.fullmatch(_text(key).strip()):
        raise Refusal(
            "ssh_key is no private key as ssh-keygen writes one: give the whole file, from BEGIN to END, or leave it "
            "out"
        )
    for line in _text(known_hosts).splitlines():
        if line.strip() and not line.startswith("#") and len(line.split()) < 3:
            raise Refusal(
                f"ssh_known_hosts has the line {line[:80]!r}: give lines of a host, a type and a key, as ssh-keyscan "
                "prints them"
            )


@contextlib.contextmanager
def options(address: str, key: str, known_hosts: str) -> Iterator[list[str]]:
    """What restic is given for an address; nothing where that is not of SFTP."""
    if not address.startswith(SCHEME):
        yield []
        return
    with _ssh(address, key, known_hosts) as argv:
        yield ["-o", "sftp.command=" + " ".join(map(shlex.quote, argv))]


def explain(address: str, key: str, known_hosts: str) -> None:
    """``Refusal`` with the reason where ssh cannot reach the store.

    After a failure of restic, which does not always have what ssh said.
    """
    if not address.startswith(SCHEME):
        return
    with _ssh(address, key, known_hosts) as argv:
        code, _output, said = command(argv)
    if code == 0:
        return
    host = login_of(address).host
    if "REMOTE HOST IDENTIFICATION HAS CHANGED" in said:
        raise Refusal(
            f"{host} shows another host key than the one that is known: find out why, and give the right line in "
            "ssh_known_hosts"
        )
    if "ost key verification failed" in said or "host key is known" in said:
        raise Refusal(
            f"the host key of {host} is not known: compare what ssh-keyscan prints with the key of the store, and give "
            "it in ssh_known_hosts"
        )
    if "Permission denied" in said:
        whose = "of ssh_key" if key else "of this user's own key"
        raise Refusal(f"{host} lets nobody in with the key that is given: see that it knows the public half {whose}")
    raise Refusal(f"{host} cannot be reached by ssh ({said or f'it ended with {code}'}): see that it runs")


@contextlib.contextmanager
def _ssh(address: str, key: str, known_hosts: str) -> Iterator[list[str]]:
    if shutil.which("ssh") is None:
        raise Refusal("ssh is not on this machine, and the repository is reached by sftp: install openssh-client")
    where = login_of(address)
    told = {
        "BatchMode": "yes",
        "StrictHostKeyChecking": "yes",
        "UpdateHostKeys": "no",
        "ConnectTimeout": str(_PATIENCE),
        "ServerAliveInterval": str(_PATIENCE),
        "ServerAliveCountMax": "4",
        "ForwardAgent": "no",
        "ForwardX11": "no",
        "ClearAllForwardings": "yes",
    }
    with contextlib.ExitStack() as stack:
        if known_hosts:
            told["UserKnownHostsFile"] = stack.enter_context(_in_memory(known_hosts))
            told["GlobalKnownHostsFile"] = "/dev/null"
        if key:
            told.update(IdentityFile=stack.enter_context(_in_memory(key)), IdentitiesOnly="yes", IdentityAgent="none")
        given = [part for name, value in told.items() for part in ("-o", f"{name}={value}")]
        given += ["-p", where.port] if where.port else []
        given += ["-l", where.user] if where.user else []
        yield ["ssh", *given, "-s", "--", where.host, "sftp"]


@contextlib.contextmanager
def _in_memory(text: str) -> Iterator[str]:
    """A file without a place on the disk, which its owner alone reads; its name for other programs."""
    handle = os.memfd_create("gaudi3-backup")
    try:
        os.fchmod(handle, 0o600)
        with os.fdopen(os.dup(handle), "w", encoding="utf-8") as stream:
            stream.write(_text(text).rstrip("\n") + "\n")
        yield f"/proc/{os.getpid()}/fd/{handle}"
    finally:
        os.close(handle)


def _text(given: str) -> str:
    return given.replace("\r\n", "\n")
