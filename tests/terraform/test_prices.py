"""The modules that ask clouds, as they run. moto is in AWS's place and asks the same price at all times and places; the
simulated cloud is in IBM's."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .conftest import ROOT
from .support.account import Account, moto_account
from .support.ibm_account import ibm_account
from .support.tool import clean_environment


@pytest.fixture(scope="module")
def account(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Account]:
    with moto_account(tmp_path_factory.mktemp("account"), "us-west-2") as made:
        yield made


def ask(module: str, environment: dict[str, str], **options: Any) -> dict[str, Any]:
    """A module's answer on this machine."""
    command = [str(Path(sys.executable).with_name("ansible")), "localhost", "-m", f"gaudi3.scale.{module}"]
    done = subprocess.run(
        [*command, "-a", json.dumps(options)],
        cwd=ROOT,
        env={
            **clean_environment(),
            "ANSIBLE_LOAD_CALLBACK_PLUGINS": "true",
            "ANSIBLE_STDOUT_CALLBACK": "ansible.posix.json",
            **environment,
        },
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    report = json.JSONDecoder().raw_decode(done.stdout[done.stdout.index("{\n") :])[0]
    return dict(report["plays"][0]["tasks"][0]["hosts"]["localhost"])


def test_spot_prices(account: Account) -> None:
    found = ask(
        "gaudi_spot_price_info",
        account.environment,
        instance_types=["dl1.24xlarge"],
        on_demand_usd_per_hour={"dl1.24xlarge": 0.00004},
    )
    regions = {each["region"]: [zone["zone"] for zone in each["zones"]] for each in found["prices"]}
    assert sorted(regions) == ["us-east-1", "us-west-2"]  # the catalogue's
    assert "us-west-2a" in regions["us-west-2"]
    for each in found["prices"]:
        assert {zone["current"] for zone in each["zones"]} == {0.00001}
        assert each["on_demand"] == {"usd_per_hour": 0.00004, "source": "as given"}
        assert each["savings_percent"] == 75.0
    assert (found["cheapest"]["instance_type"], found["cheapest"]["current"]) == ("dl1.24xlarge", 0.00001)
    assert found["changed"] is False


def test_a_price_on_demand_that_is_not_known_is_not_made_up(account: Account) -> None:
    found = ask(
        "gaudi_spot_price_info",
        account.environment,
        instance_types=["dl1.24xlarge"],
        regions=["us-west-2", "us-east-1"],
    )
    told = {each["region"]: (each["on_demand"] or {}).get("usd_per_hour") for each in found["prices"]}
    assert told == {"us-west-2": 13.10904, "us-east-1": None}
    assert [each["savings_percent"] is None for each in found["prices"]] == [False, True]


def test_the_zones_that_aws_says(account: Account) -> None:
    found = ask("gaudi_instance_catalog_info", account.environment, names=["dl1.24xlarge"], verify=True)
    (dl1,) = found["types"]
    assert sorted(dl1["zones"]) == ["us-east-1", "us-west-2"]
    assert "us-west-2a" in dl1["zones"]["us-west-2"]


def test_the_zones_that_ibm_says(tmp_path: Path) -> None:
    with ibm_account(tmp_path) as ibm:
        names = ["gx3d-160x1792x8gaudi3"]
        found = ask("gaudi_instance_catalog_info", ibm.environment, names=names, region="us-east", verify=True)
        refused = ask("gaudi_instance_catalog_info", {**ibm.environment, "IC_API_KEY": ""}, names=names, verify=True)
    (gaudi3,) = found["types"]
    assert gaudi3["zones"] == {"us-east": ["us-east-2", "us-east-3"]}
    assert refused["msg"] == ("IBM Cloud was not asked, as there is no API key: set IC_API_KEY or IBMCLOUD_API_KEY.")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"regions": []}, "regions is empty, and the catalogue knows none of my.type: give regions such as us-west-2."),
        ({"hours": 0}, "hours is 0: give 1 to 2160, as AWS keeps 90 days."),
        (
            {"regions": ["oregon"]},
            "regions has oregon, which is no region of AWS: give regions such as us-west-2.",
        ),
    ],
)
def test_wrong_questions(options: dict[str, Any], sentence: str) -> None:
    assert ask("gaudi_spot_price_info", {}, instance_types=["my.type"], **options)["msg"] == sentence


def test_without_credentials() -> None:
    nobody = {
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
    }
    found = ask("gaudi_spot_price_info", nobody, instance_types=["dl1.24xlarge"])
    assert found["msg"].startswith("AWS was not asked, as there are no credentials (Unable to locate credentials): set")
