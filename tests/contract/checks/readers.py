"""Readers of hl-smi of other projects, run on a simulated node: `readers.py NAME`.

A reader in Python or shell runs as it is, the whole module or, where the module needs more than a node has, the lines
of its source that read hl-smi. Of a compiled one (Go, Rust) the command line is taken from its source, and its reading
rule is applied here.
"""

from __future__ import annotations

import ast
import csv
import importlib.util
import io
import os
import re
import subprocess
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

REPOSITORY = Path(os.environ["CONTRACT_REPOSITORY"])
CARDS = 8
DRIVER = "1.23.0"


def text(path: str) -> str:
    """A source file."""
    return (REPOSITORY / path).read_text()


def module(path: str, name: str) -> Any:
    """A module by its file."""
    spec = importlib.util.spec_from_file_location(name, REPOSITORY / path)
    assert spec and spec.loader
    made = importlib.util.module_from_spec(spec)
    sys.modules[name] = made
    spec.loader.exec_module(made)
    return made


def functions(path: str, *names: str) -> dict[str, Any]:
    """Functions and classes out of a module that cannot be imported whole, with its plain imports."""
    tree = ast.parse(text(path))
    kept: list[ast.stmt] = []
    for node in tree.body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            words = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]
            if all(word.partition(".")[0] in {*sys.stdlib_module_names, "packaging", "regex"} for word in words):
                kept.append(node)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name in names:
            kept.append(node)
    space: dict[str, Any] = {"__name__": "reader"}
    sys.modules["reader"] = types.ModuleType("reader")  # dataclasses look their module up
    exec(compile(ast.Module(kept, []), path, "exec"), space)
    return space


def output(command: str) -> str:
    """What a command line of the source prints."""
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"`{command}` exits {done.returncode}: {(done.stderr or done.stdout).strip()[:200]}"
    return done.stdout


def named(path: str, command: str) -> str:
    """The command, which the source has to have."""
    assert command in text(path), f"{path} has no `{command}` any more"
    return command


def hccl_demo() -> None:
    """hccl_demo's script: a table of eight modules with their bus and NUMA node."""
    script = REPOSITORY / "common_list_affinity_topology.sh"
    environment = {**os.environ, "NUMA_MAPPING_DIR": str(Path.cwd() / "numa")}
    done = subprocess.run(["bash", str(script)], capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stdout[-300:] + done.stderr[-300:]
    lines = Path("numa/.habana_module_topo").read_text().splitlines()[2:]
    assert [line.split()[0] for line in lines if line.split()] == [str(number) for number in range(CARDS)], lines


def omnia() -> None:
    """Dell Omnia's collector: temperature, load, driver and power of each card."""
    folder = "prepare_oim/roles/omnia_telemetry_oim/files"
    sys.path.insert(0, str(REPOSITORY / folder))
    import utility

    utility.dict_telemetry_ini["metric_collection_timeout"] = "20"
    collector = module(f"{folder}/data_collector_gaudi.py", "data_collector_gaudi")
    frame = collector.get_gaudi_metrics_output()
    assert frame is not None, "the query gives no output"
    for read in (collector.get_gaudi_temp, collector.get_gaudi_utilization, collector.get_gpu_health_driver,
                 collector.get_gpu_health_pcie, collector.get_gpu_health_thermal):  # fmt: skip
        values = read(frame)
        assert values is not None and len(values) == CARDS, f"{read.__name__}: {values}"
    # The power limit: the collector hands its command over as a list, which its own run_command() cannot start, on a
    # Gaudi neither. So the command is made here, and read by its rule: the first "Power Limit" of the log.
    named(f"{folder}/data_collector_gaudi.py", '["hl-smi", "-q", "-d", "POWER", "-i", pci]')
    for bus, draw in zip(frame["bus_id"], frame["power.draw [W]"], strict=True):
        log = output(f"hl-smi -q -d POWER -i {bus.strip()}")
        limit = log.partition("Power Limit")[2].partition(": ")[2].partition(" W")[0]
        assert 0 < float(draw) <= float(limit), f"{bus}: draw {draw}, limit {limit!r}"


def milabench() -> None:
    """milabench's warden finds the process that holds a card, and only that."""
    space = functions("benchmate/benchmate/warden.py", "ProcessInfo", "_hpu_parse_processes")
    assert space["_hpu_parse_processes"]() == [], space["_hpu_parse_processes"]()
    hold = "import torch, sys; x = torch.ones(1 << 28, device='hpu'); print('held', flush=True); sys.stdin.read()"
    holder = subprocess.Popen([sys.executable, "-c", hold], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert holder.stdout and "held" in holder.stdout.readline()
    found = space["_hpu_parse_processes"]()
    holder.communicate("")
    assert [int(info.pid) for info in found] == [holder.pid], f"held by {holder.pid}: {found}"
    assert int(found[0].memory) >= 1024, found


def tgi() -> None:
    """text-generation-inference: the third line of the table, with no PATH in the environment."""
    version = module("backends/gaudi/server/text_generation_server/utils/version.py", "version")
    assert str(version.get_driver_version()) == DRIVER, version.get_driver_version()
    assert version.is_driver_compatible()


def vllm_fork() -> None:
    """vllm-fork: collect_env and setup.py."""
    found = functions("vllm/collect_env.py", "get_hpu_info")["get_hpu_info"]()
    assert found[0] == f"{CARDS}x HL-325L", found
    assert found[1].startswith(DRIVER), found
    setup = functions("setup.py", "get_gaudi_sw_version")
    assert setup["get_gaudi_sw_version"]() == DRIVER


def vllm_gaudi() -> None:
    """vllm-gaudi's CI: the list of cards."""
    path = "tests/full_tests/ci_e2e_discoverable_tests.sh"
    command = named(path, "hl-smi -Q index -f csv,noheader | tr -d ' ' | paste -sd, -")
    assert sorted(output(command).strip().split(",")) == [str(number) for number in range(CARDS)]


def opea() -> None:
    """OPEA's firmware-update.sh: its assignments from hl-smi."""
    source = text("core/scripts/firmware-update.sh")
    lines = [line.strip() for line in source.splitlines() if re.match(r"\s*[A-Z_]+=\$\(hl-smi", line)]
    assert len(lines) >= 5, lines
    seen = {}
    for line in lines:
        name = line.partition("=")[0]
        seen[name] = output(f'{line}\necho "${name}"').strip()
    assert seen["INSTALLED_DRIVER_VERSION"] == DRIVER, seen
    assert seen["NIC_VERSION"].startswith(DRIVER), seen
    assert "hl-gaudi3-" in seen["FIRMWARE_VERSION"], seen


def perfspect() -> None:
    """PerfSpect (Go): four commands, each of which has to succeed; cards from the csv."""
    path = "internal/script/scripts.go"
    rows = list(
        csv.DictReader(io.StringIO(output(named(path, "hl-smi -Q module_id,serial,bus_id,driver_version -f csv"))))
    )
    assert len(rows) == CARDS and all(len(row) == 4 for row in rows), rows
    assert "preboot" in output(named(path, "hl-smi --fw-version"))
    numa = output(named(path, "hl-smi topo -N"))
    assert len(re.findall(r"^\s*\d+\s+\S+", numa, re.MULTILINE)) == CARDS, numa
    assert "1060" in output("grep PCI_ID /sys/bus/pci/devices/*/uevent | grep -i 1da3:")


def dstack() -> None:
    """dstack (Go): name, memory and index of each card; memory and load of each."""
    for words in ("--query-aip=name,memory.total,index", "--format=csv,noheader,nounits"):
        named("runner/internal/shim/host/gpu.go", words)
    listed = output("hl-smi --query-aip=name,memory.total,index --format=csv,noheader,nounits").splitlines()
    cells = [[cell.strip() for cell in line.split(",")] for line in listed]
    assert sorted(int(index) for _, _, index in cells) == list(range(CARDS)), listed
    assert all(name.startswith("HL-325") and int(memory) > 100_000 for name, memory, _ in cells), listed
    named("runner/internal/runner/metrics/metrics.go", "--query-aip=memory.used,utilization.aip")
    for line in output("hl-smi --query-aip=memory.used,utilization.aip --format=csv,noheader,nounits").splitlines():
        parts = line.split(", ")
        assert len(parts) == 2 and all(part.strip().isdigit() for part in parts), line


def all_smi() -> None:
    """all-smi (Rust): eleven cells with units; `lspci` finds the vendor."""
    fields = re.findall(
        r'"([a-z_.]+)"\.to_string\(\)', text("src/device/hlsmi/config.rs").partition("query_fields: vec![")[2]
    )
    fields = fields[:11]
    assert fields[0] == "index" and fields[-1] == "utilization.aip", fields
    lines = output(f"hl-smi -Q {','.join(fields)} --format csv,noheader").splitlines()
    assert len(lines) == CARDS and all(len(line.split(",")) == 11 for line in lines), lines
    assert len([line for line in output("lspci -n").splitlines() if "1da3" in line]) == CARDS


def lightning() -> None:
    """lightning-Habana: versions of `hl-smi -v`, name of the card from `-L`."""
    resources = module("src/lightning_habana/utils/resources.py", "resources")
    assert resources.get_hpu_synapse_version() == DRIVER, resources.get_hpu_synapse_version()
    assert resources.get_device_name_from_hlsmi() == "GAUDI3", resources.get_device_name_from_hlsmi()


def feature_discovery() -> None:
    """gaudi-feature-discovery (Go): driver, cards and firmware from sysfs."""
    source = text("collector/collector.go")
    for path in ("/module/habanalabs/version", "bus/pci/devices", "/device/fw_os_ver", "/device/device_type"):
        assert path in source, f"collector.go reads no {path} any more"
    assert Path("/sys/module/habanalabs/version").read_text().startswith(DRIVER)
    cards = [path for path in Path("/sys/bus/pci/devices").iterdir() if _attribute(path, "vendor") == "0x1da3"]
    assert len(cards) == CARDS, cards
    assert {_attribute(card, "device") for card in cards} == {"0x1060"}, [_attribute(card, "device") for card in cards]
    assert all(_attribute(card, "revision").startswith("0x") for card in cards)
    for card in Path("/sys/class/accel").glob("accel?"):
        firmware = _attribute(card / "device", "fw_os_ver")
        assert re.search(r"hl-gaudi\d-(\d+\.\d+\.\d+)-fw-(\d+\.\d+\.\d+)", firmware), firmware
        assert _attribute(card / "device", "device_type"), f"{card} has no device_type"


def _attribute(folder: Path, name: str) -> str:
    """The text of a file of sysfs; nothing where there is none."""
    path = folder / name
    return path.read_text().strip() if path.is_file() else ""


def log_collector() -> None:
    """The commands of the vendor's log collector."""
    assert len(re.findall("1da3|Habana", output("lspci"))) >= CARDS
    assert len(re.findall(r"Kernel driver in use: habanalabs", output("lspci -vvv"))) >= CARDS
    assert "preboot" in output("hl-smi --fw-version")
    for card in range(CARDS):
        assert Path(f"/sys/class/accel/accel{card}/device/status").read_text().strip() == "Operational"
    assert output("/opt/habanalabs/qual/gaudi3/bin/manage_network_ifs.sh --status").strip()


READERS: dict[str, Callable[[], None]] = {
    function.__name__: function
    for function in (
        hccl_demo, omnia, milabench, tgi, vllm_fork, vllm_gaudi, opea, perfspect, dstack, all_smi, lightning,
        feature_discovery, log_collector,
    )
}  # fmt: skip


if __name__ == "__main__":
    READERS[sys.argv[1]]()
    print(f"{sys.argv[1]} reads the node")
