#!/usr/bin/python
# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Decide what is done about the verdicts on Gaudi nodes, and keep that on record on the controller."""

from __future__ import annotations

DOCUMENTATION = r"""
module: gaudi_healing
short_description: "Internal to the collection: decide what is done about faulty Gaudi nodes"
version_added: 0.1.0
author:
  - gaudi3.scale contributors (@gaudi3)
description:
  - Takes results of M(gaudi3.scale.gaudi_health_info) and how steps ended, and says which step each node needs now -
    C(retry) for its ports, C(reset), C(reload) or C(reboot) - and which nodes no job may use. C(docs/operate/health.md)
    has the rules.
  - The state is written before the module returns, so a controller that is restarted continues where it was. Run it on
    the controller, with C(delegate_to) and C(run_once).
  - Changes nothing on any node. The playbook C(gaudi3.scale.heal) carries the decisions out.
options:
  path:
    description: File of the state. Its folder has to exist.
    type: path
    required: true
  nodes:
    description: All nodes of the fleet. A tenth of them, and at least one, may leave service within O(window) seconds.
    type: list
    elements: str
    required: true
  spares:
    description: Those of O(nodes) that wait to take the place of another.
    type: list
    elements: str
    default: []
  mode:
    description:
      - V(shadow) says and records what would be done. V(enforce) has it done.
    type: str
    choices: [shadow, enforce]
    default: shadow
  reports:
    description:
      - Results of M(gaudi3.scale.gaudi_health_info) by node. Nothing is decided about a node whose result cannot be
        read, or that a person took out of service.
    type: dict
    default: {}
  fences:
    description:
      - Results of the same kind, of which only the fence is read, and what jobs said of a hang. A node that C(healing)
        took out of service and that the state has in service is taken over. It waits for O(released), and counts for
        O(share).
    type: dict
    default: {}
  examinations:
    description: Results of the same kind, of which only that is read which jobs said of a hang.
    type: dict
    default: {}
  passed:
    description: Nodes that passed all tests under load, and so are no suspects any more.
    type: list
    elements: str
    default: []
  busy:
    description: Nodes whose test as a suspect was put off, as a job runs there.
    type: list
    elements: str
    default: []
  taken_at:
    description:
      - When the examination of O(reports) began at the earliest, in seconds since 1970 - RV(now) of the call before.
      - Reports that are older than O(stale) seconds, or from before a step ended, change nothing.
    type: float
  tests:
    description: Whether O(reports) are tests of nodes after a step, for check mode alone, in which no step was done.
    type: bool
    default: false
  ended:
    description: How steps ended that were carried out, by node - a boolean C(ok) and a C(message).
    type: dict
    default: {}
  released:
    description:
      - Nodes that a person gives back. They are tested before they return. Of one that is not out, only a suspicion
        ends.
    type: list
    elements: str
    default: []
  share:
    description: Which share of the nodes may leave service within O(window) seconds; at least one always may.
    type: float
    default: 0.1
  window:
    description: Seconds over which O(share) counts.
    type: int
    default: 3600
  again:
    description: Seconds within which a second remediation of a node goes to a person.
    type: int
    default: 604800
  stale:
    description: Seconds after which a report changes nothing any more.
    type: int
    default: 300
  retry:
    description: Seconds after which a verdict that asked for another look, and is still there, takes the node out.
    type: int
    default: 120
attributes:
  check_mode:
    description: Writes nothing and says what it would decide.
    support: full
  diff_mode:
    description: Shows the decisions.
    support: full
"""

EXAMPLES = r"""
- name: Decide what is done
  gaudi3.scale.gaudi_healing:
    path: health/fleet.json
    nodes: "{{ groups['gaudi'] }}"
    reports: "{{ dict(ansible_play_hosts | zip(ansible_play_hosts | map('extract', hostvars, 'health'))) }}"
    taken_at: "{{ before.now }}"
  delegate_to: localhost
  run_once: true
"""

RETURN = r"""
now:
  description: When the module ran, in seconds since 1970; O(taken_at) of the next call.
  returned: success
  type: float
  sample: 1767225600.25
decisions:
  description: What was decided in this call.
  returned: success
  type: list
  elements: dict
  contains:
    node: {description: "The node.", type: str, sample: gaudi-3}
    do: {description: "What is to be done.", type: str, sample: reset}
    reason: {description: "Why.", type: str, sample: "accel3: the driver says 'Needs reset'"}
    shadow: {description: "Whether it is only said.", type: bool, sample: false}
work:
  description: The steps to be carried out now, by node; empty with O(mode=shadow).
  returned: success
  type: dict
  sample: {gaudi-3: {step: reset, components: [accel3], cards: [3], reason: "accel3: the driver says 'Needs reset'"}}
out:
  description: The nodes that no job may use, with their state, step and reason.
  returned: success
  type: dict
  sample: {gaudi-3: {state: repairing, step: reset, reason: "accel3: the driver says 'Needs reset'"}}
suspects:
  description: The nodes that jobs named as the ones that held up the others, and why. No more follows than a test.
  returned: success
  type: dict
  sample: {gaudi-5: ["job demo: Rank 37 on gaudi-5 did not enter all_reduce 4711; the other 63 ranks wait."]}
examined:
  description: Those of RV(testing) that are out of service for their test as suspects alone, which needs load.
  returned: success
  type: list
  elements: str
  sample: []
give_back:
  description: The nodes that passed their test, and whose fence O(reports) or O(fences) still show.
  returned: success
  type: list
  elements: str
  sample: []
due:
  description: Whether anything has to be done to a node.
  returned: success
  type: bool
  sample: true
unread:
  description: Why the result of a node in O(reports) or O(fences) cannot be read, by node.
  returned: success
  type: dict
  sample: {gaudi-4: no answer}
told:
  description: What people should know of the state itself, such as times in it that lay in the future.
  returned: success
  type: list
  elements: str
  sample: []
testing:
  description: The nodes that are to be tested again.
  returned: success
  type: list
  elements: str
  sample: [gaudi-3]
"""

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.gaudi3.scale.plugins.module_utils._files import write_file
from ansible_collections.gaudi3.scale.plugins.module_utils._health import controller, suspicion
from ansible_collections.gaudi3.scale.plugins.module_utils._health.healing import (
    Decision,
    Done,
    Fleet,
    Policy,
    Released,
)
from ansible_collections.gaudi3.scale.plugins.module_utils._health.report import Report, read_all
from ansible_collections.gaudi3.scale.plugins.module_utils._refusal import Refusal


@contextlib.contextmanager
def alone(folder: str) -> "Iterator[None]":
    """Hold the folder's lock: between reading the state and writing it nobody else may decide."""
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except FileNotFoundError:
        yield  # a dry run may have made none
        return
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def text_of(path: str) -> "str | None":
    """The state's file, None where there is none; Refusal of one that cannot be read."""
    try:
        with open(path, encoding="utf-8", errors="replace") as stream:
            return stream.read()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Refusal(f"the state of the healing loop cannot be read ({error.strerror}): mend its file") from error


def events(
    asked: "dict[str, Any]", fleet: Fleet, reports: "dict[str, Report]", now: float
) -> "Iterator[list[controller.Event]]":
    """What the options tell the loop, in steps of which each is asked for when those before have been decided.

    Reports of other fleets' nodes are left out. A fence is looked at first: it is the truth about its node.
    """
    taken_at = now if asked["taken_at"] is None else asked["taken_at"]
    found: "list[controller.Event]" = [Released(node) for node in asked["released"]]
    found += [Done(node, isinstance(end, dict) and end.get("ok") is True) for node, end in asked["ended"].items()]
    found += [suspicion.Busy(node) for node in asked["busy"]]
    yield found
    for node, report in reports.items():
        if node in fleet.nodes and not controller.is_a_persons(report):
            yield controller.observe(fleet.nodes[node].state, node, report, taken_at)


def about_suspects(
    asked: "dict[str, Any]", seen: "dict[str, Report]", reports: "dict[str, Report]", now: float
) -> "list[controller.Event]":
    """What jobs say of nodes, and which of these may be tested or have been."""
    taken_at = now if asked["taken_at"] is None else asked["taken_at"]
    found: "list[controller.Event]" = list(suspicion.of_hangs(seen, asked["nodes"], now))
    if not asked["tests"]:
        found += suspicion.of_free_nodes(reports, taken_at)
    return found + [suspicion.Passed(node) for node in asked["passed"]]


def lines(decisions: "list[Decision]") -> str:
    """Decisions for people."""
    return "".join(f"{each.node}: {'would ' if each.shadow else ''}{each.do}: {each.reason}\n" for each in decisions)


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "path": {"type": "path", "required": True},
            "nodes": {"type": "list", "elements": "str", "required": True},
            "spares": {"type": "list", "elements": "str", "default": []},
            "mode": {"type": "str", "choices": ["shadow", "enforce"], "default": "shadow"},
            "reports": {"type": "dict", "default": {}},
            "fences": {"type": "dict", "default": {}},
            "examinations": {"type": "dict", "default": {}},
            "passed": {"type": "list", "elements": "str", "default": [], "no_log": False},
            "busy": {"type": "list", "elements": "str", "default": []},
            "taken_at": {"type": "float"},
            "tests": {"type": "bool", "default": False},
            "ended": {"type": "dict", "default": {}},
            "released": {"type": "list", "elements": "str", "default": []},
            "share": {"type": "float", "default": 0.1},
            "window": {"type": "int", "default": 3600},
            "again": {"type": "int", "default": 604800},
            "stale": {"type": "int", "default": 300},
            "retry": {"type": "int", "default": 120},
        },
        supports_check_mode=True,
    )
    asked = module.params
    path = os.path.abspath(asked["path"])
    if not 0 < asked["share"] <= 1:
        module.fail_json(msg=f"share is {asked['share']}: give more than 0 and at most 1, such as 0.1 for a tenth.")
    unknown = sorted({*asked["released"], *asked["spares"]} - {*asked["nodes"]})
    if unknown:
        module.fail_json(msg=f"{', '.join(unknown)} is not among the nodes: give names as the inventory has them.")
    if not module.check_mode and not os.path.isdir(os.path.dirname(path)):
        module.fail_json(msg=f"There is no folder {os.path.dirname(path)}: make it first.")
    policy = Policy(
        asked["mode"], asked["share"], asked["window"], asked["again"], float(asked["stale"]), float(asked["retry"])
    )
    with alone(os.path.dirname(path)):
        now = time.time()
        # What was read since the run began is younger than what the clock, when it was ahead, wrote.
        limit = min(now, asked["taken_at"] or now) - 0.001
        try:
            before = text_of(path)
            fleet = controller.restore(before, asked["nodes"], asked["spares"])
            ahead = controller.without_future(fleet, limit, now)
        except Refusal as error:
            module.fail_json(msg=f"{path}: {error}")
        before_step = bool(module.check_mode and asked["tests"])
        reports, unread = read_all({} if before_step else asked["reports"])
        fences, more_unread = read_all(asked["fences"])
        examined, still_unread = read_all(asked["examinations"])
        seen = {**fences, **reports}
        suspicion.forget(fleet, now, policy)
        fleet, decisions = controller.advance(fleet, controller.of_fences(seen), now, policy)
        for observed in events(asked, fleet, reports, now):
            fleet, more = controller.advance(fleet, observed, now, policy)
            decisions += more
        said = about_suspects(asked, {**examined, **seen}, reports, now)
        fleet, more = controller.advance(fleet, said, now, policy)
        decisions += more
        after = controller.dump(fleet)
        # A first look that decides nothing leaves no file behind.
        changed = bool(decisions) if before is None else after != before
        if changed and not module.check_mode:
            try:
                write_file(path, after, 0o600)
            except OSError as error:
                module.fail_json(
                    msg=f"{path} cannot be written ({error.strerror}), and nothing is done to a node without it: make "
                    "room on this machine, or give another folder as health_directory."
                )
    told = (
        [f"{path} had {ahead} times after {now:.0f}, as the clock was ahead: they are taken as now."] if ahead else []
    )
    work, out, give_back = (
        controller.work(fleet, policy),
        controller.out_of_service(fleet),
        controller.to_give_back(fleet, seen),
    )
    unfenced = any(node in out and report.fence is None for node, report in seen.items())
    # Steps that a dry run did not carry out will have ended somehow, and their tests will have said something.
    predicted = bool(module.check_mode and (asked["ended"] or (asked["tests"] and asked["reports"])))
    testing = list(asked["ended"]) if module.check_mode else controller.states(fleet)["testing"]
    module.exit_json(
        changed=changed or predicted,
        # A reading that begins from now on is younger than this call.
        now=now + 0.001,
        decisions=[asdict(each) for each in decisions],
        work=work,
        out=out,
        give_back=give_back,
        due=asked["mode"] == "enforce" and bool(work or testing or decisions or give_back or unfenced),
        suspects=controller.suspects(fleet),
        examined=controller.examined(fleet),
        unread={**still_unread, **more_unread, **unread},
        told=told,
        testing=testing if asked["mode"] == "enforce" else [],
        diff={"before": "", "after": lines(decisions)} if decisions else {},
    )


if __name__ == "__main__":
    main()
