"""Answers requests: the page, its assets and its data. It reads only, and answers nobody whom it does not know.

A browser that shows another site's page may be made to ask this server: names in `Host` that are not this server's
(DNS rebinding) and requests that another site's script makes are refused.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import hmac
import ipaddress
import json
import math
import urllib.parse
from collections.abc import Callable, Iterable, Mapping
from importlib.resources import files
from typing import Any, Protocol

from gaudi3_watch.view import Asked, View

USER = "watch"
"""The name that goes with the password."""
STATIC = {
    "index.html": "text/html; charset=utf-8",
    "watch.css": "text/css; charset=utf-8",
    "watch.js": "text/javascript; charset=utf-8",
    "charts.js": "text/javascript; charset=utf-8",
    "elements.js": "text/javascript; charset=utf-8",
    "address.js": "text/javascript; charset=utf-8",
    "theme.js": "text/javascript; charset=utf-8",
    "uplot.min.js": "text/javascript; charset=utf-8",
    "uplot.min.css": "text/css; charset=utf-8",
    "icon.svg": "image/svg+xml",
}
PARAMETERS = {"from", "to", "last", "width", "node", "job"}
LONGEST_QUERY = 2000
WIDTHS = (50, 2000)
WORTH_PACKING = 2000
POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    )
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Server": "gaudi3-watch",
}
Start = Callable[[str, list[tuple[str, str]]], Any]


class Source(Protocol):
    """Where the figures come from."""

    def page(self, asked: Asked) -> View:
        """The whole page as plain data."""


class Pages:
    """The application that the server calls."""

    def __init__(self, source: Source, password: str = "", names: Iterable[str] = ()) -> None:
        """Answer from ``source``; with a password, only to who has it. ``names`` are the server's own, for `Host`."""
        self._source = source
        self._password = hashlib.sha256(password.encode()).digest() if password else b""
        self._names = {"localhost", *(each.lower().rstrip(".") for each in names)}
        self._assets = {name: files("gaudi3_watch").joinpath("static", name).read_bytes() for name in STATIC}

    def __call__(self, environ: Mapping[str, Any], start: Start) -> list[bytes]:
        """Answer one request."""
        status, kind, body, more = self._answer(environ)
        tag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
        headers = {**HEADERS, **more, "Content-Type": kind, "Cache-Control": "no-cache", "Vary": "Accept-Encoding"}
        if status.startswith("200"):
            headers["ETag"] = tag
            if tag in environ.get("HTTP_IF_NONE_MATCH", ""):
                start("304 Not Modified", list(headers.items()))
                return [b""]
            if len(body) > WORTH_PACKING and "gzip" in environ.get("HTTP_ACCEPT_ENCODING", ""):
                body, headers["Content-Encoding"] = gzip.compress(body, 1, mtime=0), "gzip"
        headers["Content-Length"] = str(len(body))
        start(status, list(headers.items()))
        return [b"" if environ.get("REQUEST_METHOD") == "HEAD" else body]

    def _answer(self, environ: Mapping[str, Any]) -> tuple[str, str, bytes, dict[str, str]]:
        if environ.get("REQUEST_METHOD") not in ("GET", "HEAD"):
            return _said("405 Method Not Allowed", "This page can only be read.", Allow="GET, HEAD")
        if not self._is_ours(environ.get("HTTP_HOST", "")):
            return _said("421 Misdirected Request", "This server has another name: give yours with --name.")
        if environ.get("HTTP_SEC_FETCH_SITE", "none") not in ("none", "same-origin") and not _is_navigation(environ):
            return _said("403 Forbidden", "Another site's page may not read this one.")
        if environ.get("CONTENT_LENGTH") not in (None, "", "0"):
            return _said("413 Content Too Large", "A request has no content here.")
        if self._password and not self._is_known(environ.get("HTTP_AUTHORIZATION", "")):
            challenge = 'Basic realm="gaudi3-watch", charset="UTF-8"'
            return _said("401 Unauthorized", f"Log in as {USER} with the password.", **{"WWW-Authenticate": challenge})
        path = environ.get("PATH_INFO", "")
        if path == "/data.json":
            return self._data(environ.get("QUERY_STRING", ""))
        name = "index.html" if path == "/" else path.removeprefix("/assets/") if path.startswith("/assets/") else ""
        if name not in STATIC:
            return _said("404 Not Found", "There is no such page.")
        return "200 OK", STATIC[name], self._assets[name], {}

    def _is_ours(self, host: str) -> bool:
        """An address, which nobody can make point elsewhere, or a name of this server."""
        try:
            name = urllib.parse.urlsplit(f"//{host}").hostname or ""
        except ValueError:
            return False
        try:
            return bool(ipaddress.ip_address(name.partition("%")[0]))
        except ValueError:
            return name.rstrip(".") in self._names

    def _is_known(self, given: str) -> bool:
        scheme, _space, encoded = given.partition(" ")
        try:
            user, _colon, password = base64.b64decode(encoded, validate=True).decode().partition(":")
        except ValueError:  # no base64, no UTF-8, or no ASCII at all
            user, password = "", ""
        # Of equal length, so that the time of the comparison says nothing.
        same = hmac.compare_digest(hashlib.sha256(password.encode()).digest(), self._password)
        return same and scheme.lower() == "basic" and user == USER

    def _data(self, query: str) -> tuple[str, str, bytes, dict[str, str]]:
        try:
            asked = asked_in(query)
        except ValueError as error:
            return _said("400 Bad Request", str(error))
        found = self._source.page(asked)
        body = json.dumps(found, allow_nan=False, separators=(",", ":")).encode()
        return "200 OK", "application/json", body, {}


def asked_in(query: str) -> Asked:
    """What the query of an address asks for; ValueError, a sentence, where it is none."""
    if len(query) > LONGEST_QUERY:
        raise ValueError(f"A query has at most {LONGEST_QUERY} characters.")
    found = urllib.parse.parse_qs(query, keep_blank_values=True, max_num_fields=len(PARAMETERS))
    unknown = sorted(found.keys() - PARAMETERS)
    if unknown:
        raise ValueError(f"A query has {', '.join(sorted(PARAMETERS))} only.")
    begin, end, last = (_number(name, found) for name in ("from", "to", "last"))
    width = _number("width", found)
    if begin is not None and end is not None and begin >= end:
        raise ValueError("from has to be before to.")
    if last is not None and last <= 0:
        raise ValueError("last has to be above 0.")
    columns = int(min(WIDTHS[1], max(WIDTHS[0], 600 if width is None else width)))
    node, job = (found.get(name, [""])[0][:300] for name in ("node", "job"))
    return Asked(begin, end, last, columns, node, job)


def _number(name: str, found: Mapping[str, list[str]]) -> float | None:
    text = found.get(name, [""])[0]
    if not text:
        return None
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value) or abs(value) > 1e11:
        raise ValueError(f"{name} has to be a number of seconds.")
    return value


def _is_navigation(environ: Mapping[str, Any]) -> bool:
    """Whether somebody follows a link to the page, which shows nothing to the site that has the link."""
    return environ.get("PATH_INFO") == "/" and environ.get("HTTP_SEC_FETCH_MODE") == "navigate"


def _said(status: str, text: str, **headers: str) -> tuple[str, str, bytes, dict[str, str]]:
    return status, "text/plain; charset=utf-8", f"{text}\n".encode(), headers
