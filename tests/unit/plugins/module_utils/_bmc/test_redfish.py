"""Reading a management controller: GET alone, to whom it claims to be, within a time and a size."""

from __future__ import annotations

import base64
import hashlib
import json
import socket
import ssl
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._bmc import redfish
from ansible_collections.gaudi3.scale.plugins.module_utils._bmc.redfish import (
    Controller,
    Trust,
    Unread,
    endpoint_of,
)
from ansible_collections.gaudi3.scale.plugins.module_utils._refusal import Refusal
from gaudi3_simulator.controllers import certify
from tests.stand_in_bmc import PASSWORD, USER, Scripted, ok

Open = Callable[..., Controller]
THING = "/redfish/v1/Chassis/chassis"


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return certify(tmp_path_factory.mktemp("tls"))


@pytest.fixture
def server(certificate: tuple[Path, Path]) -> Iterator[Scripted]:
    with Scripted().served(*certificate) as made:
        made.answers[THING] = ok({"PowerState": "On"})
        yield made


@pytest.fixture
def controller(server: Scripted, certificate: tuple[Path, Path]) -> Iterator[Open]:
    opened = []

    def connect(trust: Trust | None = None, address: str = "", seconds: float = 10) -> Controller:
        made = Controller(
            endpoint_of(address or server.address), trust or Trust(str(certificate[0])), USER, PASSWORD, seconds
        )
        opened.append(made)
        return made

    yield connect
    for each in opened:
        each.__exit__()


@pytest.mark.parametrize(
    ("address", "endpoint"),
    [
        ("10.9.0.1", "10.9.0.1:443"), ("10.9.0.1:8443", "10.9.0.1:8443"),
        ("bmc-1.example.org", "bmc-1.example.org:443"),
        ("fd00::1", "[fd00::1]:443"), ("[fd00::1]:8443", "[fd00::1]:8443"),
    ],
)  # fmt: skip
def test_an_address_is_a_host_and_perhaps_a_port(address: str, endpoint: str) -> None:
    assert str(endpoint_of(address)) == endpoint


@pytest.mark.parametrize(
    "address",
    ["", "https://10.9.0.1", "10.9.0.1/redfish", "root:hunter2@10.9.0.1", "10.9.0.1:0", "10.9.0.1:70000", "a b", "a\n"],
)
def test_what_is_more_than_that_is_refused_without_a_password_that_is_in_it(address: str) -> None:
    with pytest.raises(Refusal, match="give a name or an address") as refused:
        endpoint_of(address)
    assert "hunter2" not in str(refused.value)


def test_only_get_is_sent_and_the_password_in_a_header_alone(server: Scripted, controller: Open) -> None:
    opened = controller()
    assert opened.first()["RedfishVersion"] == "1.15.1"
    assert opened.get(THING) == {"PowerState": "On"}
    assert [(each.method, each.path) for each in server.asked] == [("GET", "/redfish/v1/"), ("GET", THING)]
    wanted = "Basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
    assert {each.headers["Authorization"] for each in server.asked} == {wanted}
    assert PASSWORD not in json.dumps(server.asked)
    assert server.connections == 1


def test_an_unknown_certificate_is_refused_before_anything_is_sent(server: Scripted, controller: Open) -> None:
    with pytest.raises(Refusal, match=r"its certificate is not trusted .* give the certificate of its authority"):
        controller(Trust()).first()
    assert server.asked == []


def test_a_certificate_of_another_host_is_refused(server: Scripted, controller: Open) -> None:
    port = server.address.rpartition(":")[2]
    with pytest.raises(Refusal, match="certificate is not trusted"):
        controller(address=f"localhost:{port}").first()
    assert server.asked == []


def test_a_fingerprint_takes_the_place_of_an_authority(
    server: Scripted, controller: Open, certificate: tuple[Path, Path]
) -> None:
    shown = hashlib.sha256(ssl.PEM_cert_to_DER_cert(certificate[0].read_text())).hexdigest()
    pairs = ":".join(shown[at : at + 2] for at in range(0, 64, 2)).upper()
    port = server.address.rpartition(":")[2]
    assert controller(Trust(fingerprint=pairs), f"localhost:{port}").get(THING) == {"PowerState": "On"}
    server.asked.clear()
    with pytest.raises(Refusal, match=f"the fingerprint {shown}, which is not the one .* Nothing was sent"):
        controller(Trust(fingerprint="0" * 64)).first()
    with pytest.raises(Refusal, match="64 hexadecimal digits"):
        controller(Trust(fingerprint=shown[:-1])).first()
    assert server.asked == []


def test_a_file_without_certificates_is_a_sentence(tmp_path: Path, controller: Open) -> None:
    for path in (tmp_path / "none.pem", tmp_path):
        with pytest.raises(Refusal, match="no file of certificates"):
            controller(Trust(str(path)))


def test_a_user_that_http_cannot_send_is_refused() -> None:
    with pytest.raises(Refusal, match="a colon"):
        Controller(endpoint_of("10.9.0.1"), Trust(), "a:b", PASSWORD, 1)


def test_a_wrong_password_is_tried_once(server: Scripted, controller: Open) -> None:
    server.answers[THING] = 401, b"{}"
    opened = controller()
    with pytest.raises(Refusal, match="refuses the user and the password") as refused:
        opened.get(THING)
    assert len(server.asked) == 1 and PASSWORD not in str(refused.value)


def test_a_redirect_leads_nowhere(server: Scripted, controller: Open, certificate: tuple[Path, Path]) -> None:
    with Scripted().served(*certificate) as other:

        def elsewhere(handler: BaseHTTPRequestHandler) -> None:
            handler.send_response(307)
            handler.send_header("Location", f"https://{other.address}{THING}")
            handler.send_header("Content-Length", "0")
            handler.end_headers()

        server.answers[THING] = elsewhere
        with pytest.raises(Unread, match="HTTP 307"):
            controller().get(THING)
        assert other.asked == []


def test_no_proxy_is_asked(server: Scripted, controller: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("https_proxy", "HTTPS_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    assert controller().get(THING) == {"PowerState": "On"}


def test_an_answer_too_large_is_not_read_and_the_next_one_is(
    server: Scripted, controller: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redfish, "LARGEST", 1000)
    server.answers["/redfish/v1/large"] = 200, b'{"a": "' + b"x" * 5000 + b'"}'
    opened = controller()
    with pytest.raises(Unread, match="more than 1000 bytes"):
        opened.get("/redfish/v1/large")
    assert opened.get(THING) == {"PowerState": "On"}


@pytest.mark.parametrize("body", [b"", b"no JSON", b"[1]", b'"text"', b"[" * 100_000, b"\xff\xfe{}", b"null"])
def test_what_is_no_object_is_said(body: bytes, server: Scripted, controller: Open) -> None:
    server.answers[THING] = 200, body
    with pytest.raises(Unread, match="no JSON object"):
        controller().get(THING)


def test_a_number_without_end_costs_nothing(server: Scripted, controller: Open) -> None:
    server.answers[THING] = 200, b'{"a": ' + b"9" * 500_000 + b"}"
    began = time.monotonic()
    assert str(controller().get(THING)["a"]) == "nan"
    assert time.monotonic() - began < 2


def test_what_is_not_there_concerns_itself_alone(server: Scripted, controller: Open) -> None:
    server.answers["/redfish/v1/broken"] = 500, b"{}"
    opened = controller()
    with pytest.raises(Unread) as absent:
        opened.get("/redfish/v1/none")
    assert absent.value.is_absent
    with pytest.raises(Unread, match="HTTP 500") as broken:
        opened.get("/redfish/v1/broken")
    assert not broken.value.is_absent
    assert opened.get(THING) == {"PowerState": "On"}


def test_a_service_that_is_none_is_refused(server: Scripted, controller: Open) -> None:
    server.answers["/redfish/v1/"] = ok({"hello": "world"})
    with pytest.raises(Refusal, match="no Redfish"):
        controller().first()
    del server.answers["/redfish/v1/"]
    with pytest.raises(Refusal, match="cannot be read: it has no such resource"):
        controller().first()


def test_a_closed_port_is_a_sentence(controller: Open) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        with pytest.raises(Refusal, match=r"cannot be read: .*refused"):
            controller(address=f"127.0.0.1:{taken.getsockname()[1]}").first()


def test_a_connection_that_ended_is_made_anew_with_tls(server: Scripted, controller: Open) -> None:
    def once(handler: BaseHTTPRequestHandler) -> None:
        body = b'{"PowerState": "On"}'
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)
        handler.close_connection = True  # which the answer does not say

    server.answers[THING] = once
    opened = controller()
    for asked in range(3):
        assert opened.get(THING) == {"PowerState": "On"}, asked
    # Each came through TLS, as the server reads nothing else.
    assert (len(server.asked), server.connections) == (3, 3)


def test_the_library_never_connects_by_itself(controller: Open) -> None:
    opened = controller()
    opened.get(THING)
    assert opened._link is not None and opened._link.auto_open == 0


def slowly(handler: BaseHTTPRequestHandler) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", "100000")
    handler.end_headers()
    while True:
        handler.wfile.write(b" ")
        time.sleep(0.02)


def in_headers(handler: BaseHTTPRequestHandler) -> None:
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nX: ")
    while True:
        handler.wfile.write(b"x")
        time.sleep(0.02)


@pytest.mark.parametrize("drip", [slowly, in_headers])
def test_an_answer_that_drips_ends_with_the_time(
    drip: Callable[[BaseHTTPRequestHandler], None], server: Scripted, controller: Open
) -> None:
    server.answers[THING] = drip
    opened = controller(seconds=0.4)
    began = time.monotonic()
    with pytest.raises(Unread, match="the time was over"):
        opened.get(THING)
    with pytest.raises(Unread, match="the time was over"):
        opened.get("/redfish/v1/other")
    assert time.monotonic() - began < 2
    assert [each.path for each in server.asked] == [THING]


def test_a_handshake_that_never_comes_ends_with_the_time(controller: Open) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        opened = controller(address=f"127.0.0.1:{silent.getsockname()[1]}", seconds=0.4)
        began = time.monotonic()
        with pytest.raises(Refusal, match="the time was over"):
            opened.first()
        assert time.monotonic() - began < 2


def test_one_answer_that_does_not_come_leaves_the_others(
    server: Scripted, controller: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redfish, "PATIENCE", 0.3)
    server.answers["/redfish/v1/hangs"] = lambda handler: time.sleep(2)
    opened = controller()
    with pytest.raises(Unread, match="no answer within 0 s"):
        opened.get("/redfish/v1/hangs")
    assert opened.get(THING) == {"PowerState": "On"}
