# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""SONiC's config_db.json."""

from __future__ import annotations

import json
from typing import Any

from .._refusal import Refusal
from .model import Port, Switch, Unread, numbers, whole

_QOS_KEYS = {"pfc_enable", "dscp_to_tc_map", "tc_to_pg_map", "tc_to_queue_map", "pfc_to_queue_map", "pfcwd_sw_enable"}
_READ = {
    "PORT",
    "PORT_QOS_MAP",
    "DSCP_TO_TC_MAP",
    "TC_TO_PRIORITY_GROUP_MAP",
    "TC_TO_QUEUE_MAP",
    "QUEUE",
    "WRED_PROFILE",
    "VLAN_MEMBER",
}
#: Tables about the same subject that hold nothing which the rules judge.
_KNOWN = {"VLAN", "VLAN_INTERFACE", "SCHEDULER", "MAP_PFC_PRIORITY_TO_QUEUE", "PFC_WD", "BUFFER_PG", "CABLE_LENGTH"}


def read(name: str, text: str) -> Switch:
    """The switch of this file. Raises Refusal where the text is not a config_db."""
    try:
        tables = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Refusal(f"the configuration is no JSON ({error}): give SONiC's /etc/sonic/config_db.json") from None
    if not isinstance(tables, dict) or not isinstance(tables.get("PORT"), dict):
        raise Refusal("the configuration has no table PORT: give SONiC's /etc/sonic/config_db.json")
    switch = Switch(name, "sonic")
    for table, rows in tables.items():
        if table in _READ and not (isinstance(rows, dict) and all(isinstance(row, dict) for row in rows.values())):
            raise Refusal(f"table {table} is no table of tables: give SONiC's /etc/sonic/config_db.json")
        if table in _READ or table in _KNOWN:
            continue
        if any(word in table for word in ("QOS", "PFC", "DSCP", "WRED", "TC_TO")):
            switch.unread.append(Unread(f"table {table}", json.dumps(rows)[:200]))
        else:
            switch.others += 1
    for port_name, row in tables["PORT"].items():
        mtu = str(row.get("mtu", ""))
        port = switch.ports[port_name] = Port(port_name, mtu=whole(mtu))
        if mtu and port.mtu is None:
            switch.unread.append(Unread(f"PORT|{port_name} mtu", mtu, port_name))
        if str(row.get("pfc_asym", "off")) != "off":  # then it pauses for all priorities, whatever its map says
            switch.unread.append(Unread(f"PORT|{port_name} pfc_asym", str(row["pfc_asym"]), port_name))
        _maps(switch, port, tables)
    switch.aliases = _aliases(tables["PORT"])
    _marking(switch, tables)
    for key, row in tables.get("VLAN_MEMBER", {}).items():
        vlan, _bar, port_name = key.partition("|")
        if port_name in switch.ports and row.get("tagging_mode") == "untagged":
            switch.ports[port_name].vlan = whole(vlan[4:])
    return switch


def _aliases(rows: dict[str, dict[str, Any]]) -> dict[str, str]:
    """Ports by their aliases, which SONiC's lldpd announces them as; not those that two have."""
    every = [str(row.get("alias") or "") for row in rows.values()]
    return {alias: name for alias, name in zip(every, rows) if alias and every.count(alias) == 1}


def _maps(switch: Switch, port: Port, tables: dict[str, Any]) -> None:
    """Flow control and the way from DSCP over traffic class to priority."""
    qos_maps = tables.get("PORT_QOS_MAP", {})
    row: dict[str, Any] = {}
    for key, each in qos_maps.items():
        if port.name in key.split(",") or (key == "global" and not row):
            row = {**each, **row} if key == "global" else {**row, **each}
    for key, value in row.items():
        if key not in _QOS_KEYS:
            switch.unread.append(Unread(f"PORT_QOS_MAP|{port.name} {key}", str(value), port.name))
    given = str(row.get("pfc_enable", ""))
    if given:
        priorities = numbers(given)
        if priorities is None:
            switch.unread.append(Unread(f"PORT_QOS_MAP|{port.name} pfc_enable", given, port.name))
        port.pfc = priorities or set()
    classes = _map(switch, port, tables, "DSCP_TO_TC_MAP", str(row.get("dscp_to_tc_map", "")))
    groups = _map(switch, port, tables, "TC_TO_PRIORITY_GROUP_MAP", str(row.get("tc_to_pg_map", "")))
    queues = _map(switch, port, tables, "TC_TO_QUEUE_MAP", str(row.get("tc_to_queue_map", "")))
    crossed = {traffic: queue for traffic, queue in queues.items() if traffic != queue}
    if crossed:  # thresholds are of queues, and wanted of priorities
        switch.unread.append(Unread(f"PORT_QOS_MAP|{port.name} tc_to_queue_map", str(crossed), port.name))
    port.dscp = {dscp: groups.get(traffic, traffic) for dscp, traffic in classes.items()}


def _map(switch: Switch, port: Port, tables: dict[str, Any], table: str, named: str) -> dict[int, int]:
    """A map by its name, which older releases write as ``[TABLE|NAME]``."""
    if not named:
        return {}
    name = named.strip("[]").rpartition("|")[2]
    rows = tables.get(table, {}).get(name)
    if not isinstance(rows, dict):
        switch.unread.append(Unread(f"PORT_QOS_MAP|{port.name}", f"{named} is not in table {table}", port.name))
        return {}
    pairs = [(whole(str(k)), whole(str(v))) for k, v in rows.items()]
    good = {k: v for k, v in pairs if k is not None and v is not None}
    if len(good) != len(rows):
        switch.unread.append(Unread(f"{table}|{name}", "an entry is no pair of numbers", port.name))
    return good


def _marking(switch: Switch, tables: dict[str, Any]) -> None:
    """The thresholds of the profile of each queue."""
    for key, row in tables.get("QUEUE", {}).items():
        ports, _bar, queues = key.rpartition("|")
        named = str(row.get("wred_profile", "")).strip("[]").rpartition("|")[2]
        if not named:
            continue
        profile = tables.get("WRED_PROFILE", {}).get(named)
        found = numbers(queues)
        for port_name in ports.split(","):
            port = switch.ports.get(port_name)
            if port is None:
                continue
            limits = _limits(profile) if isinstance(profile, dict) else None
            if limits is None or found is None:
                switch.unread.append(Unread(f"QUEUE|{key}", f"WRED profile {named}", port_name))
            elif str(profile.get("ecn")) in ("ecn_all", "ecn_green", "ecn_green_yellow", "ecn_green_red"):
                port.ecn.update(dict.fromkeys(found, limits))


def _limits(profile: dict[str, Any]) -> tuple[int, int] | None:
    low, high = (whole(str(profile.get(f"green_{end}_threshold", ""))) for end in ("min", "max"))
    return (low, high) if low is not None and high is not None else None
