"""The simulated IBM Cloud's rules, each by one object that it refuses and one that it takes."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from gaudi3_simulator.cloud import ibm
from gaudi3_simulator.cloud.schema import load
from gaudi3_simulator.cloud.world import Refused, Row, World

GIVEN = {"region": "us-east"}
FACTS = load("ibm", "2.5.0")["resource"]
ED25519 = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ0h3yqQWfS9NSQfzBf8Ue0qS2hP4b8nA4V1Zb2c3d4e tests@example"
GAUDI = "gx3d-160x1792x8gaudi3"


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "world")


def make(world: World, kind: str, **values: Any) -> Row:
    return ibm.write(world, kind, whole(kind, **values), None, GIVEN, world.fault(kind))[0]


def whole(kind: str, **values: Any) -> Row:
    """With every key that the schema has, as Terraform gives it."""
    return {name: values.get(name) for name in FACTS[kind]["attributes"]}


def image(name: str = "ibm-ubuntu-24-04-6-minimal-amd64-3") -> str:
    return f"r014-{hashlib.md5(name.encode()).hexdigest()}"


def network(world: World, zone: str = "us-east-2") -> Row:
    vpc = make(world, "ibm_is_vpc", name="net")
    make(world, "ibm_is_vpc_address_prefix", name="p", vpc=vpc["id"], zone=zone, cidr="10.42.0.0/16")
    return make(world, "ibm_is_subnet", name="s", vpc=vpc["id"], zone=zone, ipv4_cidr_block="10.42.16.0/20")


def machine(subnet: Row, **values: Any) -> Row:
    attachment = {"name": "a", "virtual_network_interface": [{"subnet": subnet["id"]}]}
    return {
        "name": "gaudi-01", "profile": GAUDI, "image": image(), "vpc": subnet["vpc"], "zone": subnet["zone"],
        "primary_network_attachment": [attachment], "network_attachments": [], **values,
    }  # fmt: skip


def rich(world: World) -> None:
    world.set("quota", vcpu=2000, storage_gb=10**6, gpu=64)


@pytest.mark.parametrize(
    ("kind", "values", "expected"),
    [
        ("ibm_is_ssh_key", {"name": "k", "public_key": ED25519}, "public key provided is not of type rsa"),
        (
            "ibm_is_public_gateway",
            {"name": "g", "vpc": "r014-none", "zone": "us-east-2"},
            "vpc with id r014-none does not",
        ),
        (
            "ibm_is_vpc_address_prefix",
            {"zone": "us-south-1", "vpc": "x", "cidr": "10.0.0.0/8"},
            "is not in region us-east",
        ),
        ("ibm_iam_authorization_policy", {"roles": ["Reeder"]}, "The role Reeder was not found"),
        ("ibm_iam_custom_role", {"name": "no dash", "display_name": "d"}, "The role name no dash is not valid"),
    ],
)
def test_what_is_refused_at_once(world: World, kind: str, values: Row, expected: str) -> None:
    with pytest.raises(Refused, match=expected):
        make(world, kind, **values)
    assert world.kinds() == {}


def test_a_key_is_taken_once_in_a_region(world: World) -> None:
    first = make(world, "ibm_is_ssh_key", name="a", public_key=ED25519, type="ed25519")
    assert first["fingerprint"].startswith("SHA256:")
    with pytest.raises(Refused, match=r"fingerprint already exists \(code: validation_unique_failed\)"):
        make(world, "ibm_is_ssh_key", name="b", public_key=ED25519 + "2", type="ed25519")
    key = whole("ibm_is_ssh_key", name="b", public_key=ED25519, type="ed25519")
    elsewhere = ibm.write(world, "ibm_is_ssh_key", key, None, {"region": "us-south"})
    assert elsewhere[0]["name"] == "b"


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"zone": "us-east-1"}, "is not available in zone us-east-1"),
        ({"profile": "gx9"}, "profile with name gx9 is not found"),
        ({"image": "obsolete"}, "The image is obsolete"),
        ({"boot_volume": [{"size": 300}]}, "has 300 GB, allowed are 100 to 250"),
        ({"availability": [{"class": "cheap"}]}, "is not sold as cheap"),
        ({"reservation_affinity": [{"pool": [{"id": "none"}]}]}, "No active reservation none"),
        ({"cluster_network_attachments": [{}]}, "cannot be in a cluster network"),
        ({"default_trusted_profile_target": "Profile-none"}, "Profile-none does not exist"),
    ],
)
def test_what_is_refused_of_a_machine(world: World, values: Row, expected: str) -> None:
    rich(world)
    subnet = network(world, str(values.get("zone", "us-east-2")))
    if values.get("image"):
        values = {"image": image("ibm-ubuntu-24-04-2-minimal-amd64-5")}
    with pytest.raises(Refused, match=expected):
        make(world, "ibm_is_instance", **machine(subnet, **values))
    make(world, "ibm_is_instance", **machine(network_of(world, subnet)))


def network_of(world: World, subnet: Row) -> Row:
    """The same network, or one in a zone that has the profile."""
    if subnet["zone"] == "us-east-2":
        return subnet
    vpc = make(world, "ibm_is_vpc", name="other")
    make(world, "ibm_is_vpc_address_prefix", name="p", vpc=vpc["id"], zone="us-east-3", cidr="10.50.0.0/16")
    return make(world, "ibm_is_subnet", name="s", vpc=vpc["id"], zone="us-east-3", ipv4_cidr_block="10.50.0.0/24")


def test_one_node_exceeds_the_quota_of_a_new_account(world: World) -> None:
    subnet = network(world)
    text = r"Allocated: 0, Requested: 25600, Quota: 18000 \(code: over_quota\)"
    with pytest.raises(Refused, match=text):
        make(world, "ibm_is_instance", **machine(subnet))
    world.set("quota", storage_gb=100_000)
    make(world, "ibm_is_instance", **machine(subnet))
    with pytest.raises(Refused, match="Allocated: 160, Requested: 160, Quota: 200"):
        make(world, "ibm_is_instance", **machine(subnet, name="gaudi-02"))


def test_addresses_are_handed_out_once_and_come_back(world: World) -> None:
    rich(world)
    subnet = network(world)
    found = [make(world, "ibm_is_instance", **machine(subnet, name=f"n{one}")) for one in range(3)]
    rows = [each["primary_network_attachment"][0]["virtual_network_interface"][0] for each in found]
    assert [each["primary_ip"][0]["address"] for each in rows] == ["10.42.16.4", "10.42.16.5", "10.42.16.6"]
    ibm.delete(world, "ibm_is_instance", found[0])
    again = make(world, "ibm_is_instance", **machine(subnet, name="n9"))
    inner = again["primary_network_attachment"][0]["virtual_network_interface"][0]
    assert inner["primary_ip"][0]["address"] == "10.42.16.4"


def test_what_is_in_use_is_not_deleted(world: World) -> None:
    rich(world)
    subnet = network(world)
    node = make(world, "ibm_is_instance", **machine(subnet))
    vpc = world.get("ibm_is_vpc", subnet["vpc"])
    assert vpc is not None
    with pytest.raises(Refused, match="The subnet is in use"):
        ibm.delete(world, "ibm_is_subnet", subnet)
    with pytest.raises(Refused, match="The vpc is in use by subnet s"):
        ibm.delete(world, "ibm_is_vpc", vpc)
    for kind, row in (("ibm_is_instance", node), ("ibm_is_subnet", subnet), ("ibm_is_vpc", vpc)):
        ibm.delete(world, kind, row)
    assert world.kinds() == {"ibm_is_vpc_address_prefix": 1}


def test_a_bucket_with_an_object_stays_unless_it_is_meant(world: World) -> None:
    instance = make(world, "ibm_resource_instance", name="cos", service="cloud-object-storage", location="global")
    bucket = make(
        world, "ibm_cos_bucket", bucket_name="mine", resource_instance_id=instance["id"], region_location="us-east"
    )
    world.put("_object", "mine/a", {"bucket": "mine"})
    with pytest.raises(Refused, match="BucketNotEmpty"):
        ibm.delete(world, "ibm_cos_bucket", {**bucket, "force_delete": False})
    with pytest.raises(Refused, match="The resource instance is in use by cos bucket"):
        ibm.delete(world, "ibm_resource_instance", instance)
    ibm.delete(world, "ibm_cos_bucket", {**bucket, "force_delete": True})
    assert world.rows("_object") == []


def test_a_fault_begins_after_some_calls_and_ends(world: World) -> None:
    world.set("faults", ibm_is_vpc={"after": 1, "times": 1, "code": "no_capacity", "text": "There is none"})
    make(world, "ibm_is_vpc", name="a")
    with pytest.raises(Refused, match=r"There is none \(code: no_capacity\)"):
        make(world, "ibm_is_vpc", name="b")
    make(world, "ibm_is_vpc", name="b")


def test_what_was_written_when_the_provider_is_killed_is_whole(tmp_path: Path) -> None:
    """A row is there or it is not; the file can be read again at once."""
    code = (
        "import sys\nfrom gaudi3_simulator.cloud import ibm\nfrom gaudi3_simulator.cloud.world import World\n"
        "world = World(sys.argv[1])\nprint('go', flush=True)\nkeys = dict.fromkeys(['default_security_group'])\n"
        "for one in range(10**6):\n    with world.open():\n"
        "        ibm.write(world, 'ibm_is_vpc', {**keys, 'name': f'v{one}'}, None, {'region': 'us-east'})\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(ibm.__file__).parents[2])}
    writer = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path / "world")], env=environment, stdout=subprocess.PIPE
    )
    assert writer.stdout is not None
    writer.stdout.readline()
    time.sleep(0.2)
    writer.send_signal(signal.SIGKILL)
    writer.wait()
    writer.stdout.close()
    rows = World(tmp_path / "world").rows("ibm_is_vpc")
    assert rows
    groups = {each["id"] for each in World(tmp_path / "world").rows("_default_group")}
    assert {each["default_security_group"] for each in rows} == groups


def test_no_credentials_are_refused() -> None:
    assert ibm.configure({}, {}) == "No IBM Cloud credentials: give ibmcloud_api_key, or set IC_API_KEY."
    assert ibm.configure({}, {"IC_API_KEY": "x"}) is None


def test_every_table_has_a_source_and_a_day() -> None:
    for name, table in ibm.TABLES.items():
        if name != "about":
            assert len(table["source"]) > 20, name
            assert table["seen"].startswith("2026-"), name
