"""Which types fit what is asked for, and what is told of the others."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._cloud.catalogue import (
    Price,
    Question,
    read_catalogue,
    read_types,
    refuse,
    select,
)
from ansible_collections.gaudi3.scale.plugins.module_utils._cloud.instance_data import CATALOGUE
from ansible_collections.gaudi3.scale.plugins.module_utils._refusal import Refusal

ROOT = Path(__file__).resolve().parents[5]
TYPES = read_types(CATALOGUE)


def names(**asked: object) -> list[str]:
    return [each.name for each in select(TYPES, Question(**asked))]  # type: ignore[arg-type]


def test_the_module_has_the_same_catalogue_as_terraform() -> None:
    catalogue = json.loads((ROOT / "terraform/catalogue/instances.json").read_text())
    assert read_types(catalogue) == TYPES


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ({}, ["gx3d-160x1792x8gaudi3", "onprem-gaudi3-8", "onprem-gaudi2-8"]),
        ({"cloud": "aws"}, []),
        ({"gaudi_generation": 3, "cloud": "ibm"}, ["gx3d-160x1792x8gaudi3"]),
        ({"region": "us-west-2"}, ["onprem-gaudi3-8", "onprem-gaudi2-8"]),
        ({"names": ("dl1.24xlarge",)}, ["dl1.24xlarge"]),
        ({"minimum_cards": 9}, []),
        ({"cloud": "aws", "refused": True}, ["dl1.24xlarge", "dl2q.24xlarge", "dl2q.48xlarge"]),
        ({"names": ("p5.48xlarge",)}, ["p5.48xlarge"]),
        ({"names": ("p5.48xlarge",), "region": "eu-west-1"}, []),
        ({"cloud": "azure"}, []),
    ],
)
def test_what_fits(asked: dict[str, object], found: list[str]) -> None:
    assert names(**asked) == found


def test_other_accelerators_only_when_asked_for() -> None:
    assert "p5.48xlarge" not in names(cloud="aws")
    assert "p5.48xlarge" in names(cloud="aws", other_accelerators=True)


def test_a_type_that_is_not_there() -> None:
    with pytest.raises(Refusal, match=r"^The catalogue has no type dl3: give one of Standard_HX176rs, dl1.24xlarge, "):
        names(names=("dl3",))


def test_refusals_are_the_catalogues_own() -> None:
    refuse(TYPES, ["dl1.24xlarge", "unknown"], "aws")
    with pytest.raises(Refusal, match=r"^dl2q.24xlarge has Qualcomm AI 100 inference cards and no Gaudi: use"):
        refuse(TYPES, ["dl2q.24xlarge"], "aws")
    with pytest.raises(Refusal, match=r"^gx3d-160x1792x8gaudi3 is a type of ibm, not of aws: leave it out\.$"):
        refuse(TYPES, ["gx3d-160x1792x8gaudi3"], "aws")


def test_a_withdrawn_type_says_since_when() -> None:
    told = TYPES["dl1.24xlarge"].as_dict()["withdrawn"]
    assert (told["since"], told["seen"]) == ("2026-07-11", "2026-11-25")
    assert "DescribeInstanceTypes" in told["source"]
    assert TYPES["gx3d-160x1792x8gaudi3"].as_dict()["withdrawn"] is None


def test_prices_and_their_sources() -> None:
    price = TYPES["dl1.24xlarge"].on_demand("us-west-2")
    assert isinstance(price, Price)
    assert (price.usd_per_hour, price.seen, price.source_date) == (13.10904, "2026-11-21", "2021-10-26")
    assert TYPES["dl1.24xlarge"].on_demand("us-east-1") is None
    assert TYPES["dl1.24xlarge"].as_dict()["prices"][0]["market"] == "on-demand"


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"types": {"a": {"cloud": "aws"}}}'])
def test_a_catalogue_that_is_none(text: str) -> None:
    with pytest.raises(Refusal, match=r"^mine.json is no catalogue: give a file like terraform/catalogue"):
        read_catalogue(text, "mine.json")
