"""The simulated IBM Cloud's storage, access and addresses: what each rule refuses, and what it takes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gaudi3_simulator.cloud import ibm
from gaudi3_simulator.cloud.schema import UNKNOWN, load
from gaudi3_simulator.cloud.world import Refused, Row, World

GIVEN = {"region": "us-east"}
FACTS = load("ibm", "2.5.0")["resource"]


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "world")


def whole(kind: str, **values: Any) -> Row:
    return {name: values.get(name) for name in FACTS[kind]["attributes"]}


def make(world: World, kind: str, prior: Row | None = None, **values: Any) -> Row:
    return ibm.write(world, kind, whole(kind, **values), prior, GIVEN)[0]


def refused(world: World, kind: str, **values: Any) -> str:
    with pytest.raises(Refused) as caught:
        make(world, kind, **values)
    return str(caught.value)


def storage(world: World, name: str = "checkpoints-1") -> tuple[Row, Row]:
    instance = make(world, "ibm_resource_instance", name="cos", service="cloud-object-storage", location="global")
    values = {"bucket_name": name, "resource_instance_id": instance["id"], "region_location": "us-east"}
    return instance, make(world, "ibm_cos_bucket", **values)


def test_buckets(world: World) -> None:
    instance, bucket = storage(world)
    assert bucket["s3_endpoint_public"] == "s3.us-east.cloud-object-storage.appdomain.cloud"
    more = {"resource_instance_id": instance["id"], "region_location": "us-east"}
    assert "not available" in refused(world, "ibm_cos_bucket", bucket_name="checkpoints-1", **more)
    assert "not valid" in refused(world, "ibm_cos_bucket", bucket_name="Upper", **more)
    expiring = {"noncurrent_version_expiration": [{"enable": True}]}
    said = refused(world, "ibm_cos_bucket", bucket_name="versions", **more, **expiring)
    assert said == "noncurrent_version_expiration needs object_versioning (code: InvalidRequest)"
    make(world, "ibm_cos_bucket", bucket_name="versions", **more, **expiring, object_versioning=[{"enable": True}])


def test_a_bucket_with_objects_goes_with_force_alone(world: World) -> None:
    _instance, bucket = storage(world)
    world.put("_object", "o", {"bucket": bucket["bucket_name"]})
    with pytest.raises(Refused, match="BucketNotEmpty"):
        ibm.delete(world, "ibm_cos_bucket", bucket)
    ibm.delete(world, "ibm_cos_bucket", {**bucket, "force_delete": True})
    assert world.rows("_object") == []
    assert world.rows("ibm_cos_bucket") == []
    ibm.delete(world, "ibm_cos_bucket", bucket)


def test_key_pairs_are_for_a_service_id_that_is_there(world: World) -> None:
    instance, _bucket = storage(world)
    owner = make(world, "ibm_iam_service_id", name="writer")
    values = {"name": "pair", "resource_instance_id": instance["id"]}
    unknown = {"parameters": {"HMAC": True, "serviceid_crn": "crn:none"}}
    assert "The service id crn:none does not exist" in refused(world, "ibm_resource_key", **values, **unknown)
    assert "role Reeder was not found" in refused(world, "ibm_resource_key", **values, role="Reeder")
    known = {"parameters": {"HMAC": True, "serviceid_crn": owner["crn"]}}
    pair = make(world, "ibm_resource_key", **values, **known, role="NONE")
    assert set(pair["credentials"]) == {"apikey", "cos_hmac_keys.access_key_id", "cos_hmac_keys.secret_access_key"}
    again = make(world, "ibm_resource_key", pair, **values, **known, role="NONE")
    assert again["credentials"] == pair["credentials"]


def test_policies_are_for_an_identity_and_roles_that_are_there(world: World) -> None:
    profile = make(world, "ibm_iam_trusted_profile", name="nodes")
    policy = "ibm_iam_trusted_profile_policy"
    assert "identity Profile-none does not exist" in refused(world, policy, roles=["Writer"], profile_id="Profile-none")
    assert "role Pruner was not found" in refused(world, policy, roles=["Pruner"], profile_id=profile["id"])
    make(world, "ibm_iam_custom_role", name="Pruner", display_name="Pruner")
    assert "Pruner" in refused(world, "ibm_iam_custom_role", name="Pruner", display_name="Again")
    assert make(world, policy, roles=["Pruner"], profile_id=profile["id"])["roles"] == ["Pruner"]


def test_flow_logs_need_a_bucket_and_an_authorization(world: World) -> None:
    _instance, bucket = storage(world)
    values = {"name": "flows", "target": "r014-net", "storage_bucket": bucket["bucket_name"]}
    assert "bucket none does not exist" in refused(world, "ibm_is_flow_log", **{**values, "storage_bucket": "none"})
    assert "may not write to the bucket" in refused(world, "ibm_is_flow_log", **values)
    make(world, "ibm_iam_authorization_policy", roles=["Writer"], source_resource_type="flow-log-collector")
    assert make(world, "ibm_is_flow_log", **values)["name"] == "flows"


def test_networks(world: World) -> None:
    vpc = make(world, "ibm_is_vpc", name="net")
    prefix = {"vpc": vpc["id"], "zone": "us-east-2"}
    make(world, "ibm_is_vpc_address_prefix", name="p", cidr="10.42.0.0/16", **prefix)
    assert "overlaps with 10.42.0.0/16" in refused(
        world, "ibm_is_vpc_address_prefix", name="q", cidr="10.42.1.0/24", **prefix
    )
    gate = make(world, "ibm_is_public_gateway", name="gate", **prefix)
    assert "has a public gateway in zone us-east-2" in refused(world, "ibm_is_public_gateway", name="two", **prefix)
    other = make(world, "ibm_is_public_gateway", name="other", vpc=vpc["id"], zone="us-east-3")
    within = {"ipv4_cidr_block": "10.42.16.0/20", **prefix}
    assert "in no address prefix" in refused(
        world, "ibm_is_subnet", name="far", **{**within, "ipv4_cidr_block": "10.9.0.0/20"}
    )
    assert "in another zone than the subnet" in refused(
        world, "ibm_is_subnet", name="s", public_gateway=other["id"], **within
    )
    make(world, "ibm_is_subnet", name="s", public_gateway=gate["id"], **within)
    assert "overlaps with s" in refused(world, "ibm_is_subnet", name="t", **within)
    with pytest.raises(Refused, match="public gateway is in use by subnet s"):
        ibm.delete(world, "ibm_is_public_gateway", gate)
    with pytest.raises(Refused, match="vpc is in use by subnet s"):
        ibm.delete(world, "ibm_is_vpc", vpc)


def test_groups_and_cluster_networks(world: World) -> None:
    vpc = make(world, "ibm_is_vpc", name="net")
    group = make(world, "ibm_is_security_group", name="nodes", vpc=vpc["id"])
    assert "nodes" in refused(world, "ibm_is_security_group", name="nodes", vpc=vpc["id"])
    rule = {"group": group["id"], "direction": "inbound"}
    with pytest.raises(Refused):
        make(world, "ibm_is_security_group_rule", **rule, remote="r014-none")
    made = make(world, "ibm_is_security_group_rule", **rule, remote=group["id"])
    assert made["rule_id"] == made["id"].partition(".")[2]
    network = {"vpc": [{"id": vpc["id"]}], "zone": "us-east-2", "profile": "hopper-1", "name": "c"}
    cluster = make(world, "ibm_is_cluster_network", **network)
    subnet = make(world, "ibm_is_cluster_network_subnet", cluster_network_id=cluster["id"], name="cs")
    assert subnet["id"] == f"{cluster['id']}/{subnet['cluster_network_subnet_id']}"
    with pytest.raises(Refused, match="cluster network is in use"):
        ibm.delete(world, "ibm_is_cluster_network", cluster)


def test_addresses_are_for_interfaces_that_are_there(world: World) -> None:
    assert "target r014-none does not exist" in refused(world, "ibm_is_floating_ip", name="f", target="r014-none")
    first = make(world, "ibm_is_floating_ip", name="f", zone="us-east-2")
    second = make(world, "ibm_is_floating_ip", name="g", zone="us-east-2")
    assert (first["address"], second["address"]) == ("203.0.113.10", "203.0.113.11")
    assert make(world, "ibm_is_floating_ip", first, name="h", zone="us-east-2")["address"] == first["address"]


@pytest.mark.parametrize(
    ("kind", "config", "expected"),
    [
        ("ibm_resource_group", {"name": "none"}, "Given Resource Group 'none' is not found"),
        ("ibm_is_image", {"name": "none"}, "No image found with name none"),
        ("ibm_is_instance_profile", {"name": "gx9"}, "Instance profile with name gx9 is not found"),
        ("ibm_is_vpc", {"name": "none"}, "No ibm_is_vpc found with name none"),
        ("ibm_is_ssh_key", {"id": "r014-none"}, "No ibm_is_ssh_key found with id r014-none"),
        ("ibm_is_zones", {"region": UNKNOWN}, "a value that it does not know yet"),
    ],
)
def test_what_is_not_there(world: World, kind: str, config: Row, expected: str) -> None:
    with pytest.raises(Refused, match=expected):
        ibm.look_up(world, kind, config, GIVEN)


def test_what_is_there(world: World) -> None:
    vpc = make(world, "ibm_is_vpc", name="net")
    assert ibm.look_up(world, "ibm_is_vpc", {"name": "net"}, GIVEN)["identifier"] == vpc["id"]
    assert ibm.look_up(world, "ibm_resource_group", {}, GIVEN)["name"] == ibm.GROUP["name"]
    assert [row["name"] for row in ibm.look_up(world, "ibm_is_ssh_keys", {}, GIVEN)["keys"]] == []
    images = ibm.look_up(world, "ibm_is_images", {"status": "available"}, GIVEN)["images"]
    assert {each["status"] for each in images} == {"available"}
    assert ibm.look_up(world, "ibm_is_image", {"name": images[0]["name"]}, GIVEN)["id"] == images[0]["id"]
    zones = ibm.look_up(world, "ibm_is_zones", {"region": "us-east"}, GIVEN)
    profile = ibm.look_up(world, "ibm_is_instance_profile", {"name": "gx3d-160x1792x8gaudi3"}, GIVEN)
    assert {each["name"] for each in profile["zones"]} < set(zones["zones"])
