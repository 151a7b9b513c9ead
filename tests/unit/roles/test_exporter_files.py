"""The files which the roles of the exporters write, as Ansible renders them for some choices of their variables."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from .decided import decided

ROOT = Path(__file__).parents[3]


def render(role: str, template: str, folder: Path, **choices: Any) -> str:
    """A role's template with its defaults, its variables and the choices."""
    source = ROOT / "roles" / role
    variables = yaml.safe_load((source / "defaults/main.yml").read_text())
    constants = source / "vars/main.yml"
    variables.update(yaml.safe_load(constants.read_text()) if constants.exists() else {})
    variables.update({"ansible_host": "10.0.0.5", "ansible_python_interpreter": sys.executable, **choices})
    (folder / "variables.json").write_text(json.dumps(variables))
    arguments = f"src={source / 'templates' / template} dest={folder / 'rendered'}"
    ansible = str(Path(sys.executable).with_name("ansible"))
    settings = {**os.environ, "ANSIBLE_COLLECTIONS_PATH": str(ROOT / "collections")}
    command = [ansible, "localhost", "-i", "localhost,", "-c", "local", "-m", "template", "-a", arguments]
    done = subprocess.run(
        [*command, "-e", f"@{folder / 'variables.json'}"],
        capture_output=True,
        text=True,
        cwd=folder,
        check=False,
        env=settings,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return (folder / "rendered").read_text()


def arguments(text: str) -> list[str]:
    """What systemd makes of the line ARGS='...' in $ARGS: shell-like words."""
    (line,) = (line for line in text.splitlines() if line.startswith("ARGS="))
    return shlex.split(line.removeprefix("ARGS='").removesuffix("'"))


def test_node_exporter_arguments(tmp_path: Path) -> None:
    words = arguments(
        render(
            "node_exporter",
            "arguments.j2",
            tmp_path,
            _node_exporter_installed={"version": "1.7.0-1"},
            node_exporter_package="prometheus-node-exporter",
            node_exporter_collectors=["netclass", "netdev", "systemd"],
            node_exporter_ignored_interfaces="^(lo|veth.*)$",
            node_exporter_units=r"^gaudi.*\.service$",
            node_exporter_extra_arguments=["--log.level=warn"],
        )
    )
    assert words == [
        "--web.listen-address=10.0.0.5:9100",
        "--web.disable-exporter-metrics",
        "--collector.disable-defaults",
        "--collector.netclass",
        "--collector.netdev",
        "--collector.systemd",
        "--collector.netdev.device-exclude=^(lo|veth.*)$",
        "--collector.netclass.ignored-devices=^(lo|veth.*)$",
        r"--collector.systemd.unit-include=^gaudi.*\.service$",
        "--log.level=warn",
    ]


def test_node_exporter_arguments_with_ethtool_tls_and_ipv6(tmp_path: Path) -> None:
    words = arguments(
        render(
            "node_exporter",
            "arguments.j2",
            tmp_path,
            _node_exporter_installed={"version": "1.7.0-1"},
            node_exporter_package="prometheus-node-exporter",
            ansible_host="fd00::5",
            node_exporter_collectors=["loadavg"],
            node_exporter_ethtool_interfaces="^ens.*",
            node_exporter_web_config={"basic_auth_users": {"prometheus": "$2b$..."}},
        )
    )
    assert words[0] == "--web.listen-address=[fd00::5]:9100"
    assert words[3:] == [
        "--collector.loadavg",
        "--collector.ethtool",
        "--collector.ethtool.device-include=^ens.*",
        "--web.config.file=/etc/prometheus/node-exporter-web.yml",
    ]


def unit(text: str) -> list[str]:
    """The lines of a unit, continued lines joined, comments and blank lines left out."""
    return [line for line in text.replace(" \\\n ", "").splitlines() if line and not line.startswith("#")]


def test_unit_of_our_exporter(tmp_path: Path) -> None:
    lines = unit(
        render("hpu_exporter", "gaudi-hpu-exporter.service.j2", tmp_path, hpu_exporter_groups=["render", "video"])
    )
    (start,) = (line for line in lines if line.startswith("ExecStart"))
    assert start == (
        "ExecStart=/usr/bin/python3 -s /usr/local/lib/gaudi-hpu-exporter/gaudi_hpu_exporter.py --address 10.0.0.5 "
        "--port 41611 --hl-smi /usr/bin/hl-smi --interval 10 --details-interval 30 --timeout 8"
    )
    wanted = {"Type=notify", "DynamicUser=yes", "CapabilityBoundingSet=", "SupplementaryGroups=render video"}
    assert {*wanted, "MemoryMax=256M"} <= set(lines)


def test_our_exporter_gets_the_groups_that_own_the_cards_devices() -> None:
    """As ansible.builtin.find tells of them and of hl-smi; root's group opens more than cards, and is never given."""

    def found(group: str, gid: int, mode: int, path: str = "/dev/accel/accel0") -> dict[str, Any]:
        return {"path": path, "gr_name": group, "gid": gid, "woth": bool(mode & 2), "wgrp": bool(mode & 0o20)}

    def groups(*files: dict[str, Any], **chosen: Any) -> Any:
        return decided("hpu_exporter", _hpu_exporter_devices={"files": list(files)}, **chosen)["groups"]

    assert groups(found("render", 992, 0o660), found("render", 992, 0o660)) == ["render"]
    assert groups(found("habana", 44, 0o660), found("root", 0, 0o660), found("video", 45, 0o666)) == ["habana"]
    assert groups(found("staff", 50, 0o775, "/usr/bin/hl-smi")) == []
    assert groups(found("render", 992, 0o660), hpu_exporter_groups=["video"]) == ["video"]
    assert groups(found("render", 992, 0o660), hpu_exporter_groups=[]) == []
    assert decided("hpu_exporter", _hpu_exporter_devices={"skipped": True})["groups"] == []


@pytest.mark.parametrize(
    ("engine", "after"), [("podman", "network-online.target"), ("docker", "network-online.target docker.service")]
)
def test_unit_of_intels_exporter(tmp_path: Path, engine: str, after: str) -> None:
    lines = unit(
        render(
            "hpu_exporter",
            "gaudi-hpu-exporter.service.j2",
            tmp_path,
            hpu_exporter_kind="intel",
            hpu_exporter_container_engine=engine,
            synapseai_release="1.22.0-740",
        )
    )
    image = "vault.habana.ai/gaudi-metric-exporter/metric-exporter:1.22.0-740"
    expected = [
        f"After={after}",
        f"ExecStartPre=-/usr/bin/{engine} rm --force gaudi-hpu-exporter",
        f"ExecStart=/usr/bin/{engine} run --rm --name gaudi-hpu-exporter --privileged --network host "
        f"--volume /dev:/dev {image} --port 41611",
        f"ExecStop=/usr/bin/{engine} stop gaudi-hpu-exporter",
    ]
    assert [line for line in lines if line.startswith(("After", "Exec"))] == expected
    assert ("Requires=docker.service" in lines) == (engine == "docker")
    assert not any(line.startswith("DynamicUser") for line in lines)


def test_the_exporter_brings_all_that_it_imports(tmp_path: Path) -> None:
    for file in decided("hpu_exporter_sources", _hpu_exporter_folder=str(tmp_path)):
        path = Path(file["path"])
        path.parent.mkdir(exist_ok=True)
        path.write_text(file["content"])
    command = [sys.executable, "-s", f"{tmp_path}/gaudi_hpu_exporter.py", "--interval=1"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={"PATH": os.environ["PATH"]})
    assert "an interval is 5 seconds or more" in done.stderr
