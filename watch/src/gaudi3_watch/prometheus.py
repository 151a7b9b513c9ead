"""Asks a Prometheus, over TLS and with its password; what goes wrong is one sentence that says what to do."""

from __future__ import annotations

import base64
import json
import math
import socket
import ssl
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from http.client import HTTPException
from typing import Any

from gaudi3_watch import view
from gaudi3_watch.downsample import Points

SECONDS = 4.0
"""For an answer."""
PIECE = 2**16
LONGEST = 32 * 2**20
"""Bytes of an answer."""
MOST_SERIES = 5000
EXPIRED, NOT_YET = 10, 9
"""OpenSSL's numbers of what is wrong with a certificate."""


class PrometheusError(Exception):
    """It cannot be asked, or does not answer; the message is a sentence."""


@dataclass(frozen=True)
class Sample:
    """A series at one moment."""

    labels: dict[str, str]
    value: float


@dataclass(frozen=True)
class Trace:
    """A series over a span of time."""

    labels: dict[str, str]
    points: Points


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """The password goes to the address that was given, and nowhere else."""

    def redirect_request(self, *_: Any) -> None:
        return None


class Prometheus:
    """One server, by its address."""

    def __init__(self, url: str, login: tuple[str, str] | None = None, context: ssl.SSLContext | None = None) -> None:
        self.url = url.rstrip("/")
        self._headers = {"Accept": "application/json"}
        if login:
            self._headers["Authorization"] = "Basic " + base64.b64encode(":".join(login).encode()).decode()
        handlers: list[urllib.request.BaseHandler] = [_NoRedirect(), urllib.request.ProxyHandler({})]
        self._opener = urllib.request.build_opener(*handlers, urllib.request.HTTPSHandler(context=context))

    def query(self, query: str) -> list[Sample]:
        """An instant query."""
        found = self._data("query", {"query": query})
        return [Sample(labels, number) for labels, (_time, number) in _series(found, "value", _pair)]

    def query_range(self, query: str, begin: float, end: float, step: float) -> list[Trace]:
        """A range query."""
        asked = {"query": query, "start": f"{begin:.3f}", "end": f"{end:.3f}", "step": f"{step:.3f}"}
        found = self._data("query_range", asked)
        return [Trace(labels, _points(pairs, step)) for labels, pairs in _series(found, "values", _pairs)]

    def alerts(self) -> list[dict[str, Any]]:
        """The alerts that are pending or fire."""
        found = self._data("alerts", {})
        listed = found.get("alerts") if isinstance(found, dict) else None
        if not isinstance(listed, list):
            raise self._strange()
        return [each for each in listed if isinstance(each, dict)]

    def _data(self, path: str, asked: dict[str, str]) -> Any:
        content = self._get(f"/api/v1/{path}" + (f"?{urllib.parse.urlencode(asked)}" if asked else ""))
        try:
            found = json.loads(content)
            if found["status"] != "success":
                raise PrometheusError(f"{self.url} refuses a query: {view.text(found.get('error'))}.")
            return found["data"]
        except (ValueError, KeyError, TypeError, RecursionError):
            raise self._strange() from None

    def _get(self, path: str) -> bytes:
        request = urllib.request.Request(self.url + path, headers=self._headers)
        try:
            with self._opener.open(request, timeout=SECONDS) as answer:
                content = _content(answer)
        except urllib.error.HTTPError as error:
            raise PrometheusError(self._refused(error)) from None
        except (OSError, HTTPException, ValueError) as error:
            raise PrometheusError(self._unreachable(error)) from None
        if len(content) > LONGEST:
            raise PrometheusError(
                f"An answer of {self.url} is longer than {LONGEST // 2**20} MiB: choose a shorter span."
            )
        return content

    def _refused(self, error: urllib.error.HTTPError) -> str:
        if error.code in (401, 403) and "Authorization" not in self._headers:
            return f"{self.url} wants a password: give it with --prometheus-password-file."
        if error.code in (401, 403):
            return f"{self.url} refuses the password: give the right one with --prometheus-password-file."
        if error.code == 400 and self.url.startswith("http:"):
            return f"{self.url} may want TLS: give an address that begins with https://."
        if error.code in (301, 302, 307, 308):
            return f"{self.url} sends elsewhere: give the address where Prometheus itself answers."
        try:
            said = view.text(error.read(500).decode("utf-8", "replace"), 200)
        except (OSError, HTTPException):
            said = "and no more"
        return f"{self.url} answers {error.code}: {said}"

    def _unreachable(self, error: Exception) -> str:
        cause = error.reason if isinstance(error, urllib.error.URLError) else error
        if isinstance(cause, ssl.SSLCertVerificationError):
            if cause.verify_code == EXPIRED:
                return f"The certificate of {self.url} has expired: run site.yml, which renews it."
            if cause.verify_code == NOT_YET:
                return f"The certificate of {self.url} is not valid yet: set this machine's clock."
            said = view.text(cause.verify_message, 100)
            return f"The certificate of {self.url} is not trusted ({said}): give its authority, --prometheus-ca-file."
        if isinstance(cause, ssl.SSLError):
            return (
                f"{self.url} does not speak TLS: give an address that begins with http://, or see what listens there."
            )
        if isinstance(cause, (TimeoutError, socket.timeout)):
            return f"{self.url} does not answer within {SECONDS:g} s: see whether it runs."
        said = view.text(getattr(cause, "strerror", None) or cause, 120)
        return f"{self.url} cannot be reached ({said}): see whether it runs there."

    def _strange(self) -> PrometheusError:
        return PrometheusError(f"{self.url} does not answer as a Prometheus: see what listens there.")


def _content(answer: Any) -> bytes:
    """The whole answer, or more than is taken; TimeoutError where it trickles: each piece has `SECONDS` for itself."""
    ends = time.monotonic() + SECONDS
    pieces: list[bytes] = []
    length = 0
    while length <= LONGEST and (piece := answer.read1(PIECE)):
        pieces.append(piece)
        length += len(piece)
        if time.monotonic() > ends:
            raise TimeoutError
    return b"".join(pieces)


def quoted(value: str) -> str:
    """A label's value for a query."""
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def _series(data: Any, key: str, read: Any) -> Iterator[tuple[dict[str, str], Any]]:
    listed = data.get("result") if isinstance(data, dict) else None
    if not isinstance(listed, list):
        raise PrometheusError("The answer of Prometheus has no result: see what listens there.")
    for each in listed[:MOST_SERIES]:
        try:
            labels = {str(name): str(value) for name, value in each.get("metric", {}).items()}
            yield labels, read(each[key])
        except (KeyError, TypeError, ValueError, AttributeError):
            continue


def _pair(value: Any) -> tuple[float, float]:
    at, number = value
    if not math.isfinite(float(at)):
        raise ValueError(at)
    return float(at), float(number)


def _pairs(values: Any) -> list[tuple[float, float]]:
    return [_pair(each) for each in values]


def _points(pairs: list[tuple[float, float]], step: float) -> Points:
    """With a gap wherever Prometheus had nothing for a step."""
    x: list[float] = []
    values: list[float | None] = []
    for at, number in pairs:
        if x and at - x[-1] > 1.5 * step:
            x.append(x[-1] + step)
            values.append(None)
        x.append(at)
        values.append(number if math.isfinite(number) else None)
    return Points(x, values, values, values)
