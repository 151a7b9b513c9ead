"""The module that asks a management controller, on the simulator's stand-in over TLS."""

from __future__ import annotations

import json
import ssl
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from ansible_collections.gaudi3.scale.plugins.modules import gaudi_bmc_facts
from gaudi3_simulator.controllers import USER, certify, served
from tests.stand_in_bmc import PASSWORD, tree

from .conftest import RunModule


class Twin(NamedTuple):
    """A stand-in that is served."""

    address: str
    certificate: Path
    shown: dict[str, Any]


@pytest.fixture(scope="module")
def twin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Twin]:
    folder = tmp_path_factory.mktemp("bmc")
    certificate, key = certify(folder)
    shown = tree(folder / "node", {"kind": "reset-failed", "card": 0})
    with served(lambda: shown, PASSWORD, certificate, key) as address:
        yield Twin(address, certificate, shown)


def options(twin: Twin, **more: Any) -> dict[str, Any]:
    given = {"address": twin.address, "user": USER, "password": PASSWORD, "ca_path": str(twin.certificate)}
    return {name: value for name, value in (given | more).items() if value is not None}


@pytest.mark.parametrize("check", [False, True])
def test_facts_come_over_tls_and_nothing_changes(check: bool, twin: Twin, run_module: RunModule) -> None:
    result = run_module(gaudi_bmc_facts, check=check, **options(twin))
    facts = result["ansible_facts"]["gaudi_bmc"]
    assert result["changed"] is False and facts["card_count"] == 8 and facts["complete"]
    assert facts["product"] == "gaudi3-simulator stand-in, no management controller is real"
    (said,) = facts["said"]
    assert said.endswith("the card's firmware does not answer (Watchdog.Heartbeat is 1)")
    # The map of the model has sensors that the stand-in does not: that is no lack of answers.
    assert len(facts["absent"]) == 20 and facts["unread"] == []


def test_ports_are_asked_for(twin: Twin, run_module: RunModule) -> None:
    result = run_module(gaudi_bmc_facts, ports=True, **options(twin))
    assert {len(card["ports"]) for card in result["ansible_facts"]["gaudi_bmc"]["cards"]} == {24}


def test_a_fingerprint_does(twin: Twin, run_module: RunModule) -> None:
    shown = sha256(ssl.PEM_cert_to_DER_cert(twin.certificate.read_text())).hexdigest()
    found = run_module(gaudi_bmc_facts, **options(twin, ca_path=None, fingerprint=shown))
    assert found["ansible_facts"]["gaudi_bmc"]["card_count"] == 8


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"password": "guessed-one"}, "refuses the user and the password"),
        ({"ca_path": None}, "its certificate is not trusted"),
        ({"ca_path": None, "fingerprint": "0" * 64}, "Nothing was sent to it"),
        ({"fingerprint": "0" * 64}, "mutually exclusive"),
        ({"address": "monitor:guessed-one@10.9.0.1"}, "give a name or an address"),
        ({"timeout": 0}, "give 1 second or more"),
        ({"user": "a:b"}, "a colon in its name"),
    ],
)
def test_what_cannot_be_asked_is_a_sentence_without_the_password(
    more: dict[str, Any], said: str, twin: Twin, run_module: RunModule
) -> None:
    result = run_module(gaudi_bmc_facts, **options(twin, **more))
    assert result["failed"] and said in result["msg"]
    assert PASSWORD not in json.dumps(result) and "guessed-one" not in json.dumps(result)
