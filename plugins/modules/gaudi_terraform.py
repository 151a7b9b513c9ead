#!/usr/bin/python
# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Machines made, changed and removed by terraform, with a plan that tells the truth."""

from __future__ import annotations

DOCUMENTATION = r"""
module: gaudi_terraform
short_description: Make, change and remove machines with Terraform
version_added: 0.1.0
author:
  - gaudi3.scale contributors (@gaudi3)
description:
  - Plans in a workspace of a Terraform project, applies what was planned, and returns the outputs.
  - In check mode it plans and does no more. What it then tells is what the real run does.
  - A plan that would destroy or replace running machines is refused, unless O(allow_replace=true). A machine that
    the output C(cluster_endpoints) has not named yet is none, as nothing runs on it. A plan that would replace a key or
    a bucket is always refused.
  - With O(state=absent) a bucket with checkpoints in it stays, with its key and all that guards it, unless the variable
    C(destroy_checkpoints) is true. On AWS (which needs C(boto3)) and IBM Cloud it is looked into; where that cannot be,
    it stays.
  - On IBM Cloud a bucket with flow logs in it stays with O(state=absent), with the storage instance. Delete the logs
    and run the same again to end it.
  - Interrupted and run again it continues, as far as Terraform's state knows what was made.
notes:
  - The state lies where the project's backend puts it, without one in C(terraform.tfstate.d) of O(project_path).
    What is made there is readable by its user alone.
  - Works on the same workspaces as C(gaudi3-deploy).
options:
  project_path:
    description:
      - Folder of the root module, such as C(terraform/aws).
      - It must not be a folder of an installed collection, as the next installation would delete the state in it.
    type: path
    required: true
  workspace:
    description:
      - Terraform's workspace. It is made when it is first used, and removed with O(state=absent).
    type: str
    required: true
  state:
    description:
      - V(present) makes what is wanted, V(absent) destroys all that the workspace has but checkpoints.
    type: str
    choices: [present, absent]
    default: present
  variables:
    description:
      - Variables of the root module. Pass secrets by the environment of the module instead.
    type: dict
    default: {}
  allow_replace:
    description:
      - Accept a plan that destroys or replaces running machines. O(state=absent) needs no such consent.
    type: bool
    default: false
  executable:
    description:
      - Terraform's executable; a name is looked up on PATH.
    type: str
    default: terraform
  lock_timeout:
    description:
      - How long to wait for somebody else's lock of the state, in seconds.
    type: int
    default: 300
  timeout:
    description:
      - How long one command of Terraform may take, in seconds. It is then interrupted as if by Ctrl-C, so that it
        writes its state and gives its lock back.
    type: int
    default: 7200
attributes:
  check_mode:
    description: Changes nothing, and tells exactly what would be changed.
    support: full
  diff_mode:
    description: Shows what would change.
    support: full
"""

EXAMPLES = r"""
- name: One node of IBM Cloud, which is reached through a jump host
  gaudi3.scale.gaudi_terraform:
    project_path: terraform/ibm
    workspace: trial
    variables:
      cluster_size: 8
      instance_type: gx3d-160x1792x8gaudi3
      jump_host: ops@198.51.100.7
      allowed_cidrs: [198.51.100.7/32]
      ssh_public_key: "{{ lookup('ansible.builtin.file', '~/.ssh/id_ed25519.pub') }}"
  register: trial

- name: Where training processes meet
  ansible.builtin.debug:
    var: trial.outputs.master_ip

- name: Remove it
  gaudi3.scale.gaudi_terraform:
    project_path: terraform/ibm
    workspace: trial
    state: absent
    variables:
      cluster_size: 8
      instance_type: gx3d-160x1792x8gaudi3
      ssh_public_key: "{{ lookup('ansible.builtin.file', '~/.ssh/id_ed25519.pub') }}"
"""

RETURN = r"""
plan:
  description: Addresses of the resources that were changed, or would be in check mode.
  returned: success
  type: dict
  contains:
    create:
      description: Made new.
      type: list
      elements: str
      sample: ['module.cluster.aws_instance.node["trial-03"]']
    update:
      description: Changed where they are.
      type: list
      elements: str
      sample: []
    replace:
      description: Destroyed and made again.
      type: list
      elements: str
      sample: []
    delete:
      description: Destroyed.
      type: list
      elements: str
      sample: []
    adopt:
      description: There already, and only written down.
      type: list
      elements: str
      sample: []
    outputs:
      description: Names of outputs that change.
      type: list
      elements: str
      sample: [cluster_endpoints]
kept:
  description: Addresses of the storage of checkpoints, or of flow logs, that stays with O(state=absent).
  returned: success
  type: list
  elements: str
  sample: []
outputs:
  description: The outputs' values by name, as they are afterwards; in check mode as they are now.
  returned: success
  type: dict
  sample: {master_ip: 10.42.16.5}
"""

import os
import shutil
from collections.abc import Mapping
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.gaudi3.scale.plugins.module_utils._cloud.ibm import Account
from ansible_collections.gaudi3.scale.plugins.module_utils._refusal import Refusal
from ansible_collections.gaudi3.scale.plugins.module_utils._terraform.plan import Plan
from ansible_collections.gaudi3.scale.plugins.module_utils._terraform.project import Project
from ansible_collections.gaudi3.scale.plugins.module_utils._terraform.storage import (
    bucket,
    is_marked,
    logs,
    marks,
    stays_when_tainted,
)


def run(module: AnsibleModule) -> None:
    """Plan, and apply the plan."""
    given = module.params
    folder, absent = os.path.realpath(given["project_path"]), given["state"] == "absent"
    if not os.path.isdir(folder) or not any(name.endswith(".tf") for name in os.listdir(folder)):
        raise Refusal(
            f"project_path is {given['project_path']}, where no Terraform configuration is: give the folder of a root "
            "module, such as terraform/aws."
        )
    if f"{os.sep}ansible_collections{os.sep}" in folder:
        raise Refusal(
            f"project_path is {folder}, in an installed collection, whose next installation would delete the state: "
            f"copy {os.path.dirname(folder)} to a folder of yours, and give its {os.path.basename(folder)}."
        )
    executable = shutil.which(given["executable"])
    if executable is None:
        raise Refusal(
            f"executable is {given['executable']}, which is not on this machine: install Terraform 1.9 or newer, or "
            "name it here."
        )
    project = Project(folder, given["workspace"], executable, given["lock_timeout"], given["timeout"])
    project.init()
    kept: list[str] = []
    if absent:
        kept, plan, planned = plan_the_end(module, project)
    else:
        if not module.check_mode:
            project.keep_half_made()
        plan, planned = project.plan(given["variables"], module.tmpdir, False)
        if module.check_mode and plan.storage_lost:
            # Of these, the real run would have taken the mark away.
            marked = {each.address for each in project.state().resources if each.tainted and stays_when_tainted(each)}
            plan.storage_lost = [each for each in plan.storage_lost if each not in marked]
        if plan.storage_lost:
            raise Refusal(
                f"The plan destroys or replaces what checkpoints lie in or are encrypted with "
                f"({', '.join(plan.storage_lost)}): change what is asked for."
            )
    for sentence in [] if absent else plan.warnings:
        module.warn(sentence)
    if plan.machines_lost and not absent and not given["allow_replace"]:
        raise Refusal(
            f"The plan destroys or replaces {len(plan.machines_lost)} running machines "
            f"({', '.join(plan.machines_lost[:4])}): change what is asked for, or accept it with allow_replace."
        )
    if plan.changed and not module.check_mode:
        project.apply(planned)
    outputs = project.outputs()
    # Also where there was nothing to destroy: a run that was interrupted before this leaves an empty workspace.
    if absent and not module.check_mode and not kept and not project.state().resources:
        project.forget()
    module.exit_json(
        changed=plan.changed,
        plan={**plan.changes(), "outputs": plan.outputs},
        outputs=outputs,
        diff=plan.diff(),
        kept=kept,
    )


def plan_the_end(module: AnsibleModule, project: Project) -> tuple[list[str], Plan, str]:
    """What stays, and the plan that destroys the rest."""
    variables, state = module.params["variables"], project.state()
    found, log = bucket(state), logs(state)
    destroyed = bool(variables.get("destroy_checkpoints"))
    kept: set[str] = set()
    if found is not None and not destroyed and may_hold_something(found.type, found.attributes):
        kept |= state.storage()
    if log is not None and may_hold_something(log.type, log.attributes):
        kept |= state.with_needs([log])
    if found is not None and destroyed and not module.check_mode and not is_marked(found):
        # Terraform deletes a bucket with what is in it only where its state says so already.
        marked, planned = project.plan(variables, module.tmpdir, False, marks(state, found))
        if marked.update and not (marked.create or marked.replace or marked.delete):
            project.apply(planned)
    if not kept:
        return [], *project.plan(variables, module.tmpdir, True)
    going = sorted({each.configured for each in state.resources if each.address not in kept})
    if not going:
        return sorted(kept), Plan(), ""
    return sorted(kept), *project.plan(variables, module.tmpdir, True, going)


def may_hold_something(kind: str, attributes: Mapping[str, Any]) -> bool:
    """Whether a bucket has an object or a version of one; true where it cannot be looked into."""
    try:
        if kind == "ibm_cos_bucket":
            return Account(os.environ).holds_anything(attributes["bucket_name"], attributes["region_location"])
        if kind == "aws_s3_bucket":
            return _s3_holds_anything(attributes)
    except Exception:  # Whatever the reason: what was not seen to be empty is kept.
        return True
    return True


def _s3_holds_anything(attributes: Mapping[str, Any]) -> bool:
    import boto3

    client = boto3.client("s3", region_name=attributes.get("region"))
    found = client.list_object_versions(Bucket=attributes["bucket"], MaxKeys=1)
    return bool(found.get("Versions") or found.get("DeleteMarkers"))


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "project_path": {"type": "path", "required": True},
            "workspace": {"type": "str", "required": True},
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
            "variables": {"type": "dict", "default": {}},
            "allow_replace": {"type": "bool", "default": False},
            "executable": {"type": "str", "default": "terraform"},
            "lock_timeout": {"type": "int", "default": 300},
            "timeout": {"type": "int", "default": 7200},
        },
        supports_check_mode=True,
    )
    try:
        run(module)
    except Refusal as error:
        module.fail_json(msg=str(error))


if __name__ == "__main__":
    main()
