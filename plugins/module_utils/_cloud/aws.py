# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""What is asked of AWS, through boto3's clients. The clients come from outside, so that nothing is imported here."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any, Optional

from .._refusal import Refusal
from .spot_price import Change, price_list_usd

#: The regions that answer for the price list, by partition's first region; us-east-1 has all of them.
PRICE_LIST_REGION = "us-east-1"
REGION = re.compile(r"[a-z]{2}(-[a-z]+)+-[0-9]")


def explain(error: Exception, region: str) -> Refusal:
    """An error of botocore in one sentence."""
    name, text = type(error).__name__, " ".join(str(error).split()).rstrip(".")
    if name in ("NoCredentialsError", "PartialCredentialsError", "ProfileNotFound"):
        return Refusal(
            f"AWS was not asked, as there are no credentials ({text}): set AWS_PROFILE or AWS_ACCESS_KEY_ID and "
            "AWS_SECRET_ACCESS_KEY, or give profile."
        )
    if name == "EndpointConnectionError":
        return Refusal(f"Region {region} does not answer ({text}): give a region of AWS that your account has.")
    return Refusal(f"AWS refused in {region}: {text}.")


def check_regions(regions: list[str]) -> None:
    """Raise for what is no region."""
    wrong = [region for region in regions if not REGION.fullmatch(region)]
    if wrong:
        raise Refusal(f"regions has {', '.join(wrong)}, which is no region of AWS: give regions such as us-west-2.")


def offered_zones(client: Any, instance_type: str) -> list[str]:
    """Availability zones of the client's region that offer a type; empty where none does."""
    pages = client.get_paginator("describe_instance_type_offerings").paginate(
        LocationType="availability-zone", Filters=[{"Name": "instance-type", "Values": [instance_type]}]
    )
    return sorted({each["Location"] for page in pages for each in page["InstanceTypeOfferings"]})


def price_changes(
    client: Any, instance_type: str, start: datetime, end: datetime, product: str = "Linux/UNIX"
) -> Iterator[Change]:
    """The spot market's prices of a type in the client's region, with what was in force at ``start``."""
    pages = client.get_paginator("describe_spot_price_history").paginate(
        InstanceTypes=[instance_type], ProductDescriptions=[product], StartTime=start, EndTime=end
    )
    for page in pages:
        for each in page["SpotPriceHistory"]:
            yield Change(each["AvailabilityZone"], each["Timestamp"], float(each["SpotPrice"]))


def on_demand_usd(client: Any, instance_type: str, region: str) -> Optional[float]:
    """The price list's hourly price of Linux on demand; None where it has none. The client is one of ``pricing``."""
    wanted = {
        "instanceType": instance_type,
        "regionCode": region,
        "operatingSystem": "Linux",
        "tenancy": "Shared",
        "preInstalledSw": "NA",
        "capacitystatus": "Used",
    }
    filters = [{"Type": "TERM_MATCH", "Field": field, "Value": value} for field, value in wanted.items()]
    pages = client.get_paginator("get_products").paginate(ServiceCode="AmazonEC2", Filters=filters)
    return price_list_usd(entry for page in pages for entry in page["PriceList"])
