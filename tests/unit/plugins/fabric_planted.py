"""One disagreement with a configuration, written into it as its author would have made the mistake."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

#: An edit of a configuration's text for one port.
Edit = Callable[[str, str, Mapping[str, Any]], str]


def nested(text: str) -> str:
    """SONiC's database as its file: a dump has ``TABLE|KEY`` on one floor."""
    found = json.loads(text)
    if not any("|" in key for key in found):
        return text
    tables: dict[str, dict[str, Any]] = {}
    for key, row in found.items():
        table, _bar, rest = key.partition("|")
        tables.setdefault(table, {})[rest] = row
    return json.dumps(tables)


def _block(text: str, port: str, edit: Callable[[str], str]) -> str:
    """The text with another block of this port."""
    found = re.search(rf"(?m)^interface {re.escape(port)}\n(?:[ \t!].*\n?)*", text)
    assert found, port
    return text[: found.start()] + edit(found[0]) + text[found.end() :]


def _added(*lines: str) -> Callable[[str, str], str]:
    return lambda text, port: _block(text, port, lambda block: block.rstrip("\n") + "\n" + "\n".join(lines) + "\n")


def _replaced(pattern: str, new: Callable[[int], int]) -> Callable[[str, str], str]:
    def edit(block: str) -> str:
        changed, count = re.subn(rf"(?m)^(\s+{pattern} )(\d+)$", lambda found: f"{found[1]}{new(int(found[2]))}", block)
        assert count == 1, pattern
        return changed

    return lambda text, port: _block(text, port, edit)


PAUSED_NXOS = """
policy-map type network-qos PLANTED
  class type network-qos c-8q-nq3
    pause pfc-cos 3
system qos
  service-policy type network-qos PLANTED
"""


def _paused_nxos(text: str, port: str) -> str:
    return _added("  priority-flow-control mode on")(text, port).rstrip("\n") + PAUSED_NXOS


def _table(edit: Callable[[dict[str, Any], str], None]) -> Callable[[str, str], str]:
    def change(text: str, port: str) -> str:
        tables = json.loads(text)
        edit(tables, port)
        return json.dumps(tables)

    return change


def _smaller(tables: dict[str, Any], port: str) -> None:
    tables["PORT"][port]["mtu"] = str(int(tables["PORT"][port]["mtu"]) - 1)


def _moved(tables: dict[str, Any], port: str) -> None:
    members = tables["VLAN_MEMBER"]
    (old,) = [key for key in members if key.endswith(f"|{port}")]
    members[f"Vlan{int(old.split('|')[0][4:]) + 1}|{port}"] = members.pop(old)


def _mapped(tables: dict[str, Any], port: str, **more: str) -> None:
    tables.setdefault("PORT_QOS_MAP", {}).setdefault(port, {}).update(more)


def _marked(tables: dict[str, Any], port: str) -> None:
    named = tables["QUEUE"][f"{port}|3"]["wred_profile"]
    tables["WRED_PROFILE"][named]["green_min_threshold"] = "1"


def _classed(tables: dict[str, Any], port: str) -> None:
    tables["DSCP_TO_TC_MAP"][tables["PORT_QOS_MAP"][port]["dscp_to_tc_map"]]["3"] = "0"


_LINES = {
    "mtu": _replaced("mtu", lambda size: size - 1),
    "vlan": _replaced("switchport access vlan", lambda vlan: vlan + 1),
    "unread": _added("   qos cos 5"),
}
#: By language and rule, the edit that has to make the linter speak.
EDITS: dict[str, dict[str, Callable[[str, str], str]]] = {
    "eos": {**_LINES, "pfc": _added("   priority-flow-control on", "   priority-flow-control priority 3 no-drop")},
    "nxos": {**_LINES, "unread": _added("  qos cos 5"), "pfc": _paused_nxos},
    "sonic": {
        "mtu": _table(_smaller),
        "vlan": _table(_moved),
        "pfc": _table(lambda tables, port: _mapped(tables, port, pfc_enable="5")),
        "dscp": _table(_classed),
        "ecn": _table(_marked),
        "unread": _table(lambda tables, port: _mapped(tables, port, planted_map="X")),
    },
}
