#!/usr/bin/python
# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""What AWS's spot market asks for machines, zone by zone, and what that saves."""

from __future__ import annotations

DOCUMENTATION = r"""
module: gaudi_spot_price_info
short_description: Ask AWS for spot prices and what they save
version_added: 0.1.0
author:
  - gaudi3.scale contributors (@gaudi3)
description:
  - Asks C(DescribeSpotPriceHistory) of EC2 for each type in each region, and sums it up zone by zone.
  - A saving is reported where the price on demand is known, from the catalogue, from AWS's price list or from you. No
    price is made up.
requirements:
  - boto3, and credentials that may call C(ec2:DescribeSpotPriceHistory) and, for the price list, C(pricing:GetProducts)
options:
  instance_types:
    description:
      - Types of EC2.
    type: list
    elements: str
    required: true
  regions:
    description:
      - Regions of AWS. Without it, those that the catalogue knows of each type.
    type: list
    elements: str
    default: []
  hours:
    description:
      - How far to look back; AWS keeps 90 days.
    type: int
    default: 24
  product:
    description:
      - Product description of the prices.
    type: str
    default: Linux/UNIX
  on_demand_from:
    description:
      - Where the price on demand is taken from; V(price_list) asks AWS.
    type: str
    choices: [catalogue, price_list]
    default: catalogue
  on_demand_usd_per_hour:
    description:
      - Your own prices on demand by type, in USD for one machine and hour. They take precedence over all others.
    type: dict
    default: {}
  profile:
    description:
      - Profile of AWS's configuration. Without it boto3 looks for credentials in its usual places.
    type: str
extends_documentation_fragment:
  - gaudi3.scale.read_only
"""

EXAMPLES = r"""
- name: Ask for the last three days
  gaudi3.scale.gaudi_spot_price_info:
    instance_types: [p5.48xlarge]
    hours: 72
    on_demand_from: price_list
  register: spot

- name: Take the zone that asks least
  ansible.builtin.debug:
    msg: "{{ spot.cheapest.zone }}: {{ spot.cheapest.current }} USD per hour"
  when: spot.cheapest
"""

RETURN = r"""
prices:
  description: One entry for each type and region.
  returned: success
  type: list
  elements: dict
  contains:
    instance_type:
      description: The type.
      type: str
      sample: p5.48xlarge
    region:
      description: The region.
      type: str
      sample: us-west-2
    zones:
      description:
        - The zones, the cheapest first. Each has C(zone), C(current), C(since), C(minimum), C(maximum), C(mean)
          (weighted by time) and C(changes).
        - Empty where the market has no price.
      type: list
      elements: dict
      sample: [{zone: us-west-2a, current: 3.9, minimum: 3.9, maximum: 4.1, mean: 4.0, changes: 1}]
    on_demand:
      description: The price on demand with its source; null where it is not known.
      type: dict
      contains:
        usd_per_hour:
          description: USD for one machine and hour.
          type: float
          sample: 13.0
        source:
          description: Where it is from, with the day.
          type: str
          sample: as given
    savings_percent:
      description: How much less the cheapest zone asks now; null where no price on demand is known.
      type: float
      sample: 70.0
cheapest:
  description: The zone that asks least now, with C(instance_type) and C(region); null where there is no price at all.
  returned: success
  type: dict
  sample: {instance_type: p5.48xlarge, region: us-west-2, zone: us-west-2a, current: 3.9}
"""

from datetime import datetime, timedelta, timezone
from typing import Any, Optional

from ansible.module_utils.basic import AnsibleModule, missing_required_lib

from ansible_collections.gaudi3.scale.plugins.module_utils._cloud.aws import (
    PRICE_LIST_REGION,
    check_regions,
    explain,
    on_demand_usd,
    price_changes,
)
from ansible_collections.gaudi3.scale.plugins.module_utils._cloud.catalogue import InstanceType, read_types, refuse
from ansible_collections.gaudi3.scale.plugins.module_utils._cloud.instance_data import CATALOGUE
from ansible_collections.gaudi3.scale.plugins.module_utils._cloud.spot_price import savings_percent, summarise
from ansible_collections.gaudi3.scale.plugins.module_utils._refusal import Refusal

#: AWS keeps the history of 90 days.
MAX_HOURS = 90 * 24


def places(given: dict[str, Any], types: dict[str, InstanceType]) -> list[tuple[str, str]]:
    """(type, region) of all that is asked for."""
    if not 1 <= given["hours"] <= MAX_HOURS:
        raise Refusal(f"hours is {given['hours']}: give 1 to {MAX_HOURS}, as AWS keeps 90 days.")
    check_regions(given["regions"])
    refuse(types, given["instance_types"], "aws")
    found = []
    for name in given["instance_types"]:
        regions = given["regions"] or (list(types[name].regions) if name in types else [])
        if not regions:
            raise Refusal(f"regions is empty, and the catalogue knows none of {name}: give regions such as us-west-2.")
        found += [(name, region) for region in regions]
    return found


def on_demand(
    given: dict[str, Any], name: str, region: str, known: Optional[InstanceType], session: Any
) -> Optional[dict[str, Any]]:
    """The price on demand and its source."""
    own = given["on_demand_usd_per_hour"].get(name)
    if own is not None:
        return {"usd_per_hour": float(own), "source": "as given"}
    if given["on_demand_from"] == "price_list":
        usd = on_demand_usd(session.client("pricing", region_name=PRICE_LIST_REGION), name, region)
        today = datetime.now(timezone.utc).date().isoformat()
        return None if usd is None else {"usd_per_hour": usd, "source": f"AWS Price List, {today}"}
    price = known.on_demand(region) if known else None
    return None if price is None else {"usd_per_hour": price.usd_per_hour, "source": f"{price.source}, {price.seen}"}


def price(given: dict[str, Any], name: str, region: str, known: Optional[InstanceType], session: Any) -> dict[str, Any]:
    """What one type asks in one region, by zone, beside its price on demand."""
    end = datetime.now(timezone.utc)
    start = end - timedelta(hours=given["hours"])
    changes = price_changes(session.client("ec2", region_name=region), name, start, end, given["product"])
    zones = summarise(changes, start, end)
    asked = on_demand(given, name, region, known, session)
    least = zones[0].current if zones else None
    return {
        "instance_type": name,
        "region": region,
        "zones": [zone.as_dict() for zone in zones],
        "on_demand": asked,
        "savings_percent": savings_percent(least, asked["usd_per_hour"]) if least is not None and asked else None,
    }


def cheapest(prices: list[dict[str, Any]]) -> Optional[dict[str, Any]]:
    """The zone that asks least; None without one."""
    offers = [
        {"instance_type": each["instance_type"], "region": each["region"], **zone}
        for each in prices
        for zone in each["zones"]
    ]
    return min(offers, key=lambda each: each["current"], default=None)


def ask(module: AnsibleModule) -> list[dict[str, Any]]:
    """The price of every type in every region that is asked for."""
    given, types = module.params, read_types(CATALOGUE)
    wanted = places(given, types)
    try:
        import boto3
        from botocore.exceptions import BotoCoreError, ClientError
    except ImportError:
        module.fail_json(msg=missing_required_lib("boto3"))
    found = []
    for name, region in wanted:
        try:
            session = boto3.Session(profile_name=given["profile"])
            found.append(price(given, name, region, types.get(name), session))
        except (BotoCoreError, ClientError) as error:
            raise explain(error, region) from None
    return found


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "instance_types": {"type": "list", "elements": "str", "required": True},
            "regions": {"type": "list", "elements": "str", "default": []},
            "hours": {"type": "int", "default": 24},
            "product": {"type": "str", "default": "Linux/UNIX"},
            "on_demand_from": {"type": "str", "choices": ["catalogue", "price_list"], "default": "catalogue"},
            "on_demand_usd_per_hour": {"type": "dict", "default": {}},
            "profile": {"type": "str"},
        },
        supports_check_mode=True,
    )
    try:
        prices = ask(module)
    except Refusal as error:
        module.fail_json(msg=str(error))
    module.exit_json(changed=False, prices=prices, cheapest=cheapest(prices))


if __name__ == "__main__":
    main()
