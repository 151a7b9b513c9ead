"""What is asked of a Prometheus, and the sentence for each way in which it may fail."""

from __future__ import annotations

import contextlib
import http.server
import json
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from test_listening import certificate

from gaudi3_watch import listening, prometheus
from gaudi3_watch.prometheus import Prometheus, PrometheusError, quoted


class Answers(http.server.BaseHTTPRequestHandler):
    """Answers with what the server has, and notes what was asked."""

    def do_GET(self) -> None:
        server: Any = self.server
        server.asked.append((self.path, self.headers.get("Authorization")))
        self.send_response(server.status)
        for name, value in server.headers:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(server.body)
        if server.goes_on is not None:
            with contextlib.suppress(OSError):
                while not server.goes_on.wait(0.05):
                    self.wfile.write(server.piece)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Any]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers) as found:
        made: Any = found
        made.status, made.headers, made.body, made.asked = 200, [], b"", []
        made.goes_on, made.piece = None, b""
        made.address = f"http://127.0.0.1:{found.server_port}"
        threading.Thread(target=found.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        yield found
        found.shutdown()


def success(**data: Any) -> bytes:
    return json.dumps({"status": "success", "data": data}).encode()


def test_a_question_goes_with_the_password(server: Any) -> None:
    server.body = success(result=[{"metric": {"instance": "gaudi-1"}, "value": [1, "2.5"]}])
    (found,) = Prometheus(server.address + "/", ("me", "secret")).query('up{a="b"}')
    assert (found.labels, found.value) == ({"instance": "gaudi-1"}, 2.5)
    assert server.asked == [("/api/v1/query?query=up%7Ba%3D%22b%22%7D", "Basic bWU6c2VjcmV0")]


def test_a_hole_in_a_series_is_a_gap(server: Any) -> None:
    server.body = success(result=[{"metric": {}, "values": [[0, "1"], [10, "NaN"], [20, "3"], [60, "4"]]}])
    (found,) = Prometheus(server.address).query_range("a", 0, 60, 10)
    assert (found.points.x, found.points.last) == ([0, 10, 20, 30, 60], [1, None, 3, None, 4])


def test_a_series_of_another_kind_is_left_out(server: Any) -> None:
    odd = [
        {},
        {"value": 3},
        {"metric": 5, "value": [1, 2]},
        {"metric": {}, "value": [1, "x"]},
        7,
        {"metric": {}, "value": [1, "2"]},
    ]
    server.body = success(result=odd)
    assert [each.value for each in Prometheus(server.address).query("a")] == [2]


@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        (401, b"", "refuses the password"),
        (400, b"Client sent an HTTP request to an HTTPS server.", "https://"),
        (302, b"", "sends elsewhere"),
        (503, b"<b>busy</b>", "answers 503: <b>busy</b>"),
        (200, b"<html>", "not answer as a Prometheus"),
        (200, b"[]", "not answer as a Prometheus"),
        (200, b"[" * 9999, "as a Prometheus"),
        (200, b'{"status": "error", "error": "bad query"}', "bad query"),
        (200, b'{"status": "success", "data": {}}', "no result"),
    ],
)
def test_what_goes_wrong_is_said(server: Any, status: int, body: bytes, said: str) -> None:
    server.status, server.body = status, body
    if status == 302:
        server.headers = [("Location", "http://127.0.0.1:1/")]
    with pytest.raises(PrometheusError, match=said):
        Prometheus(server.address, ("me", "secret")).query("up")
    assert len(server.asked) == 1


def test_a_password_that_was_not_given_is_asked_for(server: Any) -> None:
    server.status = 401
    with pytest.raises(PrometheusError, match=r"wants a password: give it with --prometheus-password-file\."):
        Prometheus(server.address).query("up")


@pytest.mark.parametrize(
    ("status", "piece", "said"),
    [
        (500, b"", "answers 500: and no more"),
        (200, b"", "does not answer within 0.3 s"),
        (200, b" ", "does not answer within 0.3 s"),
    ],
)
def test_an_answer_that_stops_or_trickles_is_not_waited_for(
    server: Any, status: int, piece: bytes, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prometheus, "SECONDS", 0.3)
    server.status, server.headers, server.piece = status, [("Content-Length", "100000")], piece
    server.goes_on = threading.Event()
    try:
        with pytest.raises(PrometheusError, match=said):
            Prometheus(server.address).query("up")
    finally:
        server.goes_on.set()


def test_a_time_that_is_none_leaves_its_series_out(server: Any) -> None:
    server.body = b'{"status": "success", "data": {"result": [{"metric": {}, "values": [[1e999, "1"]]}]}}'
    assert Prometheus(server.address).query_range("a", 0, 60, 10) == []


def test_an_answer_without_end_is_not_read(server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prometheus, "LONGEST", 1000)
    server.body = b"x" * 5000
    with pytest.raises(PrometheusError, match="longer than"):
        Prometheus(server.address).query("up")


def test_nobody_there_is_said() -> None:
    with pytest.raises(PrometheusError, match="cannot be reached"):
        Prometheus("http://127.0.0.1:1").query("up")


@pytest.mark.parametrize(
    ("begins", "ends", "trusted", "said"),
    [
        (-9, -1, True, "has expired: run site.yml"),
        (1, 9, True, "not valid yet"),
        (-1, 9, False, "not trusted .*--prometheus-ca-file"),
    ],
)
def test_a_certificate_that_does_not_hold_is_said(
    server: Any, tmp_path: Path, begins: int, ends: int, trusted: bool, said: str
) -> None:
    paths = certificate(tmp_path, begins, ends)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*paths)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    given = listening.authority(paths[0] if trusted else None)
    given.check_hostname = False
    given.verify_flags |= ssl.VerifyFlags(0x80000)
    with pytest.raises(PrometheusError, match=said):
        Prometheus(server.address.replace("http", "https"), context=given).query("up")


def test_no_tls_is_said(server: Any) -> None:
    with pytest.raises(PrometheusError, match="does not speak TLS"):
        Prometheus(server.address.replace("http", "https"), context=listening.authority(None)).query("up")


def test_alerts_are_listed(server: Any) -> None:
    server.body = success(alerts=[{"state": "firing"}, 5])
    assert Prometheus(server.address).alerts() == [{"state": "firing"}]
    server.body = success(alerts=None)
    with pytest.raises(PrometheusError, match="as a Prometheus"):
        Prometheus(server.address).alerts()


def test_a_node_cannot_leave_its_quotes() -> None:
    assert quoted('a"} or up{b="\\\n') == '"a\\"} or up{b=\\"\\\\\\n"'
