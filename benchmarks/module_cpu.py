#!/usr/bin/env python3
"""CPU cost of gaudi3.scale.hl_smi_facts on a node, against Ansible's own ping.

Both modules are packed as Ansible packs them (one AnsiballZ file each) and the files are run by hand, in turns, so
that neither the controller nor the connection is in the figures. A run's cost is the CPU time, user and system, of the
interpreter and of every process it started: the calls of hl-smi are counted too, and shown apart.

    benchmarks/module_cpu.py                      the running simulated cluster's first node
    benchmarks/module_cpu.py --host gaudi-2       another host of the inventory
    benchmarks/module_cpu.py --host localhost --executable ./fake-hl-smi

What is compared is CPU seconds of the same machine, one against the other. The simulated hl-smi is a Python program:
its own cost says nothing of the vendor's tool, so the ratio to watch is the one without it.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import re
import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LIMIT = 1.2

# Runs on the node, fed by standard input with nothing but the standard library.
RUNNER = r"""
import json, os, resource, subprocess, sys, tempfile
task = json.load(sys.stdin)
folder = tempfile.mkdtemp(prefix="module-cpu-")
paths = {}
for name, text in task["modules"].items():
    paths[name] = os.path.join(folder, name + ".py")
    with open(paths[name], "w") as file:
        file.write(text)
def cost(argv, quiet=True):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return used, done.returncode, (done.stdout or done.stderr).decode(errors="replace")
report = {name: [] for name in paths}
report["tool"] = []
for _round in range(task["repeats"] + 1):  # the first round warms caches and does not count
    for name, path in paths.items():
        used, code, output = cost([task["python"], path])
        if code:
            sys.exit(f"{name} failed on the node: {output[:400]}")
        if _round:
            report[name].append(used)
        report[name + " answer"] = output
    used = sum(cost(argv)[0] for argv in task["calls"])
    if _round:
        report["tool"].append(used)
for path in paths.values():
    os.unlink(path)
os.rmdir(folder)
json.dump(report, sys.stdout)
"""


def packed(module: str, options: dict[str, object]) -> str:
    """The file that Ansible would send for a task on a node with Python 3."""
    from ansible.executor.module_common import modify_module
    from ansible.parsing.dataloader import DataLoader
    from ansible.plugins.loader import module_loader
    from ansible.template import Templar

    found = module_loader.find_plugin_with_context(module)
    templar = Templar(loader=DataLoader(), variables={})
    built = modify_module(
        module_name=found.resolved_fqcn or module,
        module_path=found.plugin_resolved_path,
        module_args=options,
        templar=templar,
        task_vars={"ansible_python_interpreter": "/usr/bin/python3"},
    )
    text: str = built.b_module_data.decode()
    return text


def host_variables(name: str) -> dict[str, str]:
    """The connection's variables of a host of the simulated inventory."""
    nodes = json.loads(subprocess.check_output([ROOT / "inventories/simulated/nodes", "--list"], text=True))
    variables = nodes["_meta"]["hostvars"].get(name)
    if variables is None:
        known = ", ".join(sorted(nodes["_meta"]["hostvars"])) or "none, for no cluster is up"
        sys.exit(
            f"There is no host {name} in the simulated inventory (known: {known}): start one with gaudi3-simulator up."
        )
    return {key: str(value) for key, value in variables.items()}


def ssh(variables: dict[str, str]) -> list[str]:
    """A command line which reaches the host as Ansible does."""
    words = ["ssh", "-i", variables["ansible_ssh_private_key_file"], "-l", variables["ansible_user"]]
    for name in ("ansible_ssh_common_args", "ansible_ssh_args", "ansible_ssh_extra_args"):
        words += re.findall(r"\S+", variables.get(name, ""))
    return [*words, variables["ansible_host"]]


def main() -> int:
    """Measure and print; the exit code is 1 when the module costs more than the limit."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--host", default="gaudi-1", help="host of inventories/simulated, or localhost")
    parser.add_argument("--executable", default="hl-smi", help="the hl-smi to call there")
    parser.add_argument("--repeats", type=int, default=25, help="runs of each module that count")
    parser.add_argument(
        "--subset", default="cards,firmware", choices=["cards", "cards,firmware"], help="what to gather"
    )
    arguments = parser.parse_args()

    os.environ.setdefault("ANSIBLE_CONFIG", str(ROOT / "ansible.cfg"))
    os.chdir(ROOT)
    sys.path.insert(0, str(ROOT / "collections"))
    from ansible.plugins.loader import init_plugin_loader

    init_plugin_loader()
    subset = arguments.subset.split(",")
    facts = {"executable": arguments.executable, "gather_subset": subset}
    modules = {"ping": packed("ansible.builtin.ping", {}), "hl_smi_facts": packed("gaudi3.scale.hl_smi_facts", facts)}

    from ansible_collections.gaudi3.scale.plugins.module_utils._hl_smi.hl_smi import QUERY_FIELDS

    calls = [[arguments.executable, "-Q", ",".join(QUERY_FIELDS), "-f", "csv,noheader,nounits"]]
    if {"firmware", "all"} & set(subset):
        calls.append([arguments.executable, "-L"])
    local = arguments.host == "localhost"
    python = sys.executable if local else "/usr/bin/python3"
    task = {"modules": modules, "repeats": arguments.repeats, "python": python, "calls": calls}
    runner = base64.b64encode(RUNNER.encode()).decode()
    code = f"import base64; exec(base64.b64decode('{runner}'))"
    command = [python, "-c", code] if local else [*ssh(host_variables(arguments.host)), f'{python} -c "{code}"']
    done = subprocess.run(command, input=json.dumps(task), capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit((done.stderr or done.stdout).strip() or f"The run on {arguments.host} failed.")
    report = json.loads(done.stdout)
    cards = json.loads(report["hl_smi_facts answer"])["ansible_facts"]["gaudi"]["card_count"]

    print(f"CPU seconds of one run on {arguments.host}, {cards} cards, {arguments.repeats} runs each in turns")
    print(f"{'':32}{'min':>8}{'median':>9}")
    for name, label in (
        ("ping", "ansible.builtin.ping"),
        ("hl_smi_facts", "gaudi3.scale.hl_smi_facts"),
        ("tool", "the tool's calls alone"),
    ):
        print(f"{label:32}{min(report[name]):8.4f}{statistics.median(report[name]):9.4f}")
    own = [whole - tool for whole, tool in zip(report["hl_smi_facts"], report["tool"], strict=True)]
    ratios = [statistic(own) / statistic(report["ping"]) for statistic in (min, statistics.median)]
    whole = [statistic(report["hl_smi_facts"]) / statistic(report["ping"]) for statistic in (min, statistics.median)]
    print(f"{'ratio to ping, with the tool':32}{whole[0]:8.2f}{whole[1]:9.2f}")
    print(f"{'ratio to ping, module itself':32}{ratios[0]:8.2f}{ratios[1]:9.2f}   (limit {LIMIT})")
    return 0 if ratios[1] <= LIMIT else 1


if __name__ == "__main__":
    sys.exit(main())
