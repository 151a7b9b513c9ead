"""Reports of simulated nodes: a doctor's and a support bundle, made in this process by the product's own code."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from health_machine import Node, nodes
from simulated_machine import TOOLS

from ansible_collections.gaudi3.scale.plugins.module_utils._health import bundle, engine
from ansible_collections.gaudi3.scale.plugins.module_utils._hl_smi.command import HlSmiHung
from gaudi3_doctor import report as doctor
from gaudi3_doctor.host import Host, Options, Outcome, User
from gaudi3_doctor.sections import SECTIONS

__all__ = ["nodes"]

_SECTIONS = (
    "machine",
    "packages",
    "modules",
    "kernel_log",
    "device_files",
    "cards",
    "firmware",
    "tools",
    "ports_script",
)


class _Host(Host):
    """The folder of a simulated node, whose tools run in this process."""

    def __init__(self, node: Node) -> None:
        super().__init__(str(node.machine.root), "/nowhere")
        self._node = node

    def program(self, *candidates: str) -> str | None:
        names = [name.rpartition("/")[2] for name in candidates]
        return next((name for name in names if name in TOOLS), None)

    def run(
        self,
        argv: Sequence[str],
        seconds: float = 30.0,
        user: User | None = None,
        environment: Mapping[str, str] | None = None,
        folder: str = "/",
        grace: float = 0.0,
    ) -> Outcome:
        command = [argv[0], *(word.removeprefix(self.root) for word in argv[1:])]
        try:
            return Outcome(*self._node._run(command), 0.0)
        except HlSmiHung:
            return Outcome(None, "", f"gave no answer in {seconds:g} s", seconds)
        except (OSError, SystemExit) as error:
            return Outcome(None, "", f"cannot be started: {error}", 0.0)


def doctors(node: Node, patch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the doctor says of the node, by the sections that a twin is made of."""
    patch.setattr(doctor, "SECTIONS", tuple(each for each in SECTIONS if each.key in _SECTIONS))
    patch.setattr("gaudi3_doctor.tools._SCRIPTS", ("manage_network_ifs.sh",))
    for name in ("_timings", "_as_users"):  # no part of a twin
        patch.setattr(f"gaudi3_doctor.tools.{name}", lambda *_given: {})
    found: dict[str, Any] = json.loads(doctor.dumped(doctor.examine(Options(quick=True), _Host(node))))
    return found


def bundled(node: Node, answer: dict[str, Any]) -> bytes:
    """The archive for support, with the health engine's answer."""

    def run(command: list[str]) -> tuple[int, str, str]:
        if command == ["lspci", "-vvv"]:
            folder = node.machine.path("/sys/bus/pci/devices")
            cards = [(path.name, (path / "device").read_text().strip()[2:]) for path in sorted(folder.iterdir())]
            return (
                0,
                "".join(
                    f"{name} Processing accelerators: Habana Labs Ltd. Device {device}\n" for name, device in cards
                ),
                "",
            )
        return node._run(command)

    parts = bundle.parts(run, "hl-smi", str(node.machine.root), "manage_network_ifs.sh")
    return bundle.archive(parts, {"health.json": json.dumps(answer)}, node.machine.now)


def answer(readings: list[Any], confirm: int = engine.CONFIRM) -> dict[str, Any]:
    """What the health engine says after the readings."""
    return engine.evaluate(readings, expected_cards=8, confirm=confirm).as_dict()
