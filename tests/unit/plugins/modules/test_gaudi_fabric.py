"""gaudi_fabric: the files it writes, and what it refuses to write."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.gaudi3.scale.plugins.modules import gaudi_fabric

NIC = {
    "nic_mac": "02:00:00:00:00:01",
    "nic_ip": "10.120.0.1",
    "subnet_mask": "255.255.255.252",
    "gateway_mac": "06:05:04:03:02:01",
}
OTHER = {**NIC, "nic_mac": "02:00:00:00:00:02", "nic_ip": "10.120.0.5"}


@pytest.fixture
def options(tmp_path: Path) -> dict[str, Any]:
    return {
        "gaudinet_path": str(tmp_path / "etc/gaudinet.json"),
        "environment_path": str(tmp_path / "etc/fabric.env"),
        "sysfs_root": str(tmp_path / "sys"),
    }


def port(options: dict[str, Any], mac: str) -> None:
    card = Path(options["sysfs_root"]) / "bus/pci/devices/0000:19:00.0"
    folder = card / "net/ens1"
    folder.mkdir(parents=True)
    (card / "vendor").write_text("0x1da3\n")
    (card / "device").write_text("0x1060\n")
    (folder / "address").write_text(mac + "\n")
    (folder / "dev_port").write_text("8\n")


def environment(options: dict[str, Any]) -> list[str]:
    return Path(options["environment_path"]).read_text().splitlines()[1:]


def test_layer_2_has_no_gaudinet(options: Any, run_module: Any) -> None:
    path = Path(options["gaudinet_path"])
    path.parent.mkdir(parents=True)
    path.write_text("")
    result = run_module(gaudi_fabric, environment={"HCCL_SOCKET_IFNAME": "eth0"}, **options)
    assert result["files"] == [options["gaudinet_path"], options["environment_path"]]
    assert not path.exists()
    assert environment(options) == ["HCCL_SOCKET_IFNAME=eth0"]
    assert run_module(gaudi_fabric, environment={"HCCL_SOCKET_IFNAME": "eth0"}, **options)["changed"] is False


HAND_WRITTEN = json.dumps({"NIC_NET_CONFIG": [{key.upper(): value for key, value in NIC.items()}]})


@pytest.fixture
def foreign(options: dict[str, Any]) -> Path:
    """A gaudinet.json that a site wrote itself."""
    path = Path(options["gaudinet_path"])
    path.parent.mkdir(parents=True)
    path.write_text(HAND_WRITTEN)
    return path


def test_addresses_that_somebody_else_wrote_are_not_removed(options: Any, run_module: Any, foreign: Path) -> None:
    result = run_module(gaudi_fabric, **options)
    assert result["failed"] is True
    assert result["msg"] == (
        f"{foreign} holds port addresses that this module did not write, and mode=l2 would remove them: keep them with "
        "mode=unmanaged, give them as nics with mode=l3, or move the file away."
    )
    assert foreign.read_text() == HAND_WRITTEN
    assert not Path(options["environment_path"]).exists()
    for kind in ("efa", "host_nic", "none"):
        assert "failed" not in run_module(gaudi_fabric, kind=kind, **options)
        assert foreign.read_text() == HAND_WRITTEN


def test_unmanaged_leaves_the_file_and_tells_the_library_where_it_is(
    options: Any, run_module: Any, foreign: Path
) -> None:
    assert run_module(gaudi_fabric, mode="unmanaged", **options)["files"] == [options["environment_path"]]
    assert foreign.read_text() == HAND_WRITTEN
    assert environment(options) == [f"HCL_GAUDINET_CONFIG_FILE={foreign}"]
    assert run_module(gaudi_fabric, mode="unmanaged", **options)["changed"] is False


def test_layer_3_keeps_what_somebody_else_wrote_beside_it(options: Any, run_module: Any, foreign: Path) -> None:
    result = run_module(gaudi_fabric, mode="l3", nics=[OTHER], **options)
    assert Path(result["backup"]).read_text() == HAND_WRITTEN
    assert OTHER["nic_ip"] in foreign.read_text()
    again = run_module(gaudi_fabric, mode="l3", nics=[NIC], **options)
    assert again["changed"] is True and "backup" not in again
    foreign.write_text(HAND_WRITTEN)
    assert run_module(gaudi_fabric, mode="l2", **options)["failed"] is True


def test_layer_3_writes_all_four_keys(options: Any, run_module: Any) -> None:
    result = run_module(gaudi_fabric, mode="l3", nics=[OTHER, NIC], **options)
    assert result["changed"] is True
    assert json.loads(Path(options["gaudinet_path"]).read_text()) == {
        "NIC_NET_CONFIG": [
            {
                "NIC_MAC": "02:00:00:00:00:01",
                "NIC_IP": "10.120.0.1",
                "SUBNET_MASK": "255.255.255.252",
                "GATEWAY_MAC": "06:05:04:03:02:01",
            },
            {
                "NIC_MAC": "02:00:00:00:00:02",
                "NIC_IP": "10.120.0.5",
                "SUBNET_MASK": "255.255.255.252",
                "GATEWAY_MAC": "06:05:04:03:02:01",
            },
        ]
    }
    assert environment(options) == [f"HCL_GAUDINET_CONFIG_FILE={options['gaudinet_path']}"]
    assert run_module(gaudi_fabric, mode="l3", nics=[NIC, OTHER], **options)["changed"] is False
    assert run_module(gaudi_fabric, mode="l2", **options)["changed"] is True
    assert not Path(options["gaudinet_path"]).exists()


def test_check_mode_writes_nothing_and_shows_the_files(options: Any, run_module: Any) -> None:
    result = run_module(gaudi_fabric, check=True, diff=True, mode="l3", nics=[NIC], **options)
    assert result["changed"] is True
    assert [difference["after_header"] for difference in result["diff"]] == result["files"]
    assert '"NIC_IP": "10.120.0.1"' in result["diff"][0]["after"]
    assert not Path(options["gaudinet_path"]).parent.exists()


@pytest.mark.parametrize(
    ("nics", "message"),
    [
        (
            [],
            "layer 3 needs the address of every external port and none was given: list them as nic_mac, nic_ip, "
            "subnet_mask, gateway_mac, or use layer 2.",
        ),
        (
            [NIC, {**OTHER, "gateway_mac": None}],
            "entry 2 of the port addresses has no gateway_mac: each entry needs nic_mac, nic_ip, "
            "subnet_mask, gateway_mac.",
        ),
        (
            [{**NIC, "nic_mac": "02-00-00-00-00-01"}],
            "entry 1 of the port addresses has nic_mac '02-00-00-00-00-01': write six pairs of hex digits, such as "
            "02:00:00:00:00:01.",
        ),
        (
            [{**NIC, "nic_ip": "10.120.0.300"}],
            "entry 1 of the port addresses has address '10.120.0.300' with mask '255.255.255.252': write both as IPv4, "
            "such as 10.120.0.1 and 255.255.255.252.",
        ),
        (
            [{**NIC, "nic_ip": "10.120.0.3"}],
            "entry 1 of the port addresses has address 10.120.0.3, which is no host's in 10.120.0.0/30: use one "
            "between its ends.",
        ),
        (
            [NIC, {**OTHER, "nic_ip": "10.120.0.1"}],
            "entry 2 of the port addresses repeats nic_ip 10.120.0.1: every port has its own.",
        ),
    ],
)
def test_wrong_addresses_change_nothing(options: Any, run_module: Any, nics: Any, message: str) -> None:
    result = run_module(gaudi_fabric, mode="l3", nics=nics, **options)
    assert result["failed"] is True
    assert result["msg"] == message
    assert not Path(options["environment_path"]).exists()
    assert not Path(options["gaudinet_path"]).exists()


def test_an_address_of_another_host_is_refused(options: Any, run_module: Any) -> None:
    port(options, "02:00:00:00:00:02")
    result = run_module(gaudi_fabric, mode="l3", nics=[NIC], **options)
    assert result["msg"] == (
        "entry 1 of the port addresses has nic_mac 02:00:00:00:00:01, which no external port of this host has."
    )
    assert run_module(gaudi_fabric, mode="l3", nics=[OTHER], **options)["changed"] is True


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        (
            "HCCL_SOCKET_IFNAM",
            "is not one that HCCL or its network libraries read: the nearest is HCCL_SOCKET_IFNAME",
        ),
        ("HCL_COMM_ID", "is the old name of HCCL_COMM_ID: use that"),
        ("HCCL_OVER_TCP", "is from old releases and does nothing now: leave it out, or see HCCL_OVER_OFI"),
        ("NCCL_SOCKET_IFNAME", "does nothing for HCCL, Gaudi's collective library: leave it out"),
        ("MTU_SIZE", "is private to HCL, which ignores it outside of experiments: leave it out"),
    ],
)
def test_names_that_do_nothing_are_refused(options: Any, run_module: Any, name: str, complaint: str) -> None:
    result = run_module(gaudi_fabric, environment={name: "1"}, **options)
    assert result["failed"] is True
    assert result["msg"] == f"environment variable {name} {complaint}."
    assert not Path(options["environment_path"]).exists()


@pytest.mark.parametrize("value", ["a\nb", 'a"b', "a$b", "a`b", "a\\b"])
def test_values_that_need_quoting_are_refused(options: Any, run_module: Any, value: str) -> None:
    result = run_module(gaudi_fabric, environment={"BOX_TYPE": value}, **options)
    assert result["msg"] == (
        f"environment variable BOX_TYPE cannot be {value!r}: write one line without quotes, $ and backslash."
    )


def test_values_are_written_as_the_library_reads_them(options: Any, run_module: Any) -> None:
    given = {"HCCL_OVER_OFI": True, "LOOPBACK_DISABLED_NICS": "8,22,23", "HCL_DEBUG_STATS_FILE": "/tmp/a b"}
    run_module(gaudi_fabric, environment=given, **options)
    assert environment(options) == [
        "HCCL_OVER_OFI=1",
        'HCL_DEBUG_STATS_FILE="/tmp/a b"',
        "LOOPBACK_DISABLED_NICS=8,22,23",
    ]


@pytest.mark.parametrize(
    ("kind", "lines"),
    [
        ("gaudi", []),
        ("none", []),
        ("efa", ["FI_EFA_USE_DEVICE_RDMA=1", "RDMAV_FORK_SAFE=1"]),
        ("host_nic", ["MLX5_SCATTER_TO_CQE=0", "RDMAV_FORK_SAFE=1"]),
        ("host_tcp", ["HCCL_OVER_OFI=1"]),
    ],
)
def test_each_kind_adds_what_is_documented_for_it(options: Any, run_module: Any, kind: str, lines: list[str]) -> None:
    run_module(gaudi_fabric, kind=kind, **options)
    assert environment(options) == lines


def test_efa_settings_do_nothing_for_cards_with_their_own_ports(options: Any, run_module: Any) -> None:
    result = run_module(gaudi_fabric, environment={"FI_EFA_USE_DEVICE_RDMA": "1"}, **options)
    assert result["without_effect"] == ["FI_EFA_USE_DEVICE_RDMA"]
    [warning] = result["warnings"]
    text = warning if isinstance(warning, str) else str(warning)
    assert "FI_EFA_USE_DEVICE_RDMA only acts on scale-out over host NICs; this host's fabric is 'gaudi'." in text
    assert run_module(gaudi_fabric, kind="efa", **options)["without_effect"] == []
