# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Why a host does not answer over ssh (route, host key or login), and the command that goes on from there."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass

from .._printable import printable


@dataclass(frozen=True)
class Login:
    """How Ansible logs in; what is empty, ssh decides."""

    address: str
    user: str = ""
    port: int = 0
    key: str = ""

    def arguments(self, *options: str) -> list[str]:
        """The command ``ssh`` to the host."""
        port = ["-p", str(self.port)] if self.port not in (0, 22) else []
        key = ["-i", self.key] if self.key else []
        return ["ssh", *options, *port, *key, f"{self.user}@{self.address}" if self.user else self.address]

    def command(self, *options: str) -> str:
        """The same as a line for a shell."""
        return shlex.join(self.arguments(*options))


@dataclass(frozen=True)
class Cause:
    """Why a host does not answer: a word for it, a sentence, and what to type next."""

    kind: str
    sentence: str
    command: str


#: Of OpenSSH's messages; the first that matches counts.
_NEW_KEY = re.compile(r"REMOTE HOST IDENTIFICATION HAS CHANGED|Host key for \S+ has changed", re.I)
_KEY = re.compile(r"Host key verification failed|host key is known for|authenticity of host", re.I)
_NAME = re.compile(r"Could not resolve hostname|Name or service not known|nodename nor servname", re.I)
_REFUSED = re.compile(r"Connection refused", re.I)
_ROUTE = re.compile(
    r"No route to host|Network is unreachable|timed? ?out|Host is down|Connection (?:closed|reset)|kex_exchange", re.I
)
_LOGIN = re.compile(
    r"Permission denied|Too many authentication failures|Invalid/incorrect password|UNPROTECTED PRIVATE KEY", re.I
)


def cause(message: object, login: Login) -> Cause:
    """The cause that ssh's message tells of. The message is foreign text, and is shown where no cause is known."""
    text = str(message)
    # A host name or an address that begins with a dash would be an option of the command that is offered.
    address = shlex.quote(login.address)
    if _NEW_KEY.search(text):
        place = f"[{login.address}]:{login.port}" if login.port not in (0, 22) else login.address
        return Cause(
            "changed host key",
            f"{login.address} shows another host key than the one that this machine knows. If the node was installed "
            "anew, forget the old key and accept the new one; if not, another machine answers",
            shlex.join(["ssh-keygen", "-R", place]),
        )
    if _KEY.search(text):
        return Cause(
            "unknown host key",
            f"this machine does not know the host key of {login.address}. Log in once, compare the fingerprint and "
            "accept it",
            login.command(),
        )
    if _LOGIN.search(text):
        who = f" as {login.user}" if login.user else ""
        return Cause(
            "login refused",
            f"{login.address} answers and refuses the login{who}. Set ansible_user and ansible_ssh_private_key_file to "
            "a user and a key that it accepts",
            login.command("-v"),
        )
    if _NAME.search(text):
        return Cause(
            "no such name",
            f"the name {login.address} leads to no address. Set ansible_host to the address of the node",
            f"getent hosts {address}",
        )
    if _REFUSED.search(text):
        port = login.port or 22
        return Cause(
            "no ssh server",
            f"{login.address} is there, and nothing listens on its port {port}. Start the ssh server there, or set "
            "ansible_port",
            login.command("-v"),
        )
    if _ROUTE.search(text):
        return Cause(
            "no route",
            f"nothing answers at {login.address}. See whether the node is switched on, whether ansible_host is its "
            "address, and whether a network leads there",
            f"ping -c 3 {address}",
        )
    return Cause("no answer", printable(text).strip().rstrip(".") or "it gave no answer", login.command("-v"))
