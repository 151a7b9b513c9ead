"""What the simulated IBM Cloud refuses: one function per kind of object, each rule with its source.

Each rule names its source: "docs" are ibm-cloud-docs/vpc, "provider" is IBM-Cloud/terraform-provider-ibm. The codes
not_found, over_quota, validation_unique_failed and BucketNotEmpty, the sentence about a key's type and the numbers
in that about a quota are the service's own. All other codes and sentences are ours, and nothing may rely on them.
"""

from __future__ import annotations

import base64
import hashlib
import ipaddress
import re
from collections.abc import Callable
from typing import Any

from gaudi3_simulator.cloud.ibm_machines import instance
from gaudi3_simulator.cloud.ibm_needs import Tables, in_region, need, need_group, unique_name
from gaudi3_simulator.cloud.world import Refused, Row, World

Rule = Callable[[World, Tables, Row, Row | None], None]


def vpc(world: World, tables: Tables, values: Row, prior: Row | None) -> None:
    """A name of its own in the region."""
    unique_name(world, "ibm_is_vpc", values, prior, "_region")


def prefix(world: World, tables: Tables, values: Row, prior: Row | None) -> None:
    """A zone of the region, and no overlap. [docs, "Planning for address prefixes"]"""
    in_region(tables, values)
    need(world, "ibm_is_vpc", values["vpc"], ["vpc"])
    mine = ipaddress.ip_network(values["cidr"])
    for row in world.rows("ibm_is_vpc_address_prefix"):
        other = row["vpc"] == values["vpc"] and (prior is None or row["id"] != prior["id"])
        if other and mine.overlaps(ipaddress.ip_network(row["cidr"])):
            raise Refused("conflict_field", f"The prefix {mine} overlaps with {row['cidr']}", ["cidr"])


def gateway(world: World, tables: Tables, values: Row, prior: Row | None) -> None:
    """One public gateway per zone of a VPC. [docs, quotas: public gateways]"""
    in_region(tables, values)
    need(world, "ibm_is_vpc", values["vpc"], ["vpc"])
    unique_name(world, "ibm_is_public_gateway", values, prior, "_region")
    for row in world.rows("ibm_is_public_gateway"):
        if prior is None and (row["vpc"], row["zone"]) == (values["vpc"], values["zone"]):
            raise Refused("over_quota", f"VPC {values['vpc']} has a public gateway in zone {values['zone']}", ["zone"])


def subnet(world: World, tables: Tables, values: Row, prior: Row | None) -> None:
    """In an address prefix of its zone, apart from others, its gateway in the same zone. [docs, "About networking"]"""
    in_region(tables, values)
    need(world, "ibm_is_vpc", values["vpc"], ["vpc"])
    unique_name(world, "ibm_is_subnet", values, prior, "vpc")
    mine = ipaddress.IPv4Network(values["ipv4_cidr_block"])
    prefixes = [each for each in world.rows("ibm_is_vpc_address_prefix") if each["vpc"] == values["vpc"]]
    here = [ipaddress.IPv4Network(each["cidr"]) for each in prefixes if each["zone"] == values["zone"]]
    if not any(mine.subnet_of(each) for each in here):
        text = f"The subnet {mine} is in no address prefix of zone {values['zone']}"
        raise Refused("bad_field", text, ["ipv4_cidr_block"])
    for row in world.rows("ibm_is_subnet"):
        other = row["vpc"] == values["vpc"] and (prior is None or row["id"] != prior["id"])
        if other and mine.overlaps(ipaddress.ip_network(row["ipv4_cidr_block"])):
            raise Refused("conflict_field", f"The subnet {mine} overlaps with {row['name']}", ["ipv4_cidr_block"])
    if values.get("public_gateway"):
        gate = need(world, "ibm_is_public_gateway", values["public_gateway"], ["public_gateway"])
        if gate["zone"] != values["zone"]:
            raise Refused("bad_field", "The public gateway is in another zone than the subnet", ["public_gateway"])


def security_group(world: World, tables: Tables, values: Row, prior: Row | None) -> None:
    """A name of its own in the VPC."""
    need(world, "ibm_is_vpc", values["vpc"], ["vpc"])
    unique_name(world, "ibm_is_security_group", values, prior, "vpc")


def group_rule(world: World, tables: Tables, values: Row, prior: Row | None) -> None:
    """Its group and its remote exist; at most 250 rules. [docs, quotas]"""
    need_group(world, values["group"], ["group"])
    if str(values.get("remote") or "").startswith("r014-"):
        need_group(world, values["remote"], ["remote"])
    if (
        prior is None
        and sum(row["group"] == values["group"] for row in world.rows("ibm_is_security_group_rule")) >= 250
    ):
        raise Refused("over_quota", "The security group has 250 rules, which is its quota", ["group"])


def ssh_key(world: World, tables: Tables, values: Row, prior: Row | None) -> None:
    """The material is of the type, and a key is known once in a region.

    [docs, api-change-log: type, rsa unless given; message: ibm-cloud-docs/vpc#234. Fingerprint once: provider#2231]
    """
    unique_name(world, "ibm_is_ssh_key", values, prior, "_region")
    if prior is not None:
        return
    words, kind = str(values["public_key"]).split(), values.get("type") or "rsa"
    if words[0] != {"rsa": "ssh-rsa", "ed25519": "ssh-ed25519"}[kind]:
        raise Refused("invalid_value", f"public key provided is not of type {kind}", ["public_key"])
    body = base64.b64decode(words[1] + "==")
    fingerprint = "SHA256:" + base64.b64encode(hashlib.sha256(body).digest()).decode().rstrip("=")
    for row in world.rows("ibm_is_ssh_key"):
        if row["_region"] == values["_region"] and row["fingerprint"] == fingerprint:
            raise Refused("validation_unique_failed", "Key with fingerprint already exists", ["public_key"])


def zone_of_interface(world: World, vni: Any) -> str | None:
    """Where an interface is."""
    for row in world.rows("ibm_is_instance"):
        for each in [*row["primary_network_attachment"], *row["network_attachments"]]:
            if each["virtual_network_interface"][0]["id"] == vni:
                return str(row["zone"])
    return None


def floating_ip(world: World, tables: Tables, values: Row, prior: Row | None) -> None:
    """For an interface that is there and has none; 40 a zone. [docs, "About floating IPs" and quotas]"""
    unique_name(world, "ibm_is_floating_ip", values, prior, "_region")
    if values.get("target") and zone_of_interface(world, values["target"]) is None:
        raise Refused("not_found", f"The target {values['target']} does not exist", ["target"])
    for row in world.rows("ibm_is_floating_ip"):
        if (
            values.get("target")
            and row.get("target") == values["target"]
            and (prior is None or row["id"] != prior["id"])
        ):
            raise Refused("bad_field", "The interface has a floating IP", ["target"])


def bucket(world: World, tables: Tables, values: Row, prior: Row | None) -> None:
    """A name that nobody in the world has. [ibm-cloud-docs/cloud-object-storage, "Bucket operations"]

    Noncurrent versions expire on a versioned bucket only. [provider, cos_bucket.html.markdown]
    """
    need(world, "ibm_resource_instance", values["resource_instance_id"], ["resource_instance_id"])
    if not re.fullmatch(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]", str(values["bucket_name"])):
        raise Refused("InvalidBucketName", "The specified bucket is not valid", ["bucket_name"])
    taken = {row["bucket_name"] for row in world.rows("ibm_cos_bucket") if prior is None or row["id"] != prior["id"]}
    if values["bucket_name"] in taken | set(world.setting("taken_buckets")):
        raise Refused("BucketAlreadyExists", "The requested bucket name is not available", ["bucket_name"])
    versioned = any(each.get("enable") for each in values.get("object_versioning") or [])
    if values.get("noncurrent_version_expiration") and not versioned:
        text = "noncurrent_version_expiration needs object_versioning"
        raise Refused("InvalidRequest", text, ["noncurrent_version_expiration"])


def resource_key(world: World, tables: Tables, values: Row, prior: Row | None) -> None:
    """Of a storage instance, for a service id that is there. [provider, resource_key.html.markdown]"""
    need(world, "ibm_resource_instance", values["resource_instance_id"], ["resource_instance_id"])
    owner = (values.get("parameters") or {}).get("serviceid_crn")
    if owner and owner not in {row["crn"] for row in world.rows("ibm_iam_service_id")}:
        raise Refused("not_found", f"The service id {owner} does not exist", ["parameters"])
    if values.get("role") not in (None, "NONE"):
        role_names(world, tables, [values["role"]], ["role"])


def role_names(world: World, tables: Tables, names: list[Any], path: list[Any]) -> None:
    """Roles that the service has, and the account's own. [table roles]"""
    own = {row["display_name"] for row in world.rows("ibm_iam_custom_role")}
    for name in names:
        if name not in own and name not in tables["roles"]["names"]:
            raise Refused("invalid_body", f"The role {name} was not found for the service", path)


def policy(world: World, tables: Tables, values: Row, prior: Row | None) -> None:
    """Roles that exist, for an identity that exists."""
    role_names(world, tables, list(values["roles"]), ["roles"])
    known = {row["iam_id"] for kind in ("ibm_iam_trusted_profile", "ibm_iam_service_id") for row in world.rows(kind)}
    idents = {row["id"] for kind in ("ibm_iam_trusted_profile", "ibm_iam_service_id") for row in world.rows(kind)}
    subject = values.get("profile_id") or values.get("iam_service_id")
    if (values.get("iam_id") or subject) not in known | idents:
        raise Refused("not_found", f"The identity {subject} does not exist", ["roles"])


def authorization(world: World, tables: Tables, values: Row, prior: Row | None) -> None:
    """Roles that exist."""
    role_names(world, tables, list(values["roles"]), ["roles"])


def custom_role(world: World, tables: Tables, values: Row, prior: Row | None) -> None:
    """A name of letters and digits, a capital first. [provider, iam_custom_role.html.markdown]"""
    if not re.fullmatch(r"[A-Z][A-Za-z0-9]{0,29}", str(values["name"])):
        raise Refused("invalid_body", f"The role name {values['name']} is not valid", ["name"])
    unique_name(world, "ibm_iam_custom_role", values, prior)


def flow_log(world: World, tables: Tables, values: Row, prior: Row | None) -> None:
    """A bucket, and an authorization that lets the collector write. [docs, "Creating a flow log collector"]"""
    unique_name(world, "ibm_is_flow_log", values, prior, "_region")
    if values["storage_bucket"] not in {row["bucket_name"] for row in world.rows("ibm_cos_bucket")}:
        raise Refused("not_found", f"The bucket {values['storage_bucket']} does not exist", ["storage_bucket"])
    if not any(
        row["source_resource_type"] == "flow-log-collector" for row in world.rows("ibm_iam_authorization_policy")
    ):
        raise Refused("not_authorized", "The collector may not write to the bucket", ["storage_bucket"])


def cluster_network(world: World, tables: Tables, values: Row, prior: Row | None) -> None:
    """A zone of the region, and a VPC."""
    in_region(tables, values)
    need(world, "ibm_is_vpc", values["vpc"][0]["id"], ["vpc"])


RULES: dict[str, Rule] = {
    "ibm_is_vpc": vpc,
    "ibm_is_vpc_address_prefix": prefix,
    "ibm_is_public_gateway": gateway,
    "ibm_is_subnet": subnet,
    "ibm_is_security_group": security_group,
    "ibm_is_security_group_rule": group_rule,
    "ibm_is_ssh_key": ssh_key,
    "ibm_is_instance": instance,
    "ibm_is_floating_ip": floating_ip,
    "ibm_is_flow_log": flow_log,
    "ibm_is_cluster_network": cluster_network,
    "ibm_cos_bucket": bucket,
    "ibm_resource_key": resource_key,
    "ibm_iam_custom_role": custom_role,
    "ibm_iam_trusted_profile_policy": policy,
    "ibm_iam_service_policy": policy,
    "ibm_iam_authorization_policy": authorization,
}


def check(world: World, tables: Tables, kind: str, values: Row, prior: Row | None) -> None:
    """All that is refused of an object that is made or changed."""
    rule = RULES.get(kind)
    if rule is not None:
        rule(world, tables, values, prior)


#: Kind to what must be gone before it: kind, the key that refers to it. [docs, "Deleting a VPC": in this order]
USERS: dict[str, list[tuple[str, str]]] = {
    "ibm_is_vpc": [("ibm_is_subnet", "vpc"), ("ibm_is_instance", "vpc"), ("ibm_is_public_gateway", "vpc"),
                   ("ibm_is_flow_log", "target")],
    "ibm_is_vpc_address_prefix": [],
    "ibm_is_public_gateway": [("ibm_is_subnet", "public_gateway")],
    "ibm_is_subnet": [("_address", "subnet"), ("ibm_is_flow_log", "target")],
    "ibm_resource_instance": [("ibm_cos_bucket", "resource_instance_id")],
    "ibm_is_cluster_network": [("ibm_is_cluster_network_subnet", "cluster_network_id")],
}  # fmt: skip


def check_unused(world: World, kind: str, row: Row) -> None:
    """Nothing is deleted that something uses. [docs, "Deleting a VPC"; bucket: COS answers BucketNotEmpty]"""
    for user, key in USERS.get(kind, ()):
        for each in world.rows(user):
            if each.get(key) == row["id"]:
                name = kind.removeprefix("ibm_").removeprefix("is_").replace("_", " ")
                what = user.removeprefix("ibm_").removeprefix("is_").replace("_", " ").strip()
                raise Refused(
                    f"{name.replace(' ', '_')}_in_use",
                    f"The {name} is in use by {what} {each.get('name') or each['id']}",
                )
    if kind == "ibm_is_security_group":
        for each in world.rows("ibm_is_instance"):
            for one in [*each["primary_network_attachment"], *each["network_attachments"]]:
                if row["id"] in (one["virtual_network_interface"][0].get("security_groups") or []):
                    raise Refused("security_group_in_use", f"The security group is in use by instance {each['name']}")
    if kind == "ibm_is_instance":
        for each in world.rows("_address"):
            if each["instance"] == row["id"]:
                world.drop("_address", each["id"])
    filled = [each for each in world.rows("_object") if each["bucket"] == row.get("bucket_name")]
    if kind == "ibm_cos_bucket" and filled and not row.get("force_delete"):
        raise Refused("BucketNotEmpty", "The bucket you tried to delete is not empty")
