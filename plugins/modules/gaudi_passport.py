#!/usr/bin/python
# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""A signed passport for a healthy node, kept on the controller."""

from __future__ import annotations

DOCUMENTATION = r"""
module: gaudi_passport
short_description: Issue the passports of healthy Gaudi nodes
version_added: 0.1.0
author:
  - gaudi3.scale contributors (@gaudi3)
description:
  - Writes what each node was tested for - checks, figures, thresholds, versions of driver, board and firmware, serial
    numbers - and signs it (HMAC-SHA256) with a key that stays on the controller. Run it there once for all nodes, with
    C(delegate_to) and C(run_once).
  - A passport expires, and is void when a version or a card changes. A node that is not in order, that could not be
    read whole, or whose figures stand apart from the other nodes', is refused one. A passport that it has is removed.
  - A node whose report cannot be read is reported as such, and gets no passport. The other nodes do.
  - A passport that is valid and has more than half of its life left is kept.
  - Beside the passport of each node, C(NODE.passport.json), lies a report of its examination, C(NODE.report.json).
options:
  examinations:
    description: The results of M(gaudi3.scale.gaudi_health_info), by the name of the node in the inventory.
    type: dict
    required: true
  depth:
    description: The depth of those examinations.
    type: str
    choices: [quick, standard, deep]
    default: quick
  folder:
    description:
      - Folder of the passports, the reports and the key C(passports.key), which is made when it does not exist. The
        folder has to exist.
    type: path
    required: true
  days:
    description: For how many days a passport is valid.
    type: int
    default: 7
  pair_search:
    description:
      - What the pair search said, at depth V(deep) - C(tested), C(nodes) and C(links), as in RETURN of
        M(gaudi3.scale.gaudi_pair_search). A node that it did not test gets no passport of that depth.
    type: dict
    default: {}
attributes:
  check_mode:
    description: Writes nothing and says what it would do.
    support: full
  diff_mode:
    description: Shows which reports and passports come, change or go. The key is never shown.
    support: full
"""

EXAMPLES = r"""
- name: Examine the nodes' health
  gaudi3.scale.gaudi_health_info:
  register: health

- name: Give the healthy ones their passports
  gaudi3.scale.gaudi_passport:
    examinations: "{{ dict(ansible_play_hosts | zip(ansible_play_hosts | map('extract', hostvars, 'health'))) }}"
    folder: health
  delegate_to: localhost
  run_once: true
"""

RETURN = r"""
nodes:
  description: What was found of each node.
  returned: success
  type: dict
  contains:
    issued:
      description: Whether the node has a valid passport now.
      type: bool
    reason:
      description: Why it has none, or why the former one was not kept; empty where it was.
      type: str
    drains:
      description: Whether it is not fit for work.
      type: bool
    verdicts:
      description: What is wrong with it, by itself and beside the other nodes.
      type: list
      elements: dict
    errors:
      description: What could not be read of it.
      type: list
      elements: dict
    unread:
      description: Why its report cannot be read, empty where it can. Nothing is known of such a node.
      type: str
  sample: {gaudi-1: {issued: true, reason: driver was 1.22.0-5f8fa9f and is 1.23.0-2eae87a}}
"""

import contextlib
import functools
import json
import os
import secrets
import time
from dataclasses import replace
from typing import Any, Optional

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.gaudi3.scale.plugins.module_utils._files import ensure_file
from ansible_collections.gaudi3.scale.plugins.module_utils._health import passport
from ansible_collections.gaudi3.scale.plugins.module_utils._health.checks import CHECKS, DEEP, DEPTHS
from ansible_collections.gaudi3.scale.plugins.module_utils._health.fleet import apart
from ansible_collections.gaudi3.scale.plugins.module_utils._health.pair_jobs import findings
from ansible_collections.gaudi3.scale.plugins.module_utils._health.pairs import SearchResult
from ansible_collections.gaudi3.scale.plugins.module_utils._health.report import Report, read_all, verdict_of
from ansible_collections.gaudi3.scale.plugins.module_utils._refusal import Refusal


def read(path: str) -> Optional[str]:
    """A file's text, None where there is none."""
    with contextlib.suppress(FileNotFoundError), open(path, encoding="utf-8", errors="replace") as file:
        return file.read()
    return None


def report(health: Report, unread: str = "") -> str:
    """What people read of an examination; ``unread`` says why there is none."""
    found = {
        "healthy": not health.verdicts and not unread,
        "drains": health.drains,
        "remedy": health.remedy,
        "verdicts": [each.message for each in health.verdicts],
        "errors": [unread] if unread else [each.message for each in health.errors],
        "versions": dict(health.versions),
        "figures": dict(health.figures),
    }
    return json.dumps(found, indent=1, sort_keys=True) + "\n"


class Office:
    """Writes reports and passports into a folder, and remembers what changed there."""

    def __init__(self, module: AnsibleModule) -> None:
        self.module, self.folder = module, os.path.abspath(module.params["folder"])
        self.depth, self.now = module.params["depth"], int(time.time())
        self.lifetime = module.params["days"] * passport.DAY_S
        self.checks = tuple(check.name for check in CHECKS if DEPTHS.index(check.depth) <= DEPTHS.index(self.depth))
        self.searched = module.params["pair_search"].get("tested") or []
        self.changed = False
        self.diffs: list[dict[str, Any]] = []

    def ensure(self, name: str, text: Optional[str], mode: int = 0o644) -> None:
        """Have a file of this text, or none."""
        diff = ensure_file(self.module, os.path.join(self.folder, name), text, mode, own=False)
        if diff is not None:
            self.changed = True
            self.diffs += [diff] if diff else []

    @functools.cached_property
    def key(self) -> bytes:
        """The key, made when it is not there and a passport needs it."""
        path = os.path.join(self.folder, passport.KEY)
        text = read(path)
        if text is None:
            text = secrets.token_hex(32) + "\n"
            ensure_file(self.module, path, text, 0o600, own=False)
            self.changed = True
        return passport.read_key(text)

    def issue(self, node: str, health: Report) -> tuple[bool, str]:
        """Give a node its passport, or take it away: whether it has one, and why not or why a new one."""
        name = passport.file_of(node)
        try:
            if self.depth == DEEP and node not in self.searched and not health.verdicts:
                raise Refusal(f"{node} gets no passport of depth {DEEP}, as the pair search did not test it")
            issued = passport.issue(node, health, self.checks, self.depth, self.now, self.lifetime)
        except Refusal as error:
            self.ensure(name, None)
            return False, str(error)
        # Half of its life ahead: what was signed then is signed again. Nor is one kept that a clock ahead signed.
        half, text = self.now + self.lifetime // 2, read(os.path.join(self.folder, name))
        reason = next(
            filter(
                None,
                (
                    passport.problem(text, self.key, node, moment, issued.versions, self.depth)
                    for moment in (self.now, half)
                ),
            ),
            "",
        )
        if reason:
            self.ensure(name, passport.sign(issued, self.key))
        return True, reason


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "examinations": {"type": "dict", "required": True},
            "depth": {"type": "str", "choices": list(DEPTHS), "default": "quick"},
            "folder": {"type": "path", "required": True},
            "pair_search": {"type": "dict", "default": {}},
            "days": {"type": "int", "default": passport.LIFETIME_DAYS},
        },
        supports_check_mode=True,
    )
    if module.params["days"] < 1:
        module.fail_json(msg=f"days was {module.params['days']}: give 1 or more.")
    office = Office(module)
    if not module.check_mode and not os.path.isdir(office.folder):  # a dry run may have made none
        module.fail_json(msg=f"There is no folder {office.folder}: make it first.")
    reports, unread = read_all(module.params["examinations"])
    outliers = apart({node: health.figures for node, health in reports.items()})
    search = module.params["pair_search"]
    links = [(str(one), str(other)) for one, other in search.get("links") or ()]
    paired = findings(SearchResult(list(search.get("nodes") or ()), links))
    nodes: dict[str, dict[str, Any]] = {}
    for node, why in unread.items():
        office.ensure(f"{node}.report.json", report(Report(), f"its report cannot be read: {why}"))
        office.ensure(passport.file_of(node), None)
        said = f"{node} gets no passport, as its report cannot be read: {why}."
        nodes[node] = {"issued": False, "reason": said, "drains": False, "verdicts": [], "errors": [], "unread": why}
    for node, alone in reports.items():
        more = [*outliers.get(node, ()), *paired.get(node, ())]
        health = replace(alone, verdicts=(*alone.verdicts, *map(verdict_of, more)))
        office.ensure(f"{node}.report.json", report(health))
        try:
            issued, reason = office.issue(node, health)
        except Refusal as error:
            module.fail_json(msg=str(error))
        nodes[node] = {
            "issued": issued,
            "reason": reason,
            "drains": health.drains,
            "verdicts": [each.as_dict() for each in health.verdicts],
            "errors": [each.as_dict() for each in health.errors],
            "unread": "",
        }
    module.exit_json(changed=office.changed, nodes=nodes, diff=office.diffs)


if __name__ == "__main__":
    main()
