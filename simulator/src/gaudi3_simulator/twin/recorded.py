"""A doctor's report as files and tools that the health engine reads, as if it still were on the node."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from ..node import board
from . import product
from .inverse import Verdict, verdicts_of
from .reports import DOCTOR, Report
from .values import dicts, is_address, mapping

_PCI = "sys/bus/pci/devices"
_HEX = re.compile(r"0x[0-9a-f]{1,8}", re.I)
_SCRUBBED_MAC = "02:00:00:00:00:{:02x}"


def verdicts(report: Report, folder: Path, kind: str) -> list[Verdict] | None:
    """The verdicts of the report: those that a bundle has, or those of the engine by a doctor's report.

    ``folder`` is empty and takes the node's files; ``kind`` is the board. None where a bundle has no health.json.
    """
    if report.kind != DOCTOR:
        try:
            answer = json.loads(report.texts["health.json"])
        except (KeyError, ValueError, RecursionError):
            return None
        return verdicts_of(answer)
    _lay_out(report, folder)
    collect, command = product.part("_health.collect"), product.part("_hl_smi.command")
    engine = product.part("_health.engine")
    answers = _Answers(report, kind)
    sources = collect.Sources(
        answers, command.HlSmi("hl-smi", answers), _kernel(report), str(folder), ports_script="manage_network_ifs.sh"
    )
    reading = collect.collect(sources, 0.0, "standard")
    return verdicts_of(engine.evaluate([reading], confirm=1).as_dict())


def _kernel(report: Report) -> str:
    said = str(report.section("modules").get("kernel") or "none")
    return re.sub(r"[^\w.+-]", "_", said)[:100]


class _Answers:
    """Answers the engine's questions to tools from the texts of the report."""

    def __init__(self, report: Report, kind: str) -> None:
        self._report = report
        self._board = board.BOARDS[kind]
        self._tools = report.section("tools")

    def __call__(self, command: list[str]) -> tuple[int, str, str]:
        tool, arguments = command[0], command[1:]
        if tool == "dmesg":
            log = self._report.section("kernel_log")
            lines = [line for part in ("first", "last") for line in (log.get(part) or [])] if _is_log(log) else []
            return 0, "\n".join(map(str, lines)) + "\n", ""
        if tool == "modinfo":
            match = re.search(r"^version:\s*(\S+)", _modinfo(self._report), re.M)
            return (0, match[1] + "\n", "") if match else (1, "", "modinfo: the report has no version")
        if tool == "manage_network_ifs.sh":
            return self._said(self._report.section("ports_script").get(arguments[0]), tool)
        if tool == "hl-smi":
            return self._hl_smi(arguments)
        raise FileNotFoundError(2, f"No such file: {tool}")

    def _hl_smi(self, arguments: list[str]) -> tuple[int, str, str]:
        whole = self._said(self._tools.get("table"), "hl-smi")
        if not arguments or whole[0] != 0:
            return whole
        if arguments[0] == "-L":
            return self._said(self._tools.get("log"), "hl-smi")
        if arguments[0] == "-Q":
            return self._query(arguments[1].split(","))
        view, address = arguments[1], arguments[3].lower()
        ports = self._tools.get("ports")
        card = ports.get(address) if isinstance(ports, dict) else None
        if view == "ports" or not isinstance(card, dict):
            return 0, self._healthy(view), ""
        return self._said(card.get(view), "hl-smi") if card.get(view) else (0, self._healthy(view), "")

    def _query(self, fields: list[str]) -> tuple[int, str, str]:
        code, output, error = self._said(self._tools.get("csv_without_units"), "hl-smi")
        lines = [line for line in output.splitlines() if line.strip()]
        if code != 0 or not lines:
            return code, output, error
        head = [cell.strip().partition(" [")[0] for cell in lines[0].split(",")]
        if "bus_id" not in head:
            return code, output, error
        rows = [dict(zip(head, (cell.strip() for cell in line.split(",")), strict=False)) for line in lines[1:]]
        return 0, "".join(", ".join(row.get(name, "N/A") for name in fields) + "\n" for row in rows), ""

    def _healthy(self, view: str) -> str:
        """What the report does not have: the ports of the board, all of them up and without an error."""
        outside = self._board.external_ports
        kinds = ["external" if port in outside else "internal" for port in range(board.PORTS)]
        lines = {
            "ports": [f"port {port}: {kind}" for port, kind in enumerate(kinds)],
            "link": [f"port {port}:\tUP" for port in range(board.PORTS)],
            "stats": [f"port {port}:\n\tpcs_link_restores: 0" for port in range(board.PORTS)],
        }
        return "\n".join(lines.get(view, [])) + "\n"

    @staticmethod
    def _said(said: Any, tool: str) -> tuple[int, str, str]:
        """How a program ended in the report; one that never answered raises as the engine's own runner does."""
        if not isinstance(said, dict):
            raise FileNotFoundError(2, f"the report has nothing of {tool}")
        output, errors = str(said.get("output") or ""), str(said.get("errors") or "")
        if not isinstance(said.get("exit_code"), int):
            raise product.part("_hl_smi.command").HlSmiHung(f"{tool} {errors or 'gave no answer'}")
        return said["exit_code"], output, errors


def _is_log(log: dict[str, Any]) -> bool:
    return all(isinstance(log.get(part) or [], list) for part in ("first", "last"))


def _modinfo(report: Report) -> str:
    for each in dicts(report.section("modules").get("files")):
        if re.search(r"/habanalabs\.ko", str(each.get("path"))):
            return str(each.get("modinfo"))
    return ""


def _lay_out(report: Report, folder: Path) -> None:
    """The files that the engine reads, by what the report has of each."""

    def write(path: str, text: Any) -> None:
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        # JSON has a byte that is no text as half of a character.
        target.write_text(f"{text}\n", encoding="utf-8", errors="surrogateescape")

    for number, card in enumerate(dicts(report.section("cards").get("cards"))):
        address = str(card.get("address")).lower()
        if not is_address(address):
            continue
        for name, value in (("vendor", "0x1da3"), ("device", card.get("device")), ("numa_node", card.get("numa_node"))):
            write(f"{_PCI}/{address}/{name}", value or "")
        if card.get("iommu_type") not in (None, "none"):
            write(f"{_PCI}/{address}/iommu_group/type", card["iommu_type"])
        for place, net in enumerate(dicts([*mapping(card.get("net")).values()])):
            for name in ("dev_port", "operstate", "flags", "mtu"):
                if net.get(name) is not None and (name != "flags" or _HEX.fullmatch(str(net[name]))):
                    write(f"{_PCI}/{address}/net/port{number}_{place}/{name}", net[name])
            write(f"{_PCI}/{address}/net/port{number}_{place}/address", _SCRUBBED_MAC.format(number * 24 + place))
    modules = report.section("modules")
    for name, values in mapping(modules.get("loaded")).items():
        if re.fullmatch(r"[\w-]{1,60}", name):
            write(f"sys/module/{name}/version", mapping(values).get("version", ""))
    (folder / "lib/modules" / _kernel(report)).mkdir(parents=True, exist_ok=True)
    for each in dicts(modules.get("files")):
        name = Path(str(each.get("path"))).name[:100]
        if re.fullmatch(r"habanalabs\w*\.ko(\.\w+)?", name):
            target = folder / "lib/modules" / _kernel(report) / "updates" / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text("module\n" if each.get("bytes") else "")
    for path in mapping(report.section("device_files").get("files")):
        if re.fullmatch(r"/dev/infiniband/uverbs\d{1,3}", path):
            write(path.lstrip("/"), "")
    governor = report.section("machine").get("governor")
    if isinstance(governor, str):
        write("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", governor)
    _gaudinet(report.section("cards").get("addresses_file"), folder)


def _gaudinet(said: Any, folder: Path) -> None:
    """A file of ports' addresses that is as right or wrong as the node's: the addresses themselves are scrubbed."""
    if not isinstance(said, dict):
        return
    target = folder / "etc/habanalabs/gaudinet.json"
    target.parent.mkdir(parents=True, exist_ok=True)
    entries = [{"NIC_MAC": "06:ff:ff:ff:ff:ff"}] if said.get("strange") else []
    whole = {"NIC_NET_CONFIG": entries} if said.get("readable") else {}
    target.write_text("" if said.get("empty") else json.dumps(whole))
