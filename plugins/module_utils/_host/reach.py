# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Whether a node reaches a download, through all hosts that it is passed on to, before it is needed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from urllib.parse import urljoin, urlsplit

#: How often a download may be passed on.
HOPS = 5
_PASSED_ON = (301, 302, 303, 307, 308)


class Unreachable(Exception):
    """Who did not answer or refused, in one sentence."""


@dataclass(frozen=True)
class Answer:
    """A web server's answer, without what it sends along unless that was asked for."""

    status: int
    headers: Mapping[str, str]
    body: bytes = b""

    @property
    def size(self) -> int:
        """Bytes of what was asked for; 0 where the server does not say."""
        text = self.headers.get("content-length", "")
        return int(text) if text.isdigit() else 0


#: Asks for one address without following it anywhere, the names of headers in small letters; OSError where nobody
#: answers.
Ask = Callable[[str], Answer]


def follow(ask: Ask, url: str, advice: str, what: str = "") -> Answer:
    """The last answer for ``url``; Unreachable names the host that did not answer, or that does not have it.

    ``what`` stands for the address in the message.
    """
    here, what = url, what or _plain(url)
    for _hop in range(HOPS + 1):
        by = "" if here == url else f" (where {_host(url)} sends to)"
        try:
            answer = ask(here)
        except (OSError, ValueError) as error:
            reason = getattr(error, "reason", error)
            raise Unreachable(
                f"{_host(here)}{by} cannot be reached for {what} ({reason}): open the way to it, set a proxy in "
                f"the play's environment, or {advice}."
            ) from error
        if answer.status in _PASSED_ON and answer.headers.get("location"):
            here = urljoin(here, answer.headers["location"])
            continue
        if answer.status != 200:
            raise Unreachable(f"{_host(here)}{by} answers {answer.status} for {what}: {advice}.")
        return answer
    raise Unreachable(f"{what} is passed on more than {HOPS} times, last to {_host(here)}: {advice}.")


def _host(url: str) -> str:
    return urlsplit(url).hostname or url


def _plain(url: str) -> str:
    """The address without a user and password."""
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
