"""The health engine compares the firewall's table with the record of what was loaded."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._health.collect import Sources, collect
from ansible_collections.gaudi3.scale.plugins.module_utils._host import firewall_table


def listed(*objects: object, version: str = "1.0.6") -> str:
    return json.dumps({"nftables": [{"metainfo": {"version": version}}, *objects]})


SET = {"set": {"name": "cluster_v4", "elem": ["10.0.0.1"]}}
RULE = {"rule": {"chain": "input", "expr": [{"counter": {"packets": 7, "bytes": 9}}, {"drop": None}]}}
OPENED = {"set": {"name": "cluster_v4", "elem": ["0.0.0.0/0"]}}


def read(root: Path, answer: tuple[int, str, str] | None, record: bool = True) -> tuple[str | None, list[str]]:
    """What a reading says of the firewall, and its faults."""
    listing = firewall_table.parse(listed(SET, RULE))
    assert listing
    path = root / firewall_table.RECORD.lstrip("/")
    if record:
        path.parent.mkdir(parents=True)
        path.write_text(firewall_table.record_text(firewall_table.Record("/usr/sbin/nft", "digest", listing)))

    def run(command: list[str]) -> tuple[int, str, str]:
        if command[0] != "/usr/sbin/nft" or answer is None:
            raise FileNotFoundError(f"No such file: {command[0]}")
        assert command[1:] == ["-j", "list", "table", "inet", "gaudi3_scale"]
        return answer

    found = collect(Sources(run, None, "none", str(root)), 0.0)
    return found.host.firewall, [each.reason for each in found.faults if each.source == "nft"]


@pytest.mark.parametrize(
    ("answer", "said", "faults"),
    [
        ((0, listed(SET, RULE), ""), None, []),
        ((0, listed(OPENED, RULE), ""), "the firewall's table is not as it was loaded (set cluster_v4)", []),
        ((0, listed(SET), ""), "the firewall's table is not as it was loaded (rules of chain input)", []),
        ((0, listed(OPENED, version="1.1.0"), ""), None, []),
        ((1, "", "Error: No such file or directory\nlist"), "the firewall's table gaudi3_scale is not loaded", []),
        ((1, "", "Operation not permitted"), None, ["exit code 1: Operation not permitted"]),
        (None, None, ["No such file: /usr/sbin/nft"]),
    ],
)
def test_a_table_is_compared_with_its_record(
    tmp_path: Path, answer: tuple[int, str, str] | None, said: str | None, faults: list[str]
) -> None:
    assert read(tmp_path, answer) == (said, faults)


def test_without_a_record_nothing_is_asked(tmp_path: Path) -> None:
    assert read(tmp_path, None, record=False) == (None, [])
