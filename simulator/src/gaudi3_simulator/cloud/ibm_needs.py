"""What several rules of the simulated IBM Cloud ask: objects that exist, names, zones, and the tables."""

from __future__ import annotations

from typing import Any

from gaudi3_simulator.cloud.world import Refused, Row, World

Tables = dict[str, Any]


def profiles(world: World, tables: Tables) -> dict[str, Row]:
    """Machine profiles: the table's, and what a test sets (``profiles``)."""
    out = {**tables["profiles"]["types"]}
    for name, each in world.setting("profiles").items():
        if name != "id":
            out[name] = {**out.get(name, {}), **each}
    return out


def images(world: World, tables: Tables) -> dict[str, Row]:
    """Images: the table's, and what a test sets (``images``)."""
    own = {name: each for name, each in world.setting("images").items() if name != "id"}
    return {**tables["images"]["names"], **own}


def zones_with(world: World, tables: Tables, profile: str, region: str) -> list[str]:
    """Zones of a region that have a profile, by their data centers."""
    wanted = profiles(world, tables)[profile]["data_centers"]
    zones = tables["zones"]["regions"].get(region, {})
    return sorted(zone for zone, center in zones.items() if wanted is None or center in wanted)


def need(world: World, kind: str, ident: Any, path: list[Any]) -> Row:
    """An object that another refers to. [not_found: docs, API errors]"""
    row = world.get(kind, ident)
    if row is None:
        raise Refused("not_found", f"{kind.removeprefix('ibm_is_')} with id {ident} does not exist", path)
    return row


def unique_name(world: World, kind: str, values: Row, prior: Row | None, *within: str) -> None:
    """A name is given once in its place. [validation_unique_failed: docs, "names must be unique" per region or VPC]"""
    for row in world.rows(kind):
        same = all(row.get(key) == values.get(key) for key in ("name", *within))
        if values.get("name") and same and (prior is None or row["id"] != prior["id"]):
            raise Refused("validation_unique_failed", f"Provided Name ({values['name']}) is not unique", ["name"])


def in_region(tables: Tables, values: Row) -> None:
    """A zone belongs to the provider's region. [docs, "Creating a VPC in a different region"]"""
    if values.get("zone") and values["zone"] not in tables["zones"]["regions"].get(values["_region"], {}):
        text = f"The zone {values['zone']} is not in region {values['_region']}"
        raise Refused("not_found", text, ["zone"])


def need_group(world: World, ident: Any, path: list[Any]) -> None:
    """A group of the account's, or a VPC's default one."""
    if world.get("_default_group", ident) is None:
        need(world, "ibm_is_security_group", ident, path)
