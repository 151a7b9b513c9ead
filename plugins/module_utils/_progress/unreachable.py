# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Why a host does not answer over ssh (route, host key or login), and the command that goes on from there.

Which machine, port and user failed is ssh's to say: a jump host and ``~/.ssh/config`` lead elsewhere.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from .._printable import printable
from .command import may_be_secret


@dataclass(frozen=True)
class Login:
    """How Ansible logs in; ssh decides what is empty. Without an address, nothing is known."""

    address: str
    user: str = ""
    port: int = 0
    key: str = ""
    options: tuple[str, ...] = ()
    """Arguments of ssh that lead there, such as those that name a jump host."""
    ssh: bool = True
    """Whether it is ssh at all, and not another connection of Ansible, whose messages are others."""

    @property
    def jumps(self) -> bool:
        """Whether another machine stands between."""
        return bool(re.search(r"(?:^|\s)-J|Proxy(?:Jump|Command)", " ".join(self.options), re.I))

    def arguments(self, *options: str) -> list[str]:
        """The command ``ssh`` to the host."""
        port = ["-p", str(self.port)] if self.port not in (0, 22) else []
        key = ["-i", self.key] if self.key else []
        place = f"{self.user}@{self.address}" if self.user else self.address
        end = ["--"] if place.startswith("-") else []
        return ["ssh", *options, *self.options, *port, *key, *end, place]

    def command(self, *options: str) -> str:
        """The same as a line for a shell; empty where a part of it is not known, or may be a secret."""
        if not self.address or any(may_be_secret(each) for each in self.options):
            return ""
        return shlex.join(self.arguments(*options))


#: Options of ssh that keep a connection, and lead nowhere.
_KEEPING = ("control", "serveralive")


def leading(text: str) -> tuple[str, ...]:
    """The arguments of ssh in a text that say where it goes; ValueError where a quotation has no end."""
    words, found = shlex.split(text), []
    while words:
        word = words.pop(0)
        value = [words.pop(0)] if word == "-o" and words else []
        if word not in ("-C", "-q", "-T") and not (value or [word.removeprefix("-o")])[0].lower().startswith(_KEEPING):
            found += [printable(each) for each in (word, *value)]
    return tuple(found)


@dataclass(frozen=True)
class Cause:
    """Why a host does not answer: a word for it, a sentence, and what to type next, if anything."""

    kind: str
    sentence: str
    command: str
    machine: str = ""
    """The machine on the way that failed, where it is known to be another than the host."""

    @property
    def group(self) -> tuple[str, ...]:
        """The same for hosts of which one sentence tells."""
        return (self.kind, self.machine, self.sentence if self.kind == _UNKNOWN else "")


@dataclass(frozen=True)
class _Row:
    """A cause, as OpenSSH's messages tell of it."""

    kind: str
    signs: str
    """What in a message means this cause."""
    names: str
    """Where the message names the ``place`` that failed, its ``port``, the ``user``, the ``key``, or ``why``."""
    fact: str
    """What is so, with ``{place}``, ``{port}``, ``{user}``, ``{key}`` and ``{why}``."""
    advice: str
    command: Callable[[Login, Login], str]
    """What to type, by the login of Ansible and what is known of the machine that failed."""
    of_variables: bool = False
    """Whether the advice is about variables of the host, which say nothing of a machine on the way."""
    behind: bool = False
    """Whether the machines on the way answer, and the host does not."""


def _ssh(*options: str) -> Callable[[Login, Login], str]:
    return lambda login, _failed: login.command(*options)


def _asks(*program: str) -> Callable[[Login, Login], str]:
    return lambda _login, failed: shlex.join([*program, failed.address]) if failed.address else ""


def _forget(_login: Login, failed: Login) -> str:
    place = f"[{failed.address}]:{failed.port}" if failed.port not in (0, 22) else failed.address
    return shlex.join(["ssh-keygen", "-R", place]) if place else ""


def _protect(login: Login, failed: Login) -> str:
    return shlex.join(["chmod", "600", login.key]) if login.key in ("", failed.key) else login.command("-v")


_UNKNOWN = "no answer"
#: A name or an address. One that begins with a dash would be an option of the command that is offered.
_PLACE = r"\[?(?P<place>[A-Za-z0-9_:][\w.:%-]*)\]?"
_CONNECT = rf"connect to (?:host|address) {_PLACE} port (?P<port>\d+)"
_ELSEWHERE = "Look at ansible_ssh_common_args and ~/.ssh/config, which lead there"

#: The first that matches counts.
_ROWS = (
    _Row(
        "changed host key",
        r"REMOTE HOST IDENTIFICATION HAS CHANGED|Host key for \S+ has changed",
        rf"Host key for {_PLACE}(?::(?P<port>\d+))? has changed",
        "{place} shows another host key than the one that this machine knows",
        "If the node was reinstalled, forget the old key and accept the new one; if not, another machine answers",
        _forget,
    ),
    _Row(
        "unknown host key",
        r"Host key verification failed|host key is known for|authenticity of host",
        rf"(?:host key is known for|authenticity of host) '?{_PLACE}",
        "this machine does not know the host key of {place}",
        "Log in once, compare the fingerprint and accept it",
        _ssh(),
    ),
    _Row(
        "key that others can read",
        r"UNPROTECTED PRIVATE KEY",
        r"Permissions \d+ for '(?P<key>[^'\r\n]+)' are too open",
        "ssh does not use a key that others than its owner can read{key}",
        "Let its owner alone read it",
        _protect,
    ),
    _Row(
        "login refused",
        r"Permission denied(?:,| \()|Too many authentication failures|Invalid/incorrect (?:username/)?password",
        rf"(?P<user>\S+)@{_PLACE}: Permission denied",
        "{place} answers and refuses the login{user}",
        "Set ansible_user and ansible_ssh_private_key_file to a user and a key that it accepts",
        _ssh("-v"),
        of_variables=True,
    ),
    _Row(
        "no way behind the jump host",
        r"open failed: ",
        r"open failed: (?P<why>[^\r\n]+)",
        "the jump host does not reach {place}{why}",
        "See whether the node is switched on, and whether ansible_host is an address that the jump host knows",
        _ssh("-v"),
        behind=True,
    ),
    _Row(
        "no such name",
        r"Could not resolve hostname|Name or service not known|nodename nor servname",
        rf"Could not resolve hostname {_PLACE}:",
        "the name {place} leads to no address",
        "Set ansible_host to the address of the node",
        _asks("getent", "hosts"),
        of_variables=True,
    ),
    _Row(
        "no ssh server",
        r"Connection refused",
        _CONNECT,
        "{place} is there, and nothing listens on its {port}",
        "Start the ssh server there, or set ansible_port",
        _ssh("-v"),
        of_variables=True,
    ),
    _Row(
        "no route",
        r"(?s)\A(?!.*banner exchange).*(?:No route to host|is unreachable|timed out|Host is down|Timeout, server)",
        _CONNECT,
        "nothing answers at {place}",
        "See whether the node is switched on, whether ansible_host is its address, and whether a network leads there",
        _asks("ping", "-c", "3"),
        of_variables=True,
    ),
    _Row(
        "no way over the jump host",
        # Of a connection that is kept (ControlPersist), ssh does not show what its jump host said.
        r"by UNKNOWN port",
        r"(?!)",
        "the connection to {place} ends at a jump host or behind it, and ssh does not say why",
        "See with this command whether the jump host answers, takes the login and reaches the node",
        _ssh("-v"),
        behind=True,
    ),
    _Row(
        "connection cut",
        r"banner exchange|kex_exchange|Connection (?:closed|reset)",
        # The address that it names is another way to write the name of the host.
        r"(?!)",
        "{place} ends the connection before a login",
        "See in the journal of its ssh server why, and whether a firewall stands between",
        _ssh("-v"),
    ),
)
#: What Ansible writes before ssh's own words, and what ssh adds where it is asked for more.
_BEFORE = re.compile(r"^(?:Task failed: )?(?:Failed to connect to the host via \w+:\s*)?")
_DEBUG = re.compile(r"^debug\d: .*\n?", re.MULTILINE)
#: Said of a host that was reached, in words that may be those of ssh.
_REACHED = re.compile(r"Failed to create temporary directory|waiting for privilege escalation prompt")


def cause(message: object, login: Login) -> Cause:
    """The cause that ssh's message tells of. The message is foreign text, and is shown where no cause is known."""
    text = _BEFORE.sub("", _DEBUG.sub("", str(message)))
    if login.address.startswith("-"):
        return Cause(
            "no name of a host",
            f"the name {printable(login.address, 200)} begins with a dash, which ssh takes for an option. Set "
            "ansible_host to the address of the node",
            "",
        )
    row = next((each for each in _ROWS if re.search(each.signs, text, re.I)), None)
    if row is None or not login.ssh or _REACHED.search(text):
        said = printable(" ".join(text.split())).rstrip(".")
        sentence = f"why is not known. What was said is: {said}" if said else "it gave no answer"
        return Cause(_UNKNOWN, sentence, login.command("-v"))
    found = re.search(row.names, text, re.I)
    named = {name: printable(value, 200) for name, value in (found.groupdict() if found else {}).items() if value}
    failed = _failed(row, named, login)
    elsewhere = bool(login.address) and failed.address not in ("", login.address)
    place = failed.address or (f"{login.address} (or a jump host before it)" if login.address else "the host")
    fact = row.fact.format(
        place=f"{place} (where ssh goes for {login.address})" if elsewhere else place,
        port=f"port {failed.port}" if failed.port else "ssh port",
        user=f" as {failed.user}" if failed.user else "",
        key=f" ({failed.key})" if failed.key else "",
        why=f" ({named['why']})" if "why" in named else "",
    )
    advice = _ELSEWHERE if elsewhere and row.of_variables else row.advice
    return Cause(row.kind, f"{fact}. {advice}", row.command(login, failed), place if elsewhere and login.jumps else "")


def _failed(row: _Row, named: Mapping[str, str], login: Login) -> Login:
    """What is known of the machine that failed, as ssh names it; of Ansible's login only where no other is meant."""
    if "place" in named:
        return Login(named["place"], named.get("user", ""), int(named.get("port", 0)))
    known = Login("") if login.jumps and not row.behind else login
    return replace(known, key=named.get("key", ""))
