#!/usr/bin/python
# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""What a Gaudi node says of its past, as evidence for a certificate."""

from __future__ import annotations

DOCUMENTATION = r"""
module: gaudi_certificate
short_description: Gather what a Gaudi node says of its past, for a certificate
version_added: 0.1.0
author: gaudi3.scale contributors (@gaudi3)
description:
  - Reads replaced rows of memory and their causes, memory errors, links that came back, throttling, PCIe, firmware and
    the kernel log of a node. The playbook C(gaudi3.scale.certificate) judges it and writes the page.
  - With O(qualify) it runs every mode of the vendor's C(hl_qual), and with O(train) a training step with a known answer
    on each card. Both need free cards, and hl_qual draws full power.
  - What of these has ended is written down in O(folder). A run that was cut off continues where it was.
  - Nothing is judged here. A source that gave no answer is named with its reason, and the module does not fail.
notes:
  - Run it as root, which alone sees the whole kernel log.
extends_documentation_fragment:
  - gaudi3.scale.hl_smi
options:
  qualify:
    description: Run hl_qual.
    type: bool
    default: false
  train:
    description: Run the training step.
    type: bool
    default: false
  hl_qual:
    description: The vendor's C(hl_qual). If omitted, that of package C(habanalabs-qual).
    type: path
  hl_qual_timeout:
    description: Seconds that one call of C(hl_qual) may take.
    type: int
    default: 900
  pythons:
    description: Interpreters that may have torch, of which the first that exists runs the training step.
    type: list
    elements: path
    default: [/opt/gaudi3-scale/venv/bin/python, /usr/bin/python3]
  step_timeout:
    description: Seconds that the training step of one card may take.
    type: int
    default: 600
  restart:
    description: Forget what of hl_qual and of the training step has ended.
    type: bool
    default: false
  days:
    description: For how many days a result of hl_qual or of the training step counts.
    type: int
    default: 7
  folder:
    description: Folder in which these results are kept.
    type: path
    default: /var/lib/gaudi3-scale/certificate
attributes:
  check_mode:
    description: Neither hl_qual nor the training step runs, and nothing is written. The answer has what is known.
    support: full
  diff_mode:
    description: Nothing but results is written.
    support: none
  platform:
    description: Linux.
    platforms: linux
    support: full
seealso:
  - module: gaudi3.scale.gaudi_health_info
  - module: gaudi3.scale.gaudi_bmc_facts
"""

EXAMPLES = r"""
- name: Gather what the node says
  gaudi3.scale.gaudi_certificate:
  register: said

- name: Qualify the cards, too, and let each of them train a step
  gaudi3.scale.gaudi_certificate:
    qualify: true
    train: true
"""

RETURN = r"""
evidence:
  description: What the sources said. C(unanswered) has the reason of each that gave no answer.
  returned: success
  type: dict
  sample: {format: 1, node: gaudi-1, board: HL-325L, cards: [], unanswered: {hl_qual: it was not asked for}}
ran:
  description: Modes of hl_qual and training steps that ran now, or would in check mode.
  returned: success
  type: list
  elements: str
  sample: [hl_qual functional, training step of accel0]
"""

import os
import socket
import time

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.gaudi3.scale.plugins.module_utils._cards import pci
from ansible_collections.gaudi3.scale.plugins.module_utils._health.collect import Sources
from ansible_collections.gaudi3.scale.plugins.module_utils._health.examine import Patience
from ansible_collections.gaudi3.scale.plugins.module_utils._hl_smi.command import (
    HL_SMI_SPEC,
    HlSmi,
    Runner,
    environment,
)
from ansible_collections.gaudi3.scale.plugins.module_utils._jobs import runtime_environment
from ansible_collections.gaudi3.scale.plugins.module_utils._module_bodies import certificate
from ansible_collections.gaudi3.scale.plugins.module_utils._refusal import Refusal


def asked_for(module: AnsibleModule) -> certificate.Long:
    """The long parts that are asked for, with their programs."""
    given = module.params
    generation = pci.generation_of(pci.cards())
    qual = given["hl_qual"] or (generation and f"/opt/habanalabs/qual/{generation}/bin/hl_qual")
    python = next((path for path in given["pythons"] if os.access(path, os.X_OK)), None)
    profile = runtime_environment.read(runtime_environment.profile_files()) if given["train"] else {}
    why_no_qual = why_no_step = ""
    if given["qualify"] and not (qual and os.access(qual, os.X_OK)):
        why_no_qual = f"{qual or 'hl_qual'} is not there"
    if given["train"] and python is None:
        why_no_step = f"none of {', '.join(given['pythons'])} is there"
    return certificate.Long(
        qual if given["qualify"] and not why_no_qual else None,
        python if given["train"] else None,
        profile,
        why_no_qual,
        why_no_step,
    )


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec=dict(
            HL_SMI_SPEC,
            qualify={"type": "bool", "default": False},
            train={"type": "bool", "default": False},
            hl_qual={"type": "path"},
            hl_qual_timeout={"type": "int", "default": 900},
            pythons={
                "type": "list",
                "elements": "path",
                "default": ["/opt/gaudi3-scale/venv/bin/python", "/usr/bin/python3"],
            },
            step_timeout={"type": "int", "default": 600},
            restart={"type": "bool", "default": False},
            days={"type": "int", "default": 7},
            folder={"type": "path", "default": certificate.FOLDER},
        ),
        supports_check_mode=True,
    )
    given = module.params
    for name in ("timeout", "hl_qual_timeout", "step_timeout", "days"):
        if given[name] < 1:
            module.fail_json(msg=f"{name} was {given[name]}: give 1 or more.")
    env = environment(module)
    run = Patience(Runner(given["timeout"], env))
    path = module.get_bin_path(given["executable"])
    sources = Sources(run, None if path is None else HlSmi(path, run), os.uname().release, table=(path or "hl-smi",))
    try:
        long = asked_for(module)
    except Refusal as error:
        module.fail_json(msg=str(error))
    reading = certificate.look(sources, time.monotonic())
    progress = certificate.Progress(
        given["folder"], certificate.identity(reading), time.time(), given["days"], given["restart"]
    )
    silent: dict[str, str] = {}
    planned = certificate.todo(progress, reading, long)
    if planned and not module.check_mode:
        qual, step = (Runner(given[name], env) for name in ("hl_qual_timeout", "step_timeout"))
        silent = certificate.run_long(progress, reading, long, qual, step, time.time)
        reading = certificate.look(sources, time.monotonic())  # what the load has changed
        planned = [each for each in planned if each not in certificate.todo(progress, reading, long)]
    silent.update({"hl_qual": long.why_no_qual} if long.why_no_qual else {})
    silent.update({"training step": long.why_no_step} if long.why_no_step else {})
    found = certificate.gather(sources, socket.gethostname(), time.time(), reading, silent, progress)
    changed = bool(planned) if module.check_mode else progress.changed
    module.exit_json(changed=changed, evidence=found, ran=planned)


if __name__ == "__main__":
    main()
