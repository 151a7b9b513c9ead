"""What stays of a state when machines go, and what an interrupted apply may leave marked."""

from __future__ import annotations

from typing import Any

from ansible_collections.gaudi3.scale.plugins.module_utils._terraform.storage import (
    block_of,
    bucket,
    marks,
    storage,
    to_be_kept_as_they_are,
)


def resource(address: str, *needs: str, key: Any = None, status: str = "", **attributes: str) -> dict[str, Any]:
    kind, name = address.split(".")
    instance = {"attributes": attributes, "dependencies": [f"module.cluster.{each}" for each in needs]}
    instance |= {"index_key": key} if key is not None else {}
    instance |= {"status": status} if status else {}
    return {"mode": "managed", "module": "module.cluster", "type": kind, "name": name, "instances": [instance]}


def test_storage_stays_with_what_it_needs_and_nothing_else() -> None:
    state = {
        "resources": [
            resource("aws_kms_key.cluster"),
            resource("aws_kms_alias.cluster", "aws_kms_key.cluster"),
            resource("aws_s3_bucket.checkpoints", "aws_kms_key.cluster", bucket="demo-checkpoints-1"),
            resource("aws_s3_bucket_policy.checkpoints", "aws_s3_bucket.checkpoints"),
            resource("aws_cloudwatch_log_group.flow", "aws_kms_key.cluster"),
            resource("aws_iam_role_policy.checkpoints", "aws_s3_bucket.checkpoints", "aws_kms_key.cluster"),
            resource("aws_instance.node", "aws_vpc.cluster", key="demo-01"),
            resource("aws_vpc.cluster"),
        ]
    }
    assert storage(state) == {
        "module.cluster.aws_kms_key.cluster",
        "module.cluster.aws_kms_alias.cluster",
        "module.cluster.aws_s3_bucket.checkpoints",
        "module.cluster.aws_s3_bucket_policy.checkpoints",
    }
    found = bucket(state)
    assert found is not None and found[2]["bucket"] == "demo-checkpoints-1"
    assert bucket({"resources": [resource("aws_vpc.cluster")]}) is None


def test_a_network_that_storage_needs_stays_and_a_log_s_bucket_goes() -> None:
    azure = [
        resource("azurerm_resource_group.cluster"),
        resource("azurerm_subnet.nodes", "azurerm_resource_group.cluster"),
        resource("azurerm_storage_account.checkpoints", "azurerm_subnet.nodes"),
        resource("azurerm_linux_virtual_machine.node", "azurerm_subnet.nodes", key="demo-01"),
        resource("terraform_data.checkpoints", "azurerm_storage_account.checkpoints"),
        resource("terraform_data.intent"),
    ]
    account, guard = (f"module.cluster.{each}.checkpoints" for each in ("azurerm_storage_account", "terraform_data"))
    assert storage({"resources": azure}) == {
        "module.cluster.azurerm_resource_group.cluster", "module.cluster.azurerm_subnet.nodes", account, guard
    }  # fmt: skip
    assert marks({"resources": azure}, account) == [account, guard]
    ibm = [
        resource("ibm_resource_instance.storage"),
        resource("ibm_cos_bucket.flow", "ibm_resource_instance.storage", key=0),
    ]
    assert storage({"resources": ibm}) == {"module.cluster.ibm_resource_instance.storage"}


def test_only_what_must_not_be_made_anew_is_unmarked() -> None:
    marked = [
        resource("aws_kms_key.cluster", status="tainted"),
        resource("aws_vpc_endpoint.s3", status="tainted"),
        resource("aws_eip.nat", key=0, status="tainted"),
        resource("aws_instance.monitor", key=0, status="tainted"),
        resource("aws_security_group.nodes", status="tainted"),
        resource("google_storage_bucket.checkpoints", status="tainted"),
        resource("google_compute_instance.node", key="demo-01", status="tainted"),
        resource("terraform_data.intent", status="tainted"),
        resource("aws_vpc.cluster"),
    ]
    assert to_be_kept_as_they_are({"resources": marked}) == [
        "module.cluster.aws_kms_key.cluster",
        "module.cluster.aws_vpc_endpoint.s3",
        "module.cluster.aws_eip.nat[0]",
        "module.cluster.google_storage_bucket.checkpoints",
    ]


def test_an_address_without_its_index() -> None:
    assert block_of('module.cluster.aws_instance.node["a-01"]') == "module.cluster.aws_instance.node"
    assert block_of("aws_vpc.cluster") == "aws_vpc.cluster"
