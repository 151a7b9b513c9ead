"""The page on the monitoring host: over TLS, to those who know the password, with what its Prometheus has."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

testinfra_hosts = ["ansible://monitoring"]
CA = "--cacert /etc/gaudi3-scale/watch/ca.crt"


@pytest.fixture
def address(host: Any) -> str:
    return f"{host.ansible.get_variables()['ansible_host']}:9109"


@pytest.fixture
def login(host: Any) -> str:
    folder = Path(host.ansible.get_variables()["gaudi_secrets_dir"])
    return f"--user watch:{(folder / 'watch_password').read_text(encoding='utf-8').strip()}"


def said(host: Any, options: str, url: str) -> tuple[str, str]:
    """The status that curl gets, and the content."""
    *lines, status = host.run(f"curl --silent --write-out '\\n%{{http_code}}' {options} {url}").stdout.split("\n")
    return status, "\n".join(lines)


def test_it_runs_now_and_at_boot_as_a_user_of_its_own(host: Any, address: str) -> None:
    assert host.service("gaudi3-watch").is_running and host.service("gaudi3-watch").is_enabled
    (process,) = (each for each in host.process.filter(comm="python3") if "gaudi3_watch.service" in each.args)
    assert "password" not in process.args
    # systemd's numbers of users that exist only while a unit runs.
    assert 61184 <= int(host.run(f"stat --format %u /proc/{process.pid}").stdout) <= 65519
    lines = host.run("ss --no-header --listening --tcp --numeric --processes").stdout.splitlines()
    assert [line.split()[3] for line in lines if f"pid={process.pid}," in line] == [address]
    # It may read neither others' secrets nor its own where they lie.
    assert host.run("runuser -u nobody -- cat /etc/gaudi3-scale/watch/password").rc != 0
    assert host.run("journalctl --unit gaudi3-watch --output cat").stdout.count("Started ") == 1


def test_it_wants_the_password_and_speaks_tls_only(host: Any, address: str, login: str) -> None:
    assert said(host, CA, f"https://{address}/") == ("401", "Log in as watch with the password.\n")
    assert said(host, f"{CA} --user watch:wrong-as-can-be", f"https://{address}/data.json")[0] == "401"
    status, text = said(host, login, f"http://{address}/")
    assert (status, text) == ("400", "This port speaks TLS: use an address that begins with https://.\n")
    assert host.run(f"curl --silent https://{address}/").rc == 60


def test_it_shows_what_prometheus_has_and_that_it_is_simulated(host: Any, address: str, login: str) -> None:
    status, text = said(host, f"{CA} {login}", f"https://{address}/data.json")
    found = json.loads(text)
    assert status == "200" and found["problems"] == [], found["problems"]
    assert found["simulated"].startswith("This cluster is simulated")
    assert {"gaudi-1", "gaudi-2"} <= {*found["nodes"]}
    cards = next(each for each in found["sections"] if each["id"] == "cards")
    tiles = {tile["label"]: tile["value"] for tile in cards["tiles"]}
    assert tiles["Cards"] == "16"
