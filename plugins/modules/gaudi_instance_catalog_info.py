#!/usr/bin/python
# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Machines with Gaudi that clouds offer, and where each was seen."""

from __future__ import annotations

DOCUMENTATION = r"""
module: gaudi_instance_catalog_info
short_description: Find the types of machines that have Gaudi
version_added: 0.1.0
author:
  - gaudi3.scale contributors (@gaudi3)
description:
  - Answers from the collection's catalogue, where each type has a source and the day on which it was looked at.
  - With O(verify=true) it asks AWS and IBM Cloud, too, in which zones they offer the types today. AWS needs boto3 and
    credentials, IBM Cloud an API key in E(IC_API_KEY) or E(IBMCLOUD_API_KEY).
options:
  cloud:
    description:
      - Types of this cloud.
    type: str
    choices: [aws, azure, gcp, ibm, onprem]
  gaudi_generation:
    description:
      - Types with this generation of Gaudi.
    type: int
    choices: [1, 2, 3]
  region:
    description:
      - Types that are offered in this region. Types whose regions are not known are among them.
    type: str
  minimum_cards:
    description:
      - Types with at least this many cards.
    type: int
    default: 0
  names:
    description:
      - These types, whatever accelerator they have.
    type: list
    elements: str
    default: []
  refused:
    description:
      - Also types that the Terraform modules refuse, with the reason, and types that their clouds have withdrawn.
    type: bool
    default: false
  other_accelerators:
    description:
      - Also types whose accelerators are not Gaudi.
    type: bool
    default: false
  catalogue:
    description:
      - A file in the form of C(terraform/catalogue/instances.json), in place of the collection's.
    type: path
  verify:
    description:
      - Ask AWS and IBM Cloud for the zones of each of their types that is found, in O(region) or in all regions that
        the type has.
    type: bool
    default: false
  profile:
    description:
      - Profile of AWS's configuration. Without it boto3 looks for credentials in its usual places.
    type: str
extends_documentation_fragment:
  - gaudi3.scale.read_only
"""

EXAMPLES = r"""
- name: Find machines with Gaudi 3
  gaudi3.scale.gaudi_instance_catalog_info:
    gaudi_generation: 3
  register: found

- name: Show where each was seen
  ansible.builtin.debug:
    msg: "{{ item.name }} at {{ item.cloud }} ({{ item.source }}, {{ item.seen }})"
  loop: "{{ found.types }}"

- name: Ask IBM Cloud in which zones your account can have Gaudi 3
  gaudi3.scale.gaudi_instance_catalog_info:
    names: [gx3d-160x1792x8gaudi3]
    verify: true
  environment:
    IC_API_KEY: "{{ ibm_api_key }}"
  register: gaudi3
"""

RETURN = r"""
types:
  description: The types that fit, those with the newest Gaudi first. Null is not known.
  returned: success
  type: list
  elements: dict
  contains:
    name:
      description: Name of the type.
      type: str
      sample: gx3d-160x1792x8gaudi3
    cloud:
      description: Who has it.
      type: str
      sample: ibm
    accelerator:
      description: What its cards are.
      type: str
      sample: Intel Gaudi 3 (OAM)
    gaudi_generation:
      description: Generation of Gaudi; null for other accelerators.
      type: int
      sample: 3
    cards:
      description: Cards in one machine.
      type: int
      sample: 8
    regions:
      description: Where it is offered; empty where that is not known.
      type: list
      elements: str
      sample: [us-south, us-east, eu-de]
    prices:
      description: Prices with market, region, C(usd_per_hour), source and the day they were seen.
      type: list
      elements: dict
      sample: []
    refused:
      description: Why the Terraform modules refuse it; null where they take it.
      type: str
      sample: null
    withdrawn:
      description: Since when its cloud does not offer it, with the source and the day it was seen; null where it does.
      type: dict
      sample: null
    note:
      description: What else is to be known.
      type: str
      sample: null
    source:
      description: Where the facts were found.
      type: str
      sample: IBM Cloud VPC documentation
    source_date:
      description: Day of the facts themselves; null where the source has none.
      type: str
      sample: "2026-07-01"
    seen:
      description: Day on which the source was looked at.
      type: str
      sample: "2026-11-21"
    zones:
      description:
        - With O(verify=true), the zones by region in which its cloud offers it, an empty list where it does not.
        - Zones of IBM Cloud by the names that the account of the key has for them.
      type: dict
      sample: {us-east: [us-east-2, us-east-3]}
count:
  description: How many there are.
  returned: success
  type: int
  sample: 1
"""

import os
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule, missing_required_lib

from ansible_collections.gaudi3.scale.plugins.module_utils._cloud.aws import explain, offered_zones
from ansible_collections.gaudi3.scale.plugins.module_utils._cloud.catalogue import (
    CLOUDS,
    InstanceType,
    Question,
    read_catalogue,
    read_types,
    select,
)
from ansible_collections.gaudi3.scale.plugins.module_utils._cloud.ibm import Account
from ansible_collections.gaudi3.scale.plugins.module_utils._refusal import Refusal


def load(path: Any) -> dict[str, InstanceType]:
    """The catalogue that was given, or the collection's."""
    if path is None:
        from ansible_collections.gaudi3.scale.plugins.module_utils._cloud.instance_data import CATALOGUE

        return read_types(CATALOGUE)
    try:
        return read_catalogue(Path(path).read_text(encoding="utf-8"), str(path))
    except (OSError, UnicodeDecodeError):
        raise Refusal(f"catalogue is {path}, which cannot be read: give a file, or leave it out.") from None


def zones_of_ibm(module: AnsibleModule, name: str, regions: list[str]) -> dict[str, list[str]]:
    """The zones of IBM Cloud that offer a type, by region."""
    account = Account(os.environ)
    return {region: account.offered_zones(region, name) for region in regions}


def zones_of_aws(module: AnsibleModule, name: str, regions: list[str]) -> dict[str, list[str]]:
    """The zones of AWS that offer a type, by region."""
    try:
        import boto3
        from botocore.exceptions import BotoCoreError, ClientError
    except ImportError:
        module.fail_json(msg=missing_required_lib("boto3"))
    found = {}
    for region in regions:
        try:
            client = boto3.Session(profile_name=module.params["profile"]).client("ec2", region_name=region)
            found[region] = offered_zones(client, name)
        except (BotoCoreError, ClientError) as error:
            raise explain(error, region) from None
    return found


#: Who is asked where a cloud offers a type.
ASKED = {"aws": zones_of_aws, "ibm": zones_of_ibm}


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "cloud": {"type": "str", "choices": list(CLOUDS)},
            "gaudi_generation": {"type": "int", "choices": [1, 2, 3]},
            "region": {"type": "str"},
            "minimum_cards": {"type": "int", "default": 0},
            "names": {"type": "list", "elements": "str", "default": []},
            "refused": {"type": "bool", "default": False},
            "other_accelerators": {"type": "bool", "default": False},
            "catalogue": {"type": "path"},
            "verify": {"type": "bool", "default": False},
            "profile": {"type": "str"},
        },
        supports_check_mode=True,
    )
    asked = {key: value for key, value in module.params.items() if key in Question.__dataclass_fields__}
    try:
        found = select(load(module.params["catalogue"]), Question(**{**asked, "names": tuple(asked["names"])}))
        types = [each.as_dict() for each in found]
        if module.params["verify"]:
            for each, told in zip(found, types):
                if each.cloud in ASKED:
                    regions = [module.params["region"]] if module.params["region"] else list(each.regions)
                    told["zones"] = ASKED[each.cloud](module, each.name, regions)
    except Refusal as error:
        module.fail_json(msg=str(error))
    module.exit_json(changed=False, types=types, count=len(types))


if __name__ == "__main__":
    main()
