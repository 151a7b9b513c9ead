#!/usr/bin/python
# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Plan the rounds of the pair search, and judge them."""

from __future__ import annotations

DOCUMENTATION = r"""
module: gaudi_pair_search
short_description: Find slow nodes and links among many, round by round
version_added: 0.1.0
author:
  - gaudi3.scale contributors (@gaudi3)
description:
  - Plans what each node calls in the next round of the pair search, and judges the round before from the nodes'
    answers. The playbook C(gaudi3.scale.health) calls it at depth V(deep) until RV(done).
  - A round is a set of collectives of the vendor's C(hccl_demo) on disjoint nodes. The search names up to O(faults) bad
    nodes or links in at most RV(bound) rounds, and needs no knowledge of how they are cabled.
  - Runs on the controller and keeps nothing. What was judged is given back to it in O(passed).
options:
  nodes:
    description: The nodes that are searched, two or more. Their cards have to be free.
    type: list
    elements: str
    required: true
  addresses:
    description: The address of each node, at which the others reach it.
    type: dict
    required: true
  cards:
    description: How many cards each of them has.
    type: int
    required: true
  faults:
    description: How many bad nodes and links are looked for at most.
    type: int
    default: 2
  floors:
    description:
      - The least network bandwidth in GB/s that C(hccl_demo) may print, by its test, C(all2all) and C(send_recv).
      - Without a floor, a job is slow when it stands apart from eight or more of its kind in the same round.
    type: dict
    default: {}
  port:
    description: The port of the first job of a round on its first node. Further jobs take the next ones.
    type: int
    default: 5555
  timeout:
    description: Seconds that one job may take.
    type: int
    default: 300
  passed:
    description: RV(passed) of the call before.
    type: list
    elements: list
    default: []
  answers:
    description: C(rc), C(stdout) and C(stderr) of what RV(calls) of the call before named, by node.
    type: dict
extends_documentation_fragment:
  - gaudi3.scale.read_only
attributes:
  platform:
    description: The controller.
    platforms: posix
    support: full
seealso:
  - module: gaudi3.scale.gaudi_health_info
  - module: gaudi3.scale.gaudi_passport
"""

EXAMPLES = r"""
- name: Plan the first round
  gaudi3.scale.gaudi_pair_search:
    nodes: [gaudi-1, gaudi-2, gaudi-3, gaudi-4]
    addresses: {gaudi-1: 10.0.0.1, gaudi-2: 10.0.0.2, gaudi-3: 10.0.0.3, gaudi-4: 10.0.0.4}
    cards: 8
  delegate_to: localhost
  run_once: true
  register: search
"""

RETURN = r"""
done:
  description: Whether the search is at its end.
  returned: success
  type: bool
round:
  description: The number of the round that comes next; how many it took where RV(done).
  returned: success
  type: int
  sample: 1
bound:
  description: The most rounds that it takes, with at most O(faults) faults.
  returned: success
  type: int
  sample: 12
calls:
  description: What each node calls in that round, in the folder of C(hccl_demo); C(meeting) is its C(HCCL_COMM_ID).
  returned: success
  type: dict
  sample:
    gaudi-1: {argv: [timeout, "300", python3, run_hccl_demo.py, --nranks, "16"], meeting: "10.0.0.1:5555"}
passed:
  description: Which jobs passed, round by round.
  returned: success
  type: list
  elements: list
  sample: [[true, false]]
told:
  description: How the jobs of the round that was judged ended, a line for each.
  returned: success
  type: list
  elements: str
  sample: ["gaudi-1 gaudi-2: passed (31.5 GB/s)"]
nodes:
  description: The nodes that failed with every other one.
  returned: success
  type: list
  elements: str
  sample: []
links:
  description: Pairs of nodes that fail with each other alone.
  returned: success
  type: list
  elements: list
  sample: [[gaudi-1, gaudi-4]]
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.gaudi3.scale.plugins.module_utils._health.pair_jobs import calls, job_results, replay
from ansible_collections.gaudi3.scale.plugins.module_utils._health.pairs import SearchResult, bound
from ansible_collections.gaudi3.scale.plugins.module_utils._refusal import Refusal


def check(given: dict[str, Any]) -> None:
    """Refuse what no round can be planned of."""
    without = [node for node in given["nodes"] if not given["addresses"].get(node)]
    if without:
        raise Refusal(f"addresses has none of {', '.join(without)}: give each node's address on the cluster network.")
    for name, least in (("cards", 1), ("faults", 0), ("timeout", 1)):
        if given[name] < least:
            raise Refusal(f"{name} is {given[name]}: give {least} or more.")


def look(given: dict[str, Any]) -> dict[str, Any]:
    """Judge the answers, if there are any, and plan what comes next."""
    check(given)
    passed, told = [list(each) for each in given["passed"]], []
    if given["answers"] is not None:
        jobs = replay(given["nodes"], given["faults"], passed)
        if isinstance(jobs, SearchResult):
            raise Refusal("answers were given after the last round: begin a new search without passed and answers.")
        results = job_results(jobs, given["answers"], given["floors"], given["timeout"])
        told = [result.as_line for result in results]
        passed.append([not result.why for result in results])
        if not any(passed[0]):
            raise Refusal(
                "No pair of nodes passed, so none is known to be good. Look at the fabric and at hccl_demo itself. The "
                f"first of them said: {told[0]}."
            )
    following = replay(given["nodes"], given["faults"], passed)
    found = following if isinstance(following, SearchResult) else None
    planned = [] if isinstance(following, SearchResult) else following
    return {
        "done": found is not None,
        "round": len(passed) + (found is None),
        "bound": bound(len(given["nodes"]), given["faults"]),
        "calls": calls(planned, given["cards"], given["addresses"], given["port"], given["timeout"]),
        "passed": passed,
        "told": told,
        "nodes": found.nodes if found else [],
        "links": [list(link) for link in found.links] if found else [],
    }


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "nodes": {"type": "list", "elements": "str", "required": True},
            "addresses": {"type": "dict", "required": True},
            "cards": {"type": "int", "required": True},
            "faults": {"type": "int", "default": 2},
            "floors": {"type": "dict", "default": {}},
            "port": {"type": "int", "default": 5555},
            "timeout": {"type": "int", "default": 300},
            "passed": {"type": "list", "elements": "list", "default": [], "no_log": False},
            "answers": {"type": "dict"},
        },
        supports_check_mode=True,
    )
    try:
        module.exit_json(changed=False, **look(module.params))
    except Refusal as error:
        module.fail_json(msg=str(error))


if __name__ == "__main__":
    main()
