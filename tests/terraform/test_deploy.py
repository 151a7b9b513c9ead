"""`gaudi3-deploy` on AWS as moto plays it: cut off, and run again, to nodes, to what holds checkpoints, to nothing.

The tests build on each other. Instants are counted at the service (support/deploy_workspace.py), so that a busy
machine changes nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from gaudi3_deploy.converge import COUNTED

from .support.account import Account, moto_account
from .support.deploy_workspace import DOWN, REPLACE, RUN, SETTINGS, UP, WAY, DeployWorkspace, Instant
from .support.provider import shared_provider

AwsDesk = DeployWorkspace[Account]
PUBLIC = "module.cluster.aws_s3_bucket_public_access_block"
MONITOR, KEY = "module.cluster.aws_instance.monitor[0]", "module.cluster.aws_kms_key.cluster[0]"


@pytest.fixture(scope="module")
def desk(terraform: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[AwsDesk]:
    """An empty account with a gate."""
    folder = tmp_path_factory.mktemp("desk")
    with (
        moto_account(folder, "us-east-1", folder / "gate") as account,
        shared_provider(account.environment, folder / "provider.log") as provider,
    ):
        yield DeployWorkspace(folder, account, provider)


@pytest.fixture(scope="module")
def before(desk: AwsDesk) -> dict[str, int]:
    """What there was before everything."""
    return desk.account.everything()


def planned(desk: AwsDesk) -> dict[str, list[str]]:
    """Addresses by what would be done to them."""
    said = desk.run("plan", "cluster", "--json")
    return dict(json.loads(said[said.index("{\n") :])["changes"])


def storage(desk: AwsDesk) -> dict[str, Any]:
    """What holds the checkpoints, and what guards it, as the service has it."""
    s3 = desk.account.client("s3")
    (bucket,) = (each["Name"] for each in s3.list_buckets()["Buckets"])
    encryption = s3.get_bucket_encryption(Bucket=bucket)["ServerSideEncryptionConfiguration"]["Rules"][0]
    return {
        "bucket": bucket,
        "keys": [(each["KeyId"], each["KeyState"]) for each in desk.account.keys_made()],
        "aliases": [
            each["AliasName"]
            for each in desk.account.client("kms").list_aliases()["Aliases"]
            if each["AliasName"].startswith("alias/gaudi3-")
        ],
        "public": s3.get_public_access_block(Bucket=bucket)["PublicAccessBlockConfiguration"],
        "policy": s3.get_bucket_policy(Bucket=bucket)["Policy"],
        "encryption": encryption["ApplyServerSideEncryptionByDefault"],
        "versioning": s3.get_bucket_versioning(Bucket=bucket)["Status"],
        "lifecycle": s3.get_bucket_lifecycle_configuration(Bucket=bucket)["Rules"],
        "objects": [each["Key"] for each in s3.list_objects_v2(Bucket=bucket).get("Contents", [])],
    }


def test_interrupted_at_any_point_it_converges_and_in_the_end_nothing_is_left(
    desk: AwsDesk, before: dict[str, int]
) -> None:
    # The power goes while the first resources are made: gaudi3-deploy, terraform and its provider end at once.
    assert desk.cut_off(Instant("CreateVpc", 1, "power"), *UP, *SETTINGS)
    assert desk.account.machines() == {}
    # Ctrl-C while machines are made: terraform ends what it has begun.
    assert desk.cut_off(Instant("RunInstances", 2, "ctrl-c"), *UP)
    monitor = desk.account.machines()["cluster-monitor"]["InstanceId"]
    # What it has made costs money, although it did not come to its end.
    made = sorted(set(desk.account.machines()) - {"cluster-monitor"})
    periods = json.loads((desk.folder / "deployments/cluster/deployment.json").read_text())["periods"]
    assert [(each["nodes"], each["ended"]) for each in periods] == ([(len(made), None)] if made else [])
    assert re.search(rf"cluster +aws +applying +{len(made)} ", desk.run("status", "cluster"))
    # Whether something is marked as half made hangs by the instant: here the monitor and the key are.
    for address in (MONITOR, KEY):
        desk.terraform("taint", "-no-color", address)
    assert {"aws_instance", "aws_kms_key"} <= set(desk.tainted())
    # gaudi3-deploy alone is killed, in a run: terraform goes on by itself, and the next one waits for it.
    assert desk.cut_off(Instant("*", 1, "alone"), *RUN, *WAY)

    (desk.folder / "fail").touch()
    said = desk.run(*RUN, *WAY, "--keep", code=1)
    assert "run cluster goes on at stage up" in said
    assert "Site.yml failed (exit code 1), and the machines are kept: mend it and run this again" in said
    (desk.folder / "fail").unlink()
    machines = desk.account.machines()
    assert sorted(desk.endpoints()) == sorted(machines) == ["cluster-01", "cluster-02", "cluster-monitor"], said
    assert machines["cluster-monitor"]["InstanceId"] == monitor
    assert [each["KeyState"] for each in desk.account.keys_made()] == ["Enabled"]
    assert desk.tainted() == []
    assert "nothing to change" in desk.run("plan", "cluster")
    # What running nodes have does not change under them: neither the inventory nor the bill may say so.
    other = ("--type", "p4d.24xlarge", "--var", "accept_other_accelerators=true")
    assert "but dl1.24xlarge on cluster-01, cluster-02, and running" in desk.run("up", "cluster", *other, code=2)
    for asked, has in (("efa=false", "efa is false, but true"), ("capacity=spot", "capacity is spot, but on-demand")):
        assert f"{has} on cluster-01, cluster-02, and running" in desk.run("up", "cluster", "--var", asked, code=2)
    assert "nothing to change" in desk.run("plan", "cluster", "--type", "dl1.24xlarge")


def test_a_node_becomes_another_machine_and_is_not_made_twice(desk: AwsDesk, before: dict[str, int]) -> None:
    before_it, there = desk.account.machines(), desk.account.everything()
    assert desk.cut_off(Instant("TerminateInstances", 1, "power"), *REPLACE)
    assert "replace cluster-02: shrink" in desk.run(*REPLACE)
    after = desk.account.machines()
    assert sorted(desk.endpoints()) == sorted(after) == sorted(before_it)
    changed = [name for name in after if after[name]["InstanceId"] != before_it[name]["InstanceId"]]
    assert changed == ["cluster-02"]
    assert desk.endpoints()["cluster-02"]["instance_id"] == after["cluster-02"]["InstanceId"]
    # moto keeps the interface of a machine that is gone, which AWS deletes.
    assert {**desk.account.everything(), "interfaces": 0} == {**there, "interfaces": 0}
    assert "nothing to change" in desk.run("plan", "cluster")


def test_a_state_from_before_these_had_a_count_replaces_nothing(desk: AwsDesk, before: dict[str, int]) -> None:
    """What a release renames moves in the state: no user's key, bucket or network is made anew for it."""
    path = desk.work / "terraform.tfstate.d/cluster/terraform.tfstate"
    kept = path.read_text()
    state = json.loads(kept)
    renamed = []
    for resource in state["resources"]:
        address = f"{resource['type']}.{resource['name']}"
        if address in COUNTED or resource["type"].startswith("aws_s3_bucket"):
            renamed.append(address)
            del resource["instances"][0]["index_key"]
    assert set(COUNTED) <= set(renamed)
    path.write_text(json.dumps(state))
    changes = planned(desk)
    path.write_text(kept)
    assert changes["create"] == changes["delete"] == changes["replace"] == []


def test_down_keeps_the_checkpoints_their_key_and_what_guards_them(desk: AwsDesk, before: dict[str, int]) -> None:
    desk.account.put(storage(desk)["bucket"], "cluster/checkpoints/step-1")
    filled = storage(desk)
    assert desk.cut_off(Instant("TerminateInstances", 1, "power"), *DOWN)
    said = desk.run(*DOWN)
    assert said.splitlines()[-1] == "deployment cluster is gone, but for the storage of its checkpoints"
    assert (
        f"{filled['bucket']} holds checkpoints: it stays with its key {filled['keys'][0][0]} and all that guards"
        in said
    )
    assert storage(desk) == filled
    assert filled["objects"] == ["cluster/checkpoints/step-1"]
    assert [state for _key, state in filled["keys"]] == ["Enabled"]
    assert set(filled["public"].values()) == {True}
    assert desk.account.everything() == {**before, "buckets": 1, "keys": 1}
    assert "stored" in desk.run("status", "cluster")
    # Once more: nothing is left to destroy.
    assert said.splitlines()[-1] == desk.run("down", "cluster", "--yes").splitlines()[-1]
    assert storage(desk) == filled


def test_the_next_up_finds_the_checkpoints_again(desk: AwsDesk) -> None:
    changes = planned(desk)
    assert any(each.startswith("module.cluster.aws_instance.node") for each in changes["create"])
    assert not {KEY, "module.cluster.aws_s3_bucket.checkpoints[0]", f"{PUBLIC}.checkpoints[0]"} & {*changes["create"]}
    assert changes["delete"] == changes["replace"] == []
    refused = desk.run("plan", "cluster", "--var", "region=us-west-2", code=2)
    assert "The checkpoints of deployment 'cluster' are kept in us-east-1, and region is us-west-2: give" in refused


def test_terraform_destroy_by_hand_stops_at_the_bucket_and_leaves_the_key(desk: AwsDesk) -> None:
    variables = desk.folder / "deployments/cluster/variables.tfvars.json"
    said = desk.terraform("destroy", "-auto-approve", "-no-color", f"-var-file={variables}", code=1)
    assert "BucketNotEmpty" in said
    assert [each["KeyState"] for each in desk.account.keys_made()] == ["Enabled"]
    created = planned(desk)["create"]
    assert KEY not in created and "module.cluster.aws_s3_bucket.checkpoints[0]" not in created
    assert f"{PUBLIC}.checkpoints[0]" in created  # Its guards come back with the next up.


def test_what_terraform_does_not_know_is_named_and_then_nothing_is_left(desk: AwsDesk, before: dict[str, int]) -> None:
    # A machine with a name that no configuration gives: nothing can take it over.
    tags = [{"Key": "Cluster", "Value": "cluster"}, {"Key": "ManagedBy", "Value": "terraform"}]
    ec2 = desk.account.client("ec2")
    image = ec2.describe_images(Owners=["amazon"])["Images"][0]["ImageId"]
    specification = [{"ResourceType": "instance", "Tags": [*tags, {"Key": "Name", "Value": "forgotten"}]}]
    (lost,) = ec2.run_instances(ImageId=image, MinCount=1, MaxCount=1, TagSpecifications=specification)["Instances"]
    said = desk.run("down", "cluster", "--yes", "--checkpoints", code=1)
    assert "Terraform has destroyed what it knew of, but " in said
    told = re.search(r"of cluster cluster are left in us-east-1, .* delete (.*)\.$", said, re.MULTILINE)
    assert told is not None, said
    assert told.group(1) == f"instance {lost['InstanceId']}"
    desk.account.remove(*told.group(1).split(" "))
    assert "deployment cluster is gone" in desk.run("down", "cluster", "--yes")
    assert desk.account.everything() == before
