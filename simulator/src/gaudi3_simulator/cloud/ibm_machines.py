"""What the simulated IBM Cloud refuses of a machine; the sources are named as in ``ibm_rules.py``."""

from __future__ import annotations

import hashlib
import re

from gaudi3_simulator.cloud.ibm_needs import (
    Tables,
    images,
    in_region,
    need,
    need_group,
    profiles,
    unique_name,
    zones_with,
)
from gaudi3_simulator.cloud.world import Refused, Row, World


def instance(world: World, tables: Tables, values: Row, prior: Row | None) -> None:
    """A machine: all that it refers to, its zone, its image, its disks, and the account's quota."""
    unique_name(world, "ibm_is_instance", values, prior, "_region")
    if prior is not None:
        return
    in_region(tables, values)
    need(world, "ibm_is_vpc", values["vpc"], ["vpc"])
    for each in values.get("keys") or []:
        need(world, "ibm_is_ssh_key", each, ["keys"])
    name = str(values["profile"])
    known = profiles(world, tables).get(name)
    if known is None:
        raise Refused("not_found", f"Instance profile with name {name} is not found", ["profile"])
    # [docs, accelerated profiles: the zones of a profile]
    if values["zone"] not in zones_with(world, tables, name, values["_region"]):
        text = f"Instance profile {name} is not available in zone {values['zone']}"
        raise Refused("instance_profile_not_available", text, ["profile"])
    machine_image(world, tables, values)
    machine_boot(tables, values)
    machine_interfaces(world, values, known)
    machine_market(world, values, known)
    if values.get("default_trusted_profile_target"):
        need(
            world,
            "ibm_iam_trusted_profile",
            values["default_trusted_profile_target"],
            ["default_trusted_profile_target"],
        )
    quota(world, tables, values, known)


def machine_image(world: World, tables: Tables, values: Row) -> None:
    """Image or catalogue version; no obsolete image. [docs, "Image lifecycle management"]"""
    if values.get("catalog_offering"):
        offering = values["catalog_offering"][0]
        if not re.match(
            r"^crn:v1:.*:(version|offering):", str(offering.get("version_crn") or offering.get("offering_crn"))
        ):
            raise Refused("bad_field", "The catalog offering is not known", ["catalog_offering"])
        return
    by_id = {f"r014-{hashlib.md5(one.encode()).hexdigest()}": each for one, each in images(world, tables).items()}
    image = by_id.get(str(values.get("image")))
    if image is None:
        raise Refused("not_found", f"Image with id {values.get('image')} does not exist", ["image"])
    if image["status"] not in ("available", "deprecated"):
        raise Refused("image_status_invalid", f"The image is {image['status']} and makes no instance", ["image"])


def machine_boot(tables: Tables, values: Row) -> None:
    """A boot volume of 100 to 250 GB. [table boot_volume_gb]"""
    low, high = tables["boot_volume_gb"]["range"]
    for each in values.get("boot_volume") or []:
        if each.get("size") and not low <= each["size"] <= high:
            text = f"The boot volume has {each['size']} GB, allowed are {low} to {high}"
            raise Refused("volume_capacity_invalid", text, ["boot_volume", 0, "size"])


def machine_interfaces(world: World, values: Row, known: Row) -> None:
    """In subnets of the machine's zone, not more than the profile has. [docs, vsi-profile-details-accelerated]"""
    found = [*(values.get("primary_network_attachment") or []), *(values.get("network_attachments") or [])]
    if not found:
        raise Refused("bad_field", "A primary network attachment is needed", ["primary_network_attachment"])
    if len(found) > known["interfaces"]:
        text = f"{len(found)} network attachments, but the profile has {known['interfaces']}"
        raise Refused("over_limit", text, ["network_attachments"])
    for each in found:
        inner = each["virtual_network_interface"][0]
        place = need(world, "ibm_is_subnet", inner["subnet"], ["primary_network_attachment"])
        if (place["zone"], place["vpc"]) != (values["zone"], values["vpc"]):
            raise Refused(
                "bad_field", "The interface's subnet is in another zone or VPC", ["primary_network_attachment"]
            )
        for group in inner.get("security_groups") or []:
            need_group(world, group, ["primary_network_attachment"])
    if values.get("cluster_network_attachments") and not known["cluster_networks"]:
        text = "The profile cannot be in a cluster network"
        raise Refused("bad_field", text, ["cluster_network_attachments"])


def machine_market(world: World, values: Row, known: Row) -> None:
    """Spot where the profile has it; a reservation that is there. [docs, vsi_spot.md and reservations]"""
    for each in values.get("availability") or []:
        if each.get("class") and each["class"] not in known["classes"]:
            raise Refused("bad_field", f"The profile is not sold as {each['class']}", ["availability"])
    for each in values.get("reservation_affinity") or []:
        for pool in each.get("pool") or []:
            held = world.get("_reservation", pool["id"])
            if held is None or (held["profile"], held["zone"]) != (values["profile"], values["zone"]):
                text = f"No active reservation {pool['id']} of this profile and zone"
                raise Refused("reservation_not_found", text, ["reservation_affinity"])


def quota(world: World, tables: Tables, values: Row, known: Row) -> None:
    """The account's sums per region. [table quota]"""
    limits = {**tables["quota"]["per_region"], **world.setting("quota")}
    names = {"vcpu": "vCPU", "storage_gb": "instance storage (GB)", "gpu": "GPU"}
    have = [row for row in world.rows("ibm_is_instance") if row["_region"] == values["_region"]]
    for unit, word in names.items():
        used = sum(profiles(world, tables)[row["profile"]][unit] for row in have)
        if used + known[unit] > limits[unit]:
            text = (f"Creating a new instance will put the user over quota for {word}. Allocated: {used}, "
                    f"Requested: {known[unit]}, Quota: {limits[unit]}")  # fmt: skip
            raise Refused("over_quota", text, ["profile"])
