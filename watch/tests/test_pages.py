"""Requests: what is answered, and what is refused."""

from __future__ import annotations

import gzip
import http.client
import json
import socket
import ssl
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gaudi3_watch import listening
from gaudi3_watch.pages import POLICY, STATIC, Pages, asked_in
from gaudi3_watch.view import Asked, View

PASSWORD = "correct horse battery"


class Fixed:
    """A source that answers with what it was asked."""

    def page(self, asked: Asked) -> View:
        return {
            "asked": [asked.begin, asked.end, asked.last, asked.width, asked.node, asked.job],
            "filling": "x" * 5000,
        }


def request(
    address: str,
    path: str = "/",
    method: str = "GET",
    body: bytes | None = None,
    context: ssl.SSLContext | None = None,
    **headers: str,
) -> tuple[int, dict[str, str], bytes]:
    """Status, headers and content."""
    scheme, _slashes, host = address.partition("://")
    connection = (
        http.client.HTTPSConnection(host, timeout=20, context=context)
        if scheme == "https"
        else http.client.HTTPConnection(host, timeout=20)
    )
    try:
        connection.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
        answer = connection.getresponse()
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()
    finally:
        connection.close()


@pytest.fixture
def address(serve: Callable[..., str]) -> str:
    return serve(Fixed(), names=["watch.example"])


def test_the_page_comes_with_a_policy_that_allows_no_foreign_and_no_inline_script(address: str) -> None:
    status, headers, body = request(address)
    assert (status, headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert headers["content-security-policy"] == POLICY and "unsafe" not in POLICY
    assert headers["x-content-type-options"] == "nosniff" and headers["server"] == "gaudi3-watch"
    assert b"<script>" not in body and b"style=" not in body and b"http" not in body.replace(b"http-equiv", b"")


@pytest.mark.parametrize("name", sorted(set(STATIC) - {"index.html"}))
def test_each_asset_is_served_by_its_type(address: str, name: str) -> None:
    status, headers, body = request(address, f"/assets/{name}")
    assert (status, headers["content-type"]) == (200, STATIC[name]) and body


def test_what_has_not_changed_is_not_sent_again(address: str) -> None:
    tag = request(address, "/data.json")[1]["etag"]
    status, headers, body = request(address, "/data.json", If_None_Match=tag)
    assert (status, body, headers["etag"]) == (304, b"", tag)
    assert request(address, "/data.json?node=a", If_None_Match=tag)[0] == 200


def test_data_are_packed_for_who_can_unpack_them(address: str) -> None:
    _status, headers, body = request(address, "/data.json", Accept_Encoding="gzip")
    assert headers["content-encoding"] == "gzip" and json.loads(gzip.decompress(body))["filling"]


def test_a_head_has_no_content(address: str) -> None:
    status, headers, body = request(address, method="HEAD")
    assert (status, body) == (200, b"") and int(headers["content-length"]) > 500


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "TRACE", "PATCH"])
def test_nothing_but_reading_is_allowed(address: str, method: str) -> None:
    assert request(address, method=method)[0] == 405


@pytest.mark.parametrize(
    "path",
    [
        "/nothing",
        "/assets/",
        "/assets/../pages.py",
        "/assets/%2e%2e/pages.py",
        "/data.json/",
        "/assets/uplot.json",
    ],
)
def test_other_paths_are_not_found(address: str, path: str) -> None:
    assert request(address, path)[0] == 404


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1", 200),
        ("127.0.0.1:1", 200),
        ("[::1]:9109", 200),
        ("localhost:8080", 200),
        ("WATCH.example.", 200),
        ("evil.example", 421),
        ("evil.example:9109", 421),
        ("127.0.0.1.evil.example", 421),
        ("", 421),
        ("[", 421),
        ("localhost.evil", 421),
    ],
)
def test_another_name_is_refused(address: str, host: str, status: int) -> None:
    assert request(address, "/data.json", Host=host)[0] == status


def test_another_sites_script_is_refused_and_a_link_is_not(address: str) -> None:
    for site in ("cross-site", "same-site"):
        assert request(address, "/data.json", Sec_Fetch_Site=site, Sec_Fetch_Mode="cors")[0] == 403
        assert request(address, "/data.json", Sec_Fetch_Site=site, Sec_Fetch_Mode="navigate")[0] == 403
        assert request(address, "/", Sec_Fetch_Site=site, Sec_Fetch_Mode="navigate")[0] == 200
    assert request(address, "/data.json", Sec_Fetch_Site="same-origin", Sec_Fetch_Mode="cors")[0] == 200


def test_content_is_refused(address: str) -> None:
    assert request(address, body=b"x")[0] == 413


def test_a_query_that_is_too_long_is_refused(address: str) -> None:
    assert request(address, f"/data.json?node={'x' * 3000}")[0] == 400


def test_no_more_than_the_limit_is_read_of_a_request(serve: Callable[..., str]) -> None:
    """What comes after it, here the right password, is not seen."""
    address = serve(Fixed(), password=PASSWORD)
    login = "Basic d2F0Y2g6Y29ycmVjdCBob3JzZSBiYXR0ZXJ5"
    assert request(address, X_Long="y" * 1000, Authorization=login)[0] == 200
    assert request(address, X_Long="y" * 20_000, Authorization=login)[0] == 401


def test_what_is_no_request_is_let_go(address: str) -> None:
    host, _colon, port = address.partition("://")[2].partition(":")
    with socket.create_connection((host, int(port)), timeout=20) as peer:
        peer.sendall(b"\x16\x03\x01nonsense\r\n\r\n")
        peer.recv(1000)
    assert request(address)[0] == 200


def test_a_query_is_what_was_asked() -> None:
    assert asked_in("from=1&to=2.5&width=300&node=gaudi-1&job=a%2Fb") == Asked(1, 2.5, None, 300, "gaudi-1", "a/b")
    assert asked_in("last=60&width=1") == Asked(None, None, 60, 50)
    assert asked_in("width=99999").width == 2000


@pytest.mark.parametrize(
    "query",
    [
        "from=x",
        "from=nan",
        "to=inf",
        "from=2&to=1",
        "last=0",
        "last=-5",
        "from=1e300",
        "other=1",
        "a=1&b=2&c=3&d=4&e=5&f=6&g=7",
        "x" * 3000,
    ],
)
def test_a_query_of_another_kind_is_refused(address: str, query: str) -> None:
    status, _headers, body = request(address, f"/data.json?{query}")
    assert status == 400 and len(body.decode().split()) > 3


class TestWithAPassword:
    """What who does not have it can see: nothing."""

    @pytest.mark.parametrize("path", ["/", "/data.json", "/assets/watch.js", "/nothing"])
    def test_without_it_nothing_is_shown(self, serve: Callable[..., str], path: str) -> None:
        status, headers, body = request(serve(Fixed(), password=PASSWORD), path)
        assert status == 401 and headers["www-authenticate"].startswith("Basic") and b"filling" not in body

    @pytest.mark.parametrize(
        "given",
        [
            "Basic d2F0Y2g6d3Jvbmc=",
            "Basic",
            "Basic !!!",
            "Bearer d2F0Y2g6Y29ycmVjdCBob3JzZSBiYXR0ZXJ5",
            "Basic /////w==",
            "Basic cm9vdDpjb3JyZWN0IGhvcnNlIGJhdHRlcnk=",
            "Basic d2F0Y2g6",
            "Basic \xe9",
        ],
    )
    def test_a_wrong_one_is_refused(self, serve: Callable[..., str], given: str) -> None:
        assert request(serve(Fixed(), password=PASSWORD), Authorization=given)[0] == 401

    def test_the_right_one_is_let_in(self, serve: Callable[..., str]) -> None:
        given = "Basic d2F0Y2g6Y29ycmVjdCBob3JzZSBiYXR0ZXJ5"
        assert request(serve(Fixed(), password=PASSWORD), "/data.json", Authorization=given)[0] == 200


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A certificate of 127.0.0.1 and its key."""
    folder = tmp_path_factory.mktemp("tls")
    certificate, key = folder / "a.crt", folder / "a.key"
    make = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
        "-days",
        "2",
        "-subj",
        "/CN=watch",
    ]
    subprocess.run(
        [*make, "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(certificate)],
        check=True,
        capture_output=True,
    )
    return certificate, key


def test_over_tls_plain_http_gets_a_sentence_alone(serve: Callable[..., str], pair: tuple[Path, Path]) -> None:
    address = serve(Fixed(), tls=listening.tls(*pair))
    assert request(address, context=ssl.create_default_context(cafile=str(pair[0])))[0] == 200
    for path in ("/", "/data.json"):
        status, headers, body = request(address.replace("https", "http"), path)
        assert (status, body) == (400, b"This port speaks TLS: use an address that begins with https://.\n")
        assert headers["content-type"] == "text/plain"
    with pytest.raises(ssl.SSLCertVerificationError):
        request(address, context=ssl.create_default_context())


def test_an_answer_has_no_number_that_json_does_not_know() -> None:
    class Odd(Fixed):
        def page(self, asked: Asked) -> View:
            return {"value": float("nan")}

    answered: list[Any] = []
    with pytest.raises(ValueError):
        Pages(Odd())(
            {"REQUEST_METHOD": "GET", "HTTP_HOST": "localhost", "PATH_INFO": "/data.json"},
            lambda *given: answered.append(given),
        )
    assert not answered
