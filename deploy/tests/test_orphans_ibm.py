"""What is found of a cluster in an account of IBM Cloud, page by page, of a simulated one."""

from __future__ import annotations

import os
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from gaudi3_deploy.collection._terraform.state import Resource, State
from gaudi3_deploy.ibm import Account
from gaudi3_deploy.leftover import Unchecked
from gaudi3_deploy.orphans_ibm import left_on_ibm, on_ibm

from gaudi3_simulator.cloud import ibm_api
from gaudi3_simulator.cloud.world import World

NOW = 1_790_000_000.0
EMPTY = State((), {})


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """A cloud that answers."""
    made = World(tmp_path / "world")
    server = ibm_api.serve(made.path, "us-east")
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    for name, value in {**ibm_api.environment(server), "IC_API_KEY": "key"}.items():
        monkeypatch.setenv(name, value)
    yield made
    server.shutdown()
    thread.join()
    server.server_close()


def put(world: World, kind: str, ident: str, name: str, made: float = NOW, **values: Any) -> None:
    """An object, as the cloud has it."""
    created = datetime.fromtimestamp(made, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    world.put(kind, ident, {"name": name, "_region": "us-east", "_created": created, **values})


def test_by_name_and_by_when_it_was_made(world: World) -> None:
    put(world, "ibm_is_vpc", "vpc-1", "demo")
    put(world, "ibm_is_vpc", "vpc-2", "demo-2")
    put(world, "ibm_is_ssh_key", "key-1", "demo", made=NOW - 3600)
    put(world, "ibm_is_instance", "i-1", "demo-01", vpc="vpc-1")
    put(world, "ibm_is_instance", "i-2", "demo-gpu-01", vpc="vpc-1")
    put(world, "ibm_is_instance", "i-3", "demo-02", vpc="vpc-2")
    found = {"ibm_is_vpc.cluster[0]": "vpc-1", 'ibm_is_instance.node["demo-01"]': "i-1"}
    assert on_ibm("us-east", "demo", EMPTY, NOW) == found
    # A key that was there before this deployment began is somebody else's.
    assert on_ibm("us-east", "demo", EMPTY, NOW - 3600) == {**found, "ibm_is_ssh_key.cluster[0]": "key-1"}
    known = Resource("module.cluster.ibm_is_vpc.cluster[0]", "ibm_is_vpc", False, {"id": "vpc-1"}, ())
    assert on_ibm("us-east", "demo", State((known,), {}), NOW) == {'ibm_is_instance.node["demo-01"]': "i-1"}
    assert left_on_ibm("us-east", "demo", NOW) == ["instance i-1", "vpc vpc-1"]
    assert on_ibm("us-east", "other", EMPTY, NOW) == {}


def test_in_a_vpc_of_the_user_s_own_it_is_found_by_its_group(world: World) -> None:
    put(world, "ibm_is_vpc", "vpc-1", "landing-zone")
    put(world, "ibm_is_subnet", "s-1", "demo-nodes", vpc="vpc-1")
    group = Resource(
        "module.cluster.ibm_is_security_group.nodes", "ibm_is_security_group", False, {"id": "g", "vpc": "vpc-1"}, ()
    )
    assert on_ibm("us-east", "demo", State((group,), {}), NOW) == {"ibm_is_subnet.nodes[0]": "s-1"}
    assert on_ibm("us-east", "demo", EMPTY, NOW) == {}


def test_all_pages_are_read(world: World) -> None:
    for number in range(250):
        put(world, "ibm_is_subnet", f"s-{number}", f"other-{number}", vpc="vpc-1")
    put(world, "ibm_is_vpc", "vpc-1", "demo")
    put(world, "ibm_is_subnet", "last", "demo-data-4", vpc="vpc-1")
    assert on_ibm("us-east", "demo", EMPTY, NOW)["ibm_is_subnet.data[3]"] == "last"


def test_a_bucket_is_looked_into(world: World) -> None:
    put(world, "ibm_cos_bucket", "b", "", bucket_name="demo-checkpoints", resource_instance_id="x")
    account = Account("us-east")
    assert not account.holds_anything("demo-checkpoints")
    assert not account.holds_anything("no-such-bucket")
    world.put("_object", "demo-checkpoints/step", {"bucket": "demo-checkpoints"})
    assert account.holds_anything("demo-checkpoints")


def test_what_cannot_be_asked_is_said(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IBMCLOUD_IAM_API_ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(Unchecked, match=r"^127\.0\.0\.1:9/identity/token was not reached: "):
        on_ibm("us-east", "demo", EMPTY)
    monkeypatch.delenv("IC_API_KEY")
    monkeypatch.delenv("IBMCLOUD_API_KEY", raising=False)
    with pytest.raises(Unchecked, match=r"^IC_API_KEY or IBMCLOUD_API_KEY is not set$"):
        on_ibm("us-east", "demo", EMPTY)


@pytest.mark.parametrize(
    ("path", "headers", "code"),
    [
        ("/vpcs?version=2025-07-08&generation=2", {}, 401),
        ("/vpcs?version=2025-07-08", {"Authorization": f"Bearer {ibm_api.TOKEN}"}, 400),
        ("/volumes?version=2025-07-08&generation=2", {"Authorization": f"Bearer {ibm_api.TOKEN}"}, 404),
    ],
)
def test_the_stand_in_is_as_strict_as_the_service(world: World, path: str, headers: dict[str, str], code: int) -> None:
    request = urllib.request.Request(os.environ["IBMCLOUD_IS_NG_API_ENDPOINT"] + path, headers=headers)
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(request, timeout=10)
    assert refused.value.code == code
