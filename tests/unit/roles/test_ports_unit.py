"""The unit that brings driver and external ports up at each boot: its commands, run on a made-up node."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest

from ..playbooks.jinja import evaluate, load, render

SCRIPT = "/opt/habanalabs/qual/gaudi3/bin/manage_network_ifs.sh"


def unit(**choices: Any) -> list[str]:
    """The unit's lines; continued ones joined."""
    variables = {
        **load("roles/synapseai/defaults/main.yml"),
        **load("roles/synapseai/vars/main.yml"),
        "ansible_managed": "Ansible managed",
        "ansible_facts": {"gaudi_pci": {"generation": "gaudi3"}},
        **choices,
    }
    text = render("roles/synapseai/templates/gaudi3-scale-ports.service.j2", **variables)
    return text.replace(" \\\n ", "").splitlines()


def started(lines: list[str]) -> str:
    (line,) = (line for line in lines if line.startswith("ExecStart="))
    return line.removeprefix("ExecStart=")


@pytest.fixture
def node(tmp_path: Path) -> Path:
    """A node with a card and a network adapter, on which the script logs its calls."""
    for name, vendor in (("0000:19:00.0", "0x1da3"), ("0000:01:00.0", "0x8086")):
        (tmp_path / "sys/bus/pci/devices" / name).mkdir(parents=True)
        (tmp_path / "sys/bus/pci/devices" / name / "vendor").write_text(f"{vendor}\n")
    (tmp_path / "sys/bus/pci/devices/0000:01:00.0/net/eth0").mkdir(parents=True)
    (tmp_path / "script").write_text(f'#!/bin/sh\necho "$*" >> {tmp_path}/calls\nexit 1\n')
    (tmp_path / "script").chmod(0o755)
    return tmp_path


def start(node: Path) -> tuple[int, str]:
    """What systemd would run, on the made-up node."""
    words = shlex.split(started(unit()))
    assert words[:2] == ["/bin/sh", "-c"]
    text = words[2].replace("$$", "$").replace("/sys/", f"{node}/sys/").replace(SCRIPT, f"{node}/script")
    done = subprocess.run(["sh", "-c", text.replace("seq 30", "seq 2")], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def test_ports_of_cards_are_brought_up_and_the_scripts_word_counts(node: Path) -> None:
    (node / "sys/bus/pci/devices/0000:19:00.0/net/ens1").mkdir(parents=True)
    assert start(node)[0] == 1
    assert (node / "calls").read_text() == "--up\n"


def test_without_port_devices_the_unit_succeeds(node: Path) -> None:
    code, said = start(node)
    assert (code, (node / "calls").exists()) == (0, False)
    assert said == "No Gaudi card has a network device: no external port to bring up.\n"


def test_ports_can_be_left_alone() -> None:
    lines = unit(synapseai_ports_up=False)
    assert started(lines) == "/bin/true"
    assert "ExecStartPre=modprobe habanalabs" in lines
    assert not any(SCRIPT in line for line in lines)


@pytest.mark.parametrize(("generation", "folder"), [("gaudi3", "gaudi3"), ("gaudi2", "gaudi2"), (None, "gaudi3")])
def test_the_script_is_that_of_the_cards_generation(generation: str | None, folder: str) -> None:
    script = f"/opt/habanalabs/qual/{folder}/bin/manage_network_ifs.sh"
    lines = unit(ansible_facts={"gaudi_pci": {"generation": generation}})
    assert f"{script} --up" in started(lines) and f"ConditionPathExists={script}" in lines
    fabric = load("roles/fabric/defaults/main.yml")["fabric_ports_script"]
    assert evaluate(fabric, ansible_facts={"gaudi_fabric": {"generation": generation}}) == script
