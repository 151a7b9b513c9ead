"""Prices summed up zone by zone, and AWS asked through botocore's own stand-in for its answers (Stubber)."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError, EndpointConnectionError, NoCredentialsError
from botocore.stub import Stubber

from ansible_collections.gaudi3.scale.plugins.module_utils._cloud.aws import (
    check_regions,
    explain,
    offered_zones,
    on_demand_usd,
    price_changes,
)
from ansible_collections.gaudi3.scale.plugins.module_utils._cloud.spot_price import (
    Change,
    price_list_usd,
    savings_percent,
    summarise,
)
from ansible_collections.gaudi3.scale.plugins.module_utils._refusal import Refusal

END = datetime(2026, 11, 21, 12, tzinfo=UTC)
START = END - timedelta(hours=10)


def change(zone: str, hours_before_the_end: float, usd: float) -> Change:
    return Change(zone, END - timedelta(hours=hours_before_the_end), usd)


def test_the_mean_is_weighted_by_time() -> None:
    changes = [change("a", 2, 6.0), change("a", 30, 99.0), change("a", 20, 4.0), change("a", 5, 5.0)]
    (zone,) = summarise(changes, START, END)
    assert zone.as_dict() == {
        "zone": "a",
        "current": 6.0,
        "since": "2026-11-21T10:00:00+00:00",
        "minimum": 4.0,
        "maximum": 6.0,
        "mean": (5 * 4.0 + 3 * 5.0 + 2 * 6.0) / 10,
        "changes": 2,
    }


def test_a_zone_that_came_later_counts_from_then_on() -> None:
    (zone,) = summarise([change("a", 4, 4.0), change("a", 1, 8.0)], START, END)
    assert (zone.mean, zone.changes) == ((3 * 4.0 + 1 * 8.0) / 4, 1)


def test_the_cheapest_zone_is_first_and_no_price_is_no_zone() -> None:
    zones = summarise([change("a", 20, 4.0), change("b", 20, 3.0), change("c", 20, 3.5)], START, END)
    assert [zone.zone for zone in zones] == ["b", "c", "a"]
    assert summarise([], START, END) == []
    assert summarise([Change("a", END + timedelta(hours=1), 1.0)], START, END) == []


@pytest.mark.parametrize(
    ("spot", "on_demand", "saved"), [(3.9, 13.0, 70.0), (13.0, 13.0, 0.0), (14.3, 13.0, -10.0), (3.9, None, None)]
)
def test_savings(spot: float, on_demand: float | None, saved: float | None) -> None:
    assert savings_percent(spot, on_demand) == saved


def client(service: str) -> Any:
    return boto3.client(service, region_name="us-west-2", aws_access_key_id="x", aws_secret_access_key="x")


def test_all_pages_of_the_history_are_read() -> None:
    ec2 = client("ec2")

    def answer(usd: str, token: str) -> dict[str, Any]:
        entry = {"AvailabilityZone": "us-west-2a", "InstanceType": "dl1.24xlarge", "SpotPrice": usd, "Timestamp": START}
        return {"SpotPriceHistory": [entry], "NextToken": token}

    asked = {
        "InstanceTypes": ["dl1.24xlarge"],
        "ProductDescriptions": ["Linux/UNIX"],
        "StartTime": START,
        "EndTime": END,
    }
    with Stubber(ec2) as stub:
        stub.add_response("describe_spot_price_history", answer("3.9001", "more"), asked)
        stub.add_response("describe_spot_price_history", answer("4.2", ""), {**asked, "NextToken": "more"})
        found = list(price_changes(ec2, "dl1.24xlarge", START, END))
    assert found == [Change("us-west-2a", START, 3.9001), Change("us-west-2a", START, 4.2)]


def test_the_zones_that_offer_a_type() -> None:
    ec2 = client("ec2")
    filters = [{"Name": "instance-type", "Values": ["dl1.24xlarge"]}]
    offers = [{"InstanceType": "dl1.24xlarge", "Location": zone} for zone in ("us-west-2c", "us-west-2a")]
    with Stubber(ec2) as stub:
        stub.add_response(
            "describe_instance_type_offerings",
            {"InstanceTypeOfferings": offers},
            {"LocationType": "availability-zone", "Filters": filters},
        )
        assert offered_zones(ec2, "dl1.24xlarge") == ["us-west-2a", "us-west-2c"]


def product(usd: str, unit: str = "Hrs") -> str:
    dimension = {"unit": unit, "pricePerUnit": {"USD": usd}}
    return json.dumps({"product": {}, "terms": {"OnDemand": {"A.B": {"priceDimensions": {"A.B.C": dimension}}}}})


def test_the_price_list() -> None:
    pricing = client("pricing")
    wanted = {
        "instanceType": "dl1.24xlarge", "regionCode": "us-west-2", "operatingSystem": "Linux", "tenancy": "Shared",
        "preInstalledSw": "NA", "capacitystatus": "Used",
    }  # fmt: skip
    filters = [{"Type": "TERM_MATCH", "Field": field, "Value": value} for field, value in wanted.items()]
    with Stubber(pricing) as stub:
        stub.add_response(
            "get_products",
            {"PriceList": [product("13.1090400000")]},
            {"ServiceCode": "AmazonEC2", "Filters": filters},
        )
        assert on_demand_usd(pricing, "dl1.24xlarge", "us-west-2") == 13.10904


@pytest.mark.parametrize(
    ("entries", "usd"),
    [
        ([], None),
        ([product("0.0000000000")], None),
        ([product("5.0", "Quantity")], None),
        ([product("5.0"), product("5.0")], 5.0),
        ([product("5.0"), product("6.0")], None),
        (["{}"], None),
    ],
    ids=["none", "free", "not by the hour", "twice the same", "two prices", "no terms"],
)
def test_a_price_that_is_not_clear_is_none(entries: list[str], usd: float | None) -> None:
    assert price_list_usd(entries) == usd


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (
            NoCredentialsError(),
            "AWS was not asked, as there are no credentials (Unable to locate credentials): set AWS_PROFILE or "
            "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or give profile.",
        ),
        (
            EndpointConnectionError(endpoint_url="https://ec2.xx-west-9.amazonaws.com/"),
            'Region xx-west-9 does not answer (Could not connect to the endpoint URL: "https://ec2.xx-west-9.'
            'amazonaws.com/"): give a region of AWS that your account has.',
        ),
        (
            ClientError({"Error": {"Code": "UnauthorizedOperation", "Message": "Not yours."}}, "DescribeX"),
            "AWS refused in xx-west-9: An error occurred (UnauthorizedOperation) when calling the DescribeX operation: "
            "Not yours.",
        ),
    ],
)
def test_errors_in_a_sentence(error: Exception, sentence: str) -> None:
    assert str(explain(error, "xx-west-9")) == sentence


def test_what_is_no_region() -> None:
    check_regions(["us-west-2", "us-gov-west-1", "ap-southeast-3"])
    with pytest.raises(Refusal, match=r"^regions has oregon, us-west-2a, which is no region of AWS: give regions such"):
        check_regions(["us-west-2", "oregon", "us-west-2a"])
