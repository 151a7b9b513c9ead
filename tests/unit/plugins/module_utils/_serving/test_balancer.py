"""HAProxy's configuration; tests/serving runs it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._serving import balancer

USUAL = balancer.Balancer("10.0.0.11", 8443, 9420, {"replica-1": 18801, "replica-2": 18802})


def section(text: str, name: str) -> str:
    return text.split(f"\n{name}\n", 1)[1].split("\n\n", 1)[0]


@pytest.mark.parametrize(("count", "share"), [(2, 10), (2, 50), (3, 1), (8, 5), (2, 99)])
def test_a_canary_has_its_share_of_the_requests(count: int, share: int) -> None:
    names = {f"replica-{number}": number for number in range(count)}
    found = balancer.weights(replace(USUAL, replicas=names, canary="replica-1", canary_weight=share))
    assert all(1 <= weight <= 256 for weight in found.values())
    assert abs(found["replica-1"] / sum(found.values()) - share / 100) < 0.006


def test_without_a_canary_all_weigh_the_same() -> None:
    assert {*balancer.weights(USUAL).values()} == {100}
    assert {*balancer.weights(replace(USUAL, replicas={"replica-1": 1}, canary="replica-1")).values()} == {100}
    text = balancer.configuration(USUAL)
    assert "balance leastconn" in section(text, "backend replicas")
    assert "balance roundrobin" in section(
        balancer.configuration(replace(USUAL, canary="replica-2")), "backend replicas"
    )


def test_other_hosts_answer_only_where_this_one_cannot() -> None:
    text = section(balancer.configuration(replace(USUAL, peers={"gaudi-2": "fd00::2"})), "backend replicas")
    (line,) = [line for line in text.splitlines() if "gaudi-2" in line]
    assert line.strip().startswith("server gaudi-2 [fd00::2]:8443 backup ssl verify required ca-file")
    assert "verifyhost gaudi-2" in line
    # What comes from another balancer goes to this host's replicas alone, so that two cannot send it to and fro.
    api = section(balancer.configuration(USUAL), "frontend api")
    assert "use_backend host if { req.hdr(X-Gaudi-Peer) -m found }" in api
    assert "if { path /health/host } { nbsrv(host) gt 0 }" in api


def test_the_key_is_not_in_the_configuration_and_the_metrics_show_a_certificate_where_told() -> None:
    text = balancer.configuration(USUAL)
    assert "http_auth_bearer,sha2(256),hex -m str -i -f /etc/gaudi3-scale/serving/keys" in text
    assert "bind 10.0.0.11:9420\n" in text
    assert "bind 10.0.0.11:9420 ssl crt" in balancer.configuration(replace(USUAL, metrics_tls=True))


def test_paths_are_paths() -> None:
    assert balancer.allowed(USUAL.paths)
    assert not balancer.allowed(["/v1/models } or { always_true"])
    assert not balancer.allowed([])
