# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Reads a management controller over Redfish: GET alone, over TLS, within a time and a size.

There is no way here to send anything but GET, so no record of events can be deleted and no session is left behind. The
password goes into a header, and only after the controller has shown who it is: by a certificate of an authority, or by
the fingerprint of its own. No redirect and no link of an answer is followed, and no proxy is asked.
"""

from __future__ import annotations

import base64
import hashlib
import http.client
import re
import socket
import ssl
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Optional

from .._kinds import mapping, parsed
from .._printable import printable
from .._refusal import Refusal

ROOT = "/redfish/v1"
#: Bytes that one answer may have. The largest of the published model has a few thousand.
LARGEST = 1 << 20
#: Seconds without a byte after which an answer is given up.
PATIENCE = 15.0
PORT = 443
_HOST = re.compile(
    r"\[(?P<six>[0-9A-Fa-f:.]+)\](?::(?P<port6>\d{1,5}))?|(?P<host>[A-Za-z0-9._-]+)(?::(?P<port>\d{1,5}))?"
)


class Unread(Exception):
    """One resource could not be read, and why; ``is_absent`` says that the controller does not have it."""

    def __init__(self, why: str, is_absent: bool = False) -> None:
        super().__init__(why)
        self.is_absent = is_absent


@dataclass(frozen=True)
class Endpoint:
    """Where a controller listens."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def endpoint_of(address: str) -> Endpoint:
    """What an address names; refuses what is more than a host and a port."""
    if address.count(":") > 1 and not address.startswith("["):
        address = f"[{address}]"
    found = _HOST.fullmatch(address)
    port = int((found["port6"] or found["port"] or PORT) if found else 0)
    if found is None or not 0 < port < 1 << 16:
        # What stands before an @ may be a password.
        shown = printable(address.rpartition("@")[2], 100)
        raise Refusal(
            f'The address of the management controller is "{shown}": give a name or an address, with a port where it'
            " is not 443, such as 10.9.0.1 or 10.9.0.1:8443, and nothing else."
        )
    return Endpoint(found["six"] or found["host"], port)


@dataclass(frozen=True)
class Trust:
    """By what a controller is known: an authority's certificate (that of the machine if None), or its fingerprint."""

    ca_path: Optional[str] = None
    fingerprint: Optional[str] = None

    def context(self) -> ssl.SSLContext:
        """Settings of TLS. With a fingerprint nothing is sent before ``check``."""
        try:
            made = ssl.create_default_context(cafile=self.ca_path)
        except OSError as error:
            raise Refusal(f"{self.ca_path} is no file of certificates ({error}): give one in the form PEM.") from None
        if self.fingerprint:
            made.check_hostname = False
            made.verify_mode = ssl.CERT_NONE
        return made

    def check(self, certificate: Optional[bytes], endpoint: Endpoint) -> None:
        """Refuse a certificate with another fingerprint."""
        if not self.fingerprint:
            return
        wanted = self.fingerprint.replace(":", "").strip().lower()
        shown = hashlib.sha256(certificate or b"").hexdigest()
        if not re.fullmatch(r"[0-9a-f]{64}", wanted):
            raise Refusal("The fingerprint is no SHA-256 of a certificate: give its 64 hexadecimal digits.")
        if shown != wanted:
            raise Refusal(
                f"The management controller at {endpoint} shows a certificate with the fingerprint {shown}, which is"
                " not the one that was given: find out why before you trust it. Nothing was sent to it."
            )


class Controller:
    """One management controller, over one connection that is kept."""

    def __init__(self, endpoint: Endpoint, trust: Trust, user: str, password: str, seconds: float) -> None:
        if ":" in user:
            raise Refusal(
                "The user of the management controller has a colon in its name, which HTTP Basic cannot send."
            )
        self.endpoint = endpoint
        self._trust = trust
        self._context = trust.context()
        secret = base64.b64encode(f"{user}:{password}".encode()).decode("ascii")
        self._headers = {"Accept": "application/json", "Authorization": f"Basic {secret}", "OData-Version": "4.0"}
        self._end = time.monotonic() + seconds
        self._link: Optional[http.client.HTTPConnection] = None
        self._socket: Optional[socket.socket] = None
        # A timeout of a socket begins again with each byte, so a controller that sends slowly is cut off from outside.
        self._cut = threading.Timer(seconds, self._cut_off)
        self._cut.daemon = True
        self._cut.start()

    def __enter__(self) -> Controller:
        return self

    def __exit__(self, *error: object) -> None:
        self._cut.cancel()
        self._close()

    @property
    def seconds_left(self) -> float:
        """Until no answer is waited for."""
        return self._end - time.monotonic()

    def first(self) -> Mapping[str, Any]:
        """The service's root; refuses where nothing answers, or what answers is no Redfish."""
        try:
            root = self.get(ROOT + "/")
        except Unread as error:
            raise Refusal(f"The management controller at {self.endpoint} cannot be read: {error}.") from None
        if not isinstance(root.get("RedfishVersion"), str):
            raise Refusal(f"What answers at {self.endpoint} is no Redfish: its root has no RedfishVersion.")
        return root

    def get(self, path: str) -> Mapping[str, Any]:
        """A resource. Unread concerns it alone, Refusal everything."""
        for attempt in (1, 2):
            try:
                return self._ask(path)
            except (OSError, http.client.HTTPException) as error:
                self._close()
                # A controller may close a connection that was idle; a second time it is its answer.
                if attempt == 2 or not isinstance(error, (http.client.BadStatusLine, ConnectionError, ssl.SSLEOFError)):
                    raise Unread(self._why(error)) from None
        raise AssertionError("the second attempt returns or raises")

    def _ask(self, path: str) -> Mapping[str, Any]:
        if self.seconds_left <= 0:
            raise Unread("the time was over")
        link = self._connected()
        link.request("GET", path, headers=self._headers)
        answer = link.getresponse()
        body = answer.read(LARGEST + 1)
        if len(body) > LARGEST or answer.will_close:
            self._close()
        if self.seconds_left <= 0:
            raise Unread("the time was over")  # what came is cut off, and may look whole
        if len(body) > LARGEST:
            raise Unread(f"the answer has more than {LARGEST} bytes")
        if answer.status == http.client.UNAUTHORIZED:
            # Not asked again: a controller may lock an account after a few wrong passwords.
            raise Refusal(
                f"The management controller at {self.endpoint} refuses the user and the password (HTTP 401): give those"
                " of an account that may read, and see whether it takes a password with each request (HTTP Basic)."
            )
        if answer.status == http.client.NOT_FOUND:
            raise Unread("it has no such resource (HTTP 404)", is_absent=True)
        if answer.status != http.client.OK:
            raise Unread(f"HTTP {answer.status}")
        content = parsed(body.decode("utf-8", "replace"))
        if not isinstance(content, dict):
            raise Unread("the answer is no JSON object")
        return mapping(content)

    def _connected(self) -> http.client.HTTPConnection:
        if self._link is None:
            limit = max(0.1, min(PATIENCE, self.seconds_left))
            raw = socket.create_connection((self.endpoint.host, self.endpoint.port), limit)
            raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._socket = raw
            secured = self._context.wrap_socket(raw, server_hostname=self.endpoint.host, do_handshake_on_connect=False)
            self._socket = secured
            secured.do_handshake()
            self._trust.check(secured.getpeercert(binary_form=True), self.endpoint)
            self._link = http.client.HTTPConnection(self.endpoint.host, self.endpoint.port)
            self._link.sock = secured
            self._link.auto_open = 0  # it would connect again by itself, without TLS
        if self._socket is not None:
            self._socket.settimeout(max(0.1, min(PATIENCE, self.seconds_left)))
        return self._link

    def _why(self, error: Exception) -> str:
        if self.seconds_left <= 0:
            return "the time was over"
        if isinstance(error, ssl.SSLCertVerificationError):
            return (
                f"its certificate is not trusted ({printable(error.verify_message, 200)}); give the certificate of its"
                " authority in ca_path, or the fingerprint of its own"
            )
        if isinstance(error, (socket.timeout, TimeoutError)):
            return f"no answer within {PATIENCE:.0f} s"
        return printable(str(error) or type(error).__name__, 200)

    def _cut_off(self) -> None:
        """Have a read that waits end. Not SSLSocket's own shutdown, which takes TLS from under the reader."""
        held = self._socket
        if held is not None:
            try:
                socket.socket.shutdown(held, socket.SHUT_RDWR)
            except OSError:
                return  # it is closed already

    def _close(self) -> None:
        link, held = self._link, self._socket
        self._link = self._socket = None
        if link is not None:
            link.close()
        if held is not None:
            held.close()
