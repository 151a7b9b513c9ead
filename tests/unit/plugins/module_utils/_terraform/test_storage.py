"""The buckets of a state, and what an interrupted apply may leave marked."""

from __future__ import annotations

from ansible_collections.gaudi3.scale.plugins.module_utils._terraform.state import Resource, State
from ansible_collections.gaudi3.scale.plugins.module_utils._terraform.storage import (
    bucket,
    is_marked,
    logs,
    marks,
    stays_when_tainted,
)


def made(*addresses: str, **attributes: object) -> State:
    """A state with these."""
    return State(
        tuple(Resource(f"module.cluster.{each}", each.partition(".")[0], False, attributes) for each in addresses)
    )


def test_the_bucket_of_checkpoints_is_not_that_of_logs() -> None:
    state = made("ibm_cos_bucket.flow[0]", "ibm_cos_bucket.checkpoints")
    found, log = bucket(state), logs(state)
    assert found is not None and found.address == "module.cluster.ibm_cos_bucket.checkpoints"
    assert log is not None and log.address == "module.cluster.ibm_cos_bucket.flow[0]"
    assert (bucket(made("aws_vpc.cluster")), logs(made("aws_s3_bucket.checkpoints"))) == (None, None)


def test_what_is_changed_before_a_bucket_goes_with_all_that_is_in_it() -> None:
    state = made("azurerm_storage_account.checkpoints", "terraform_data.checkpoints[0]", "terraform_data.intent")
    found = bucket(state)
    assert found is not None and marks(state, found) == [
        "module.cluster.azurerm_storage_account.checkpoints", "module.cluster.terraform_data.checkpoints[0]",
    ]  # fmt: skip
    assert not is_marked(found)
    for name in ("force_destroy", "force_delete"):
        marked = bucket(made("aws_s3_bucket.checkpoints", **{name: True}))
        assert marked is not None and is_marked(marked)
        assert marks(State((marked,)), marked) == [marked.address]


def test_only_what_must_not_be_made_anew_is_unmarked() -> None:
    marked = made(
        "aws_kms_key.cluster", "aws_vpc_endpoint.s3", "aws_eip.nat[0]", "aws_instance.monitor[0]",
        "aws_security_group.nodes", "aws_nat_gateway.cluster", "google_storage_bucket.checkpoints",
        'google_compute_instance.node["demo-01"]', "ibm_is_floating_ip.entry[0]", "ibm_is_instance.monitor",
        "terraform_data.intent",
    )  # fmt: skip
    kept = [each.address.removeprefix("module.cluster.") for each in marked.resources if stays_when_tainted(each)]
    assert kept == [
        "aws_kms_key.cluster", "aws_vpc_endpoint.s3", "aws_eip.nat[0]", "google_storage_bucket.checkpoints",
        "ibm_is_floating_ip.entry[0]",
    ]  # fmt: skip
