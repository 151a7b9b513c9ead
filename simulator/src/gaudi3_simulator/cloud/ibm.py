"""The simulated IBM Cloud: what it makes of an object, and what it refuses when the true service would.

Refusals come at create, update and delete, not while planning: a cloud that refused earlier would hide the incomplete
clusters that are the everyday failure. Each rule is a function that names its source; none says anything about time,
money, capacity, or what IAM admits.
"""

from __future__ import annotations

import base64
import datetime
import hashlib
import ipaddress
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from gaudi3_simulator.cloud import ibm_needs as needs
from gaudi3_simulator.cloud import ibm_rules as rules
from gaudi3_simulator.cloud.schema import UNKNOWN
from gaudi3_simulator.cloud.world import Refused, Row, World, new_id

TABLES: dict[str, Any] = json.loads((Path(__file__).parent / "ibm_tables.json").read_text())
ACCOUNT = "0" * 31 + "1"
GROUP = {"name": "Default", "id": "f" * 32, "is_default": True}


def configure(given: Row, environment: Mapping[str, str]) -> str | None:
    """Refuse to do without credentials, as the provider's own configuration does."""
    key = given.get("ibmcloud_api_key") or environment.get("IC_API_KEY") or environment.get("IBMCLOUD_API_KEY")
    return None if key else "No IBM Cloud credentials: give ibmcloud_api_key, or set IC_API_KEY."


def region_of(given: Row) -> str:
    """The region of a provider block; us-south is the provider's default."""
    return str(given.get("region") or "us-south")


def crn(kind: str, region: str, ident: str, service: str = "is") -> str:
    """A cloud resource name."""
    return f"crn:v1:bluemix:public:{service}:{region}:a/{ACCOUNT}::{kind}:{ident}"


def write(
    world: World, kind: str, values: Row, prior: Row | None, given: Row, fault: Row | None = None
) -> tuple[Row, str | None]:
    """Create or update. The text is an error that still comes with an object, as a broken create does."""
    region = region_of(given)
    if fault and not fault.get("half"):
        raise Refused(fault["code"], fault["text"])
    values = {**values, "_region": region}
    rules.check(world, TABLES, kind, values, prior)
    ident = prior["id"] if prior else identity(kind, values, region)
    made = MADE.get(kind, nothing)(world, values, ident, region)
    before = world.get(kind, ident) or {}
    made["_created"] = before.get("_created") or f"{datetime.datetime.now(datetime.UTC):%Y-%m-%dT%H:%M:%SZ}"
    default_group = {"resource_group": GROUP["id"], "resource_group_id": GROUP["id"]}
    filled = {
        name: made.get(name, default_group.get(name)) if value in (None, []) else value
        for name, value in values.items()
    }
    row = world.put(kind, ident, {**filled, **{name: each for name, each in made.items() if name.startswith("_")}})
    return row, f"{fault['text']} (code: {fault['code']})" if fault else None


def delete(world: World, kind: str, prior: Row) -> None:
    """Delete what nothing uses."""
    row = world.get(kind, prior["id"])
    if row is None:
        return
    rules.check_unused(world, kind, {**row, "force_delete": prior.get("force_delete")})
    if kind == "ibm_cos_bucket":
        for each in world.rows("_object"):
            if each["bucket"] == row["bucket_name"]:
                world.drop("_object", each["id"])
    if kind == "ibm_is_vpc":
        world.drop("_default_group", row["default_security_group"])
    world.drop(kind, prior["id"])


def identity(kind: str, values: Row, region: str) -> str:
    """An id in the form of the kind's own."""
    if kind == "ibm_resource_instance":
        guid = new_id("x")[2:]
        return f"crn:v1:bluemix:public:{values['service']}:{values['location']}:a/{ACCOUNT}:{guid}::"
    if kind == "ibm_cos_bucket":
        where = str(values["resource_instance_id"]).removesuffix("::")
        return f"{where}:bucket:{values['bucket_name']}:meta:rl:{values.get('region_location')}:public"
    if kind in ("ibm_iam_service_policy", "ibm_iam_trusted_profile_policy"):
        owner = values.get("iam_service_id") or values.get("profile_id") or values.get("iam_id")
        return f"{owner}/{new_id('x')[2:]}"
    if kind == "ibm_resource_key":
        where = str(values["resource_instance_id"]).removesuffix("::")
        return f"{where}:resource-key:{new_id('x')[2:]}"
    if kind.startswith("ibm_iam"):
        return new_id("ServiceId" if kind == "ibm_iam_service_id" else "Profile")
    if kind == "ibm_is_vpc_address_prefix":
        return f"{values['vpc']}/{new_id()}"
    if kind == "ibm_is_security_group_rule":
        return f"{values['group']}.{new_id()}"
    if kind == "ibm_is_cluster_network_subnet":
        return f"{values['cluster_network_id']}/{new_id('02u7')}"
    return new_id()


Maker = Callable[[World, Row, str, str], Row]


def nothing(world: World, values: Row, ident: str, region: str) -> Row:
    """What most kinds have: a name of their own in the cloud."""
    kind = "thing"
    return {"crn": crn(kind, region, ident), "status": "available", "name": values.get("name") or ident,
            "lifecycle_state": "stable", "guid": ident, "rule_id": ident.rpartition(".")[2]}  # fmt: skip


def vpc(world: World, values: Row, ident: str, region: str) -> Row:
    """A network, with its default security group as an object of its own."""
    made = nothing(world, values, ident, region)
    old = world.get("ibm_is_vpc", ident)
    group = old["default_security_group"] if old else new_id()
    if not old:
        world.put("_default_group", group, {"vpc": ident})
    return {**made, "default_security_group": group, "default_network_acl": new_id(), "crn": crn("vpc", region, ident)}


def key(world: World, values: Row, ident: str, region: str) -> Row:
    """A key: its type is rsa unless one is given."""
    body = base64.b64decode(str(values["public_key"]).split()[1] + "==")
    fingerprint = "SHA256:" + base64.b64encode(hashlib.sha256(body).digest()).decode().rstrip("=")
    return {**nothing(world, values, ident, region), "type": values.get("type") or "rsa", "fingerprint": fingerprint}


def instance(world: World, values: Row, ident: str, region: str) -> Row:
    """A machine: addresses in its subnets, in the order in which they are free."""
    old = world.get("ibm_is_instance", ident) or {}
    for name in ("primary_network_attachment", "network_attachments"):
        rows = []
        for index, each in enumerate(values.get(name) or []):
            before = (old.get(name) or [])[index : index + 1]
            rows.append(renamed(before[0], each) if before else attachment(world, each, ident))
            world.put("_address", f"{ident}/{name}/{index}", {
                "subnet": rows[-1]["virtual_network_interface"][0]["subnet"], "instance": ident,
                "address": rows[-1]["virtual_network_interface"][0]["primary_ip"][0]["address"],
            })  # fmt: skip
        values[name] = rows
    boot = (values.get("boot_volume") or [{}])[0]
    volume = (old.get("boot_volume") or [{}])[0].get("volume_id") or new_id()
    values["boot_volume"] = [{**boot, "size": boot.get("size") or 100, "volume_id": volume}]
    return {**nothing(world, values, ident, region), "crn": crn("instance", region, ident), "status": "running",
            "availability": [{"class": "standard"}], "network_attachments": []}  # fmt: skip


def renamed(before: Row, given: Row) -> Row:
    """An interface under another name: it stays, with its address. [provider, is_instance: names can be updated]"""
    inner, asked = before["virtual_network_interface"][0], given["virtual_network_interface"][0]
    vni = {**inner, "name": asked.get("name") or inner.get("name")}
    return {**before, "name": given.get("name") or before.get("name"), "virtual_network_interface": [vni]}


def attachment(world: World, interface: Row, ident: str) -> Row:
    """One interface."""
    inner = dict(interface["virtual_network_interface"][0])
    taken = {one["address"] for one in world.rows("_address")}
    subnet = world.get("ibm_is_subnet", inner["subnet"])
    assert subnet is not None, "the rules have looked"
    # The first four and the last address of a subnet are IBM's own.
    hosts = list(ipaddress.ip_network(subnet["ipv4_cidr_block"]).hosts())[3:300]
    address = next(str(one) for one in hosts if str(one) not in taken)
    vni = new_id()
    world.put("_address", f"{ident}/{vni}", {"subnet": inner["subnet"], "instance": ident, "address": address})
    inner.update(
        id=vni, primary_ip=[{"address": address, "reserved_ip": new_id()}], resource_type="virtual_network_interface"
    )
    return {**interface, "id": new_id(), "virtual_network_interface": [inner], "primary_ip": [{"address": address}]}


def floating_ip(world: World, values: Row, ident: str, region: str) -> Row:
    """A public address: one of the block that is kept for documents."""
    old = world.get("ibm_is_floating_ip", ident)
    taken = {each["address"] for each in world.rows("ibm_is_floating_ip")}
    free = next(f"203.0.113.{one}" for one in range(10, 250) if f"203.0.113.{one}" not in taken)
    return {**nothing(world, values, ident, region), "address": old["address"] if old else free,
            "zone": rules.zone_of_interface(world, values.get("target"))}  # fmt: skip


def storage(world: World, values: Row, ident: str, region: str) -> Row:
    """A service instance."""
    return {**nothing(world, values, ident, region), "crn": ident, "guid": ident.removesuffix("::").rpartition(":")[2]}


def bucket(world: World, values: Row, ident: str, region: str) -> Row:
    """A bucket with its endpoints, whose form is the service's."""
    place = values.get("region_location") or region
    hosts = {name: f"s3.{inner}{place}.cloud-object-storage.appdomain.cloud"
             for name, inner in (("public", ""), ("private", "private."), ("direct", "direct."))}  # fmt: skip
    return {"crn": ident.partition(":meta:")[0], "storage_class": "standard",
            **{f"s3_endpoint_{name}": host for name, host in hosts.items()}}  # fmt: skip


def resource_key(world: World, values: Row, ident: str, region: str) -> Row:
    """Credentials of a service instance; with HMAC, keys that an S3 client takes. They are made up."""
    old = world.get("ibm_resource_key", ident)
    if old:
        return old
    found: dict[str, Any] = {"apikey": hashlib.sha256(ident.encode()).hexdigest()}
    if str((values.get("parameters") or {}).get("HMAC", "")).lower() == "true":
        found["cos_hmac_keys.access_key_id"] = hashlib.md5(ident.encode()).hexdigest()
        found["cos_hmac_keys.secret_access_key"] = hashlib.sha1(ident.encode()).hexdigest()
    return {**nothing(world, values, ident, region), "credentials": found, "credentials_json": json.dumps(found)}


def identity_of_iam(world: World, values: Row, ident: str, region: str) -> Row:
    """A trusted profile or a service id."""
    return {
        **nothing(world, values, ident, region),
        "iam_id": f"iam-{ident}",
        "crn": crn("", "", ident, "iam-identity"),
    }


def cluster_subnet(world: World, values: Row, ident: str, region: str) -> Row:
    """A subnet of a cluster network."""
    return {**nothing(world, values, ident, region), "cluster_network_subnet_id": ident.rpartition("/")[2]}


MADE: dict[str, Maker] = {
    "ibm_is_vpc": vpc,
    "ibm_is_ssh_key": key,
    "ibm_is_instance": instance,
    "ibm_is_floating_ip": floating_ip,
    "ibm_resource_instance": storage,
    "ibm_cos_bucket": bucket,
    "ibm_resource_key": resource_key,
    "ibm_iam_trusted_profile": identity_of_iam,
    "ibm_iam_service_id": identity_of_iam,
    "ibm_is_cluster_network_subnet": cluster_subnet,
}


def look_up(world: World, kind: str, config: Row, given: Row) -> Row:
    """A data source."""
    if any(value is UNKNOWN for value in config.values()):
        raise Refused("internal", "Terraform asked with a value that it does not know yet")
    return LOOK[kind](world, config, region_of(given))


def group(world: World, config: Row, region: str) -> Row:
    """The account's one resource group."""
    if config.get("name") not in (None, GROUP["name"]):
        raise Refused("not_found", f"Given Resource Group '{config['name']}' is not found in the account")
    return dict(GROUP)


def images(world: World, config: Row, region: str) -> Row:
    """Images by name and status. Without a status, obsolete ones come, too."""
    found = [
        {"id": f"r014-{hashlib.md5(name.encode()).hexdigest()}", "name": name, "visibility": "public", **each}
        for name, each in needs.images(world, TABLES).items()
    ]
    wanted = {key: config.get(key) for key in ("name", "status", "visibility") if config.get(key)}
    return {"id": "images", "images": [one for one in found if all(one[key] == each for key, each in wanted.items())]}


def image(world: World, config: Row, region: str) -> Row:
    """One image by name, whatever its status."""
    found = images(world, {"name": config["name"]}, region)["images"]
    if not found:
        raise Refused("not_found", f"No image found with name {config['name']}")
    return dict(found[0])


def profile(world: World, config: Row, region: str) -> Row:
    """A machine's profile, with the zones of this region that have it."""
    name = config["name"]
    known = needs.profiles(world, TABLES).get(name)
    if known is None:
        raise Refused("not_found", f"Instance profile with name {name} is not found")
    zones = needs.zones_with(world, TABLES, name, region)
    return {
        "id": name, "family": "gpu" if known["gpu"] else "balanced", "status": "current",
        "zones": [{"name": zone, "href": f"https://{region}.iaas.cloud.ibm.com/v1/zones/{zone}"} for zone in zones],
        "availability_class": [{"type": "enum", "default": "standard", "values": known["classes"]}],
        "network_attachment_count": [{"type": "range", "min": 1, "max": known["interfaces"]}],
        "supported_cluster_network_profiles": [{"name": each} for each in known["cluster_networks"]],
    }  # fmt: skip


def zones(world: World, config: Row, region: str) -> Row:
    """The zones of a region."""
    found = TABLES["zones"]["regions"].get(config["region"], {})
    info = [{"name": name, "universal_name": each, "status": "available"} for name, each in found.items()]
    return {"id": config["region"], "zones": sorted(found), "zone_info": info}


def one_of(kind: str, key: str) -> Callable[[World, Row, str], Row]:
    """An object by its name or its id."""

    def look(world: World, config: Row, region: str) -> Row:
        name, ident = config.get("name"), config.get(key)
        for row in world.rows(kind):
            if row["_region"] == region and (row["id"] == ident or (name and row["name"] == name)):
                return {**row, key: row["id"]}
        raise Refused("not_found", f"No {kind} found with {'name ' + name if name else 'id ' + str(ident)}")

    return look


def keys(world: World, config: Row, region: str) -> Row:
    """All keys of a region."""
    found = [row for row in world.rows("ibm_is_ssh_key") if row["_region"] == region]
    # The service gives them back without the comment.
    return {"id": "keys", "keys": [{**row, "public_key": " ".join(row["public_key"].split()[:2]), "resource_group": []}
                                   for row in found]}  # fmt: skip


LOOK: dict[str, Callable[[World, Row, str], Row]] = {
    "ibm_resource_group": group,
    "ibm_is_images": images,
    "ibm_is_image": image,
    "ibm_is_instance_profile": profile,
    "ibm_is_zones": zones,
    "ibm_is_ssh_key": one_of("ibm_is_ssh_key", "id"),
    "ibm_is_ssh_keys": keys,
    "ibm_is_vpc": one_of("ibm_is_vpc", "identifier"),
    "ibm_is_subnet": one_of("ibm_is_subnet", "identifier"),
}
