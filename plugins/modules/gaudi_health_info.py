#!/usr/bin/python
# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Verdicts on a Gaudi node: what is wrong with which part of it, and what to do."""

from __future__ import annotations

DOCUMENTATION = r"""
module: gaudi_health_info
short_description: Say whether a Gaudi node is healthy, and what to do where it is not
version_added: 0.1.0
author:
  - gaudi3.scale contributors (@gaudi3)
description:
  - Reads C(hl-smi), sysfs, the kernel log and settings of the host, and judges them by the checks that
    C(docs/operate/health-matrix.md) lists. Changes nothing, and never fails because of what it finds.
  - A sound node is read once. What looks wrong is read twice more, and is a verdict when all three readings show it.
  - A tool that gives no answer in O(timeout) seconds is an error of the check. It is not asked again, and it is no
    reason to take a node out of service.
notes:
  - As root it sees the kernel log and the processes of other users.
extends_documentation_fragment:
  - gaudi3.scale.hl_smi
  - gaudi3.scale.read_only
options:
  depth:
    description:
      - V(quick) reads only, and may run beside a job.
      - V(standard) also reads the counters of every port, and runs the modes of C(hl_qual).
        The cards have to be free, and draw full power. While a process holds a card, none of it runs.
    type: str
    choices: [quick, standard]
    default: quick
  expected_cards:
    description: How many cards the node has. If omitted, as many as a board of this kind has.
    type: int
  huge_pages:
    description: How many huge pages the node is set up for. If omitted, their number is not checked.
    type: int
  interval:
    description: Seconds between readings that confirm each other.
    type: float
    default: 1.0
  hl_qual:
    description:
      - The vendor's C(hl_qual), run at depth V(standard). If omitted, that of package C(habanalabs-qual).
    type: path
  hl_qual_modes:
    description: Modes of C(hl_qual) to run. If omitted, all.
    type: list
    elements: str
    choices: [functional, power, pcie, memory-bandwidth, hbm, nic, link-errors]
    default: []
  hl_qual_timeout:
    description: Seconds that one call of C(hl_qual) may take.
    type: int
    default: 900
  hccl_demo:
    description:
      - Folder of the vendor's C(hccl_demo), built. At depth V(standard) its collectives run over all cards of the node,
        and have to reach the floors of the board.
    type: path
  hccl_demo_timeout:
    description: Seconds that one collective may take.
    type: int
    default: 300
  ports_script:
    description:
      - The vendor's C(manage_network_ifs.sh), which tells the ports' flow control at depth V(standard). If omitted,
        that of package C(habanalabs-qual), where it is installed.
    type: path
  history:
    description: How many of the newest entries of the node's history are returned.
    type: int
    default: 20
  folder:
    description: Folder of the node's fence and history.
    type: path
    default: /var/lib/gaudi3-scale/health
  jobs_dir:
    description: Folder below which each job has its own, in which it says of a hang what it knows.
    type: path
    default: /var/lib/gaudi3-scale/jobs
"""

EXAMPLES = r"""
- name: Look at the node's health
  gaudi3.scale.gaudi_health_info:
  register: health

- name: Show what is wrong
  ansible.builtin.debug:
    msg: "{{ health.verdicts | map(attribute='message') }}"

- name: Qualify the cards of an idle node
  gaudi3.scale.gaudi_health_info:
    depth: standard
    hl_qual: /opt/habanalabs/qual/gaudi3/bin/hl_qual
"""

RETURN = r"""
healthy:
  description: Whether there is no verdict worse than a note.
  returned: success
  type: bool
  sample: false
drains:
  description: Whether a verdict asks for the node to be taken away from jobs.
  returned: success
  type: bool
  sample: true
severity:
  description: The worst of the verdicts, V(info) without any.
  returned: success
  type: str
  sample: critical
remedy:
  description: What to do, the most of what the verdicts ask for; V(none) without any.
  returned: success
  type: str
  sample: reset
verdicts:
  description: What is wrong.
  returned: success
  type: list
  elements: dict
  contains:
    check: {description: "The check that found it.", type: str, sample: card-status}
    component: {description: "What is concerned.", type: str, sample: accel3}
    kind: {description: "V(node fault) or V(user fault).", type: str, sample: node fault}
    severity: {description: "V(info), V(warning), V(error) or V(critical).", type: str, sample: critical}
    action: {description: "What to do.", type: str, sample: reset}
    evidence: {description: "What was read.", type: str, sample: "the driver says 'Needs reset' of accel3"}
    drains: {description: "Whether it takes the node away from jobs.", type: bool, sample: true}
    message: {description: "All of it in one sentence.", type: str, sample: "accel3: ..."}
    since: {description: "When it was seen first, in seconds of the monotonic clock.", type: float, sample: 4711.5}
host:
  description: What the node calls itself, as jobs call it.
  returned: success
  type: str
  sample: gaudi-5
hangs:
  description:
    - What jobs of this node say of the hang that they ended with last, within 7 days, the newest first.
    - A job's user may write anything there. C(gaudi3.scale.heal) tests the nodes that are named, and does no more.
  returned: success
  type: list
  elements: dict
  contains:
    job: {description: "Name of the job.", type: str, sample: demo}
    state: {description: "Its state, by its own words.", type: str, sample: failed}
    sentence:
      description: Who held up the others.
      type: str
      sample: Rank 37 on gaudi-5 did not enter all_reduce 4711; the other 63 ranks wait.
    kind: {description: "What kind of a hang it is.", type: str, sample: loader}
    certain: {description: "Whether no other reading of the processes' notes is left.", type: bool, sample: true}
    nodes: {description: "The nodes that are named, as they call themselves.", type: list, elements: str, sample: [g-5]}
    members: {description: "The job's nodes as the inventory has them.", type: list, elements: str, sample: [g-4, g-5]}
    at: {description: "When that was found, in seconds since 1970.", type: float, sample: 1767225660.5}
idle:
  description: Whether no process holds a card; V(false) where that could not be read.
  returned: success
  type: bool
  sample: false
suspects:
  description: What some readings showed and others did not; of the same shape as the verdicts, without C(since).
  returned: success
  type: list
  elements: dict
  sample: []
errors:
  description: What could not be read; of the same shape as the suspects. None of it says anything about the node.
  returned: success
  type: list
  elements: dict
  sample: []
cards:
  description: How many cards were read.
  returned: success
  type: int
  sample: 8
readings:
  description: How often the node was read.
  returned: success
  type: int
  sample: 1
versions:
  description: The versions that the verdicts hold for, by name.
  returned: success
  type: dict
  sample: {driver: 1.23.0-2eae87a, board: HL-325L, spi: hl-gaudi3-1.23.0-fw-62.2.1-sec-9}
figures:
  description: Bandwidths of the collectives in GB/s, by name.
  returned: success
  type: dict
  sample: {}
fence:
  description: Why the node is out of service, as M(gaudi3.scale.gaudi_fence) wrote it; null where it is in service.
  returned: success
  type: dict
  sample: {reason: "accel3: the driver says 'Needs reset'", step: reset, by: healing, since: 1767225600.0, jobs: [demo]}
history:
  description: What happened to the node, the oldest first. Times are in seconds since 1970.
  returned: success
  type: list
  elements: dict
  sample: [{at: 1767225600.0, what: out, reason: "accel3: the driver says 'Needs reset'", step: reset, jobs: [demo]}]
cpu_seconds:
  description: Processor time of the examination itself, without the tools that it called.
  returned: success
  type: float
  sample: 0.08
"""

import contextlib
import os
import socket
import time
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.gaudi3.scale.plugins.module_utils._cards import accel, pci
from ansible_collections.gaudi3.scale.plugins.module_utils._health import fence, history
from ansible_collections.gaudi3.scale.plugins.module_utils._health.checks import QUICK, STANDARD
from ansible_collections.gaudi3.scale.plugins.module_utils._health.collect import Sources
from ansible_collections.gaudi3.scale.plugins.module_utils._health.examine import Examination, Patience, examine
from ansible_collections.gaudi3.scale.plugins.module_utils._health.passport import versions_of
from ansible_collections.gaudi3.scale.plugins.module_utils._health.readings import ToolResult
from ansible_collections.gaudi3.scale.plugins.module_utils._health.tools import MODES, measure, qualify
from ansible_collections.gaudi3.scale.plugins.module_utils._hl_smi.command import (
    HL_SMI_SPEC,
    HlSmi,
    Runner,
    environment,
)
from ansible_collections.gaudi3.scale.plugins.module_utils._hl_smi.hl_smi import HlSmiError
from ansible_collections.gaudi3.scale.plugins.module_utils._jobs import hangs

#: Where package habanalabs-qual has its programs, by generation of the cards.
QUAL = "/opt/habanalabs/qual"


def vendors(program: str) -> "str | None":
    """Where package habanalabs-qual has a program for this node's cards; None where their generation is not known."""
    generation = pci.generation_of(pci.cards())
    return None if generation is None else f"{QUAL}/{generation}/bin/{program}"


def loaded(module: AnsibleModule, sources: Sources, env: "dict[str, str]") -> "tuple[ToolResult, ...]":
    """Results of the tests that put load on the cards; none of them is run beside a job."""
    asked = module.params
    cards = pci.cards()
    if not cards:
        return ()
    holders = [user for user in accel.users() if not user.control]
    if holders:
        return (ToolResult("hl_qual all", None, f"process {holders[0]} holds a card, so nothing was run"),)
    results: list[ToolResult] = []
    generation = pci.generation_of(cards)
    tool = asked["hl_qual"] or vendors("hl_qual")
    if tool is not None and not os.access(tool, os.X_OK):
        results.append(ToolResult("hl_qual all", None, f"{tool} is not there, so nothing was run"))
    elif tool is not None and generation is not None:
        indexes: list[tuple[int, str]] = []
        if sources.hl_smi is not None:
            with contextlib.suppress(HlSmiError, ValueError):  # the reading below says so
                rows = sources.hl_smi.query(("index", "bus_id"))
                indexes = [(int(row["index"]), row["bus_id"]) for row in rows]
        qual = Patience(Runner(asked["hl_qual_timeout"], env))
        results += qualify(qual, tool, generation, indexes, asked["hl_qual_modes"])
    if asked["hccl_demo"]:
        own = {**env, "HCCL_COMM_ID": "127.0.0.1:5555"}
        demo = Patience(Runner(asked["hccl_demo_timeout"], own))
        results += measure(demo, asked["hccl_demo"], len(cards))
    holders = [user for user in accel.users() if not user.control]
    if holders and any(result.passed is not None for result in results):
        # Otherwise whoever may open a card could have the node found faulty.
        why = f"process {holders[0]} took a card meanwhile, so the results count for nothing"
        return (*(result for result in results if result.passed is None), ToolResult("hl_qual all", None, why))
    return tuple(results)


def look(module: AnsibleModule) -> Examination:
    """Examine the node that the module runs on."""
    asked = module.params
    env = environment(module)
    run = Patience(Runner(asked["timeout"], env))
    path = module.get_bin_path(asked["executable"])
    script = asked["ports_script"] or vendors("manage_network_ifs.sh")
    if script is not None and not asked["ports_script"] and not os.access(script, os.X_OK):
        script = None
    sources = Sources(
        run,
        None if path is None else HlSmi(path, run),
        os.uname().release,
        table=(path or asked["executable"],),
        ports_script=script,
        huge_pages_wanted=asked["huge_pages"],
    )
    tools = loaded(module, sources, env) if asked["depth"] == STANDARD else ()
    return examine(
        sources, time.monotonic, time.sleep, asked["depth"], tools, asked["expected_cards"], asked["interval"]
    )


def main() -> None:
    """Run the module."""
    started = time.process_time()
    module = AnsibleModule(
        argument_spec=dict(
            HL_SMI_SPEC,
            depth={"type": "str", "choices": [QUICK, STANDARD], "default": QUICK},
            expected_cards={"type": "int"},
            huge_pages={"type": "int"},
            interval={"type": "float", "default": 1.0},
            hl_qual={"type": "path"},
            hl_qual_modes={
                "type": "list",
                "elements": "str",
                "choices": [name for name, _arguments in MODES],
                "default": [],
            },
            hl_qual_timeout={"type": "int", "default": 900},
            hccl_demo={"type": "path"},
            hccl_demo_timeout={"type": "int", "default": 300},
            ports_script={"type": "path"},
            history={"type": "int", "default": 20},
            folder={"type": "path", "default": fence.FOLDER},
            jobs_dir={"type": "path", "default": "/var/lib/gaudi3-scale/jobs"},
        ),
        supports_check_mode=True,
    )
    done = look(module)
    result: dict[str, Any] = done.report.as_dict()
    remedy = result.pop("action")  # which Ansible's own callbacks call the module
    figures = {name: value for tool in done.reading.tools for name, value in tool.figures.items()}
    module.exit_json(
        changed=False,
        remedy=remedy,
        cards=len(done.reading.cards),
        readings=done.readings,
        idle=done.reading.processes == (),
        versions=versions_of(done.reading),
        figures=figures,
        fence=fence.read(module.params["folder"]),
        history=history.entries(module.params["folder"], max(0, module.params["history"])),
        host=socket.gethostname(),
        hangs=[each.as_dict() for each in hangs.found_in(module.params["jobs_dir"], time.time())],
        cpu_seconds=round(time.process_time() - started, 3),
        **result,
    )


if __name__ == "__main__":
    main()
