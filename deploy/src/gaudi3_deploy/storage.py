"""The checkpoints' storage, which outlives the machines: what of it stays when a deployment is taken down, and why."""

from __future__ import annotations

from dataclasses import dataclass, field

from gaudi3_deploy import ibm
from gaudi3_deploy.collection._terraform import storage
from gaudi3_deploy.collection._terraform.state import State
from gaudi3_deploy.leftover import Unchecked, aws
from gaudi3_deploy.orphans import holds_anything
from gaudi3_deploy.record import Deployment
from gaudi3_deploy.terraform import Terraform


@dataclass
class Kept:
    """What stays."""

    addresses: set[str] = field(default_factory=set)
    ids: set[str] = field(default_factory=set)
    sentences: list[str] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    """Of it in the last sentence."""

    def with_(self, other: Kept) -> Kept:
        """Both."""
        return Kept(
            self.addresses | other.addresses,
            self.ids | other.ids,
            [*self.sentences, *other.sentences],
            [*self.names, *other.names],
        )


def kept(deployment: Deployment, state: State) -> Kept:
    """The storage, unless it is known to be empty. Looked at before anything is destroyed."""
    bucket = storage.bucket(state)
    if bucket is None:
        return Kept()
    name = str(next(filter(None, map(bucket.attributes.get, ("bucket", "bucket_name", "name"))), bucket.id))
    try:
        if not _filled(deployment, name):
            return Kept()
        reason = f"{name} holds checkpoints"
    except Unchecked as why:
        reason = f"{name} may hold checkpoints, which was not checked ({why})"
    addresses = state.storage()
    guards = [each for each in state.resources if each.address in addresses]
    keys = [each.id for each in guards if each.type == "aws_kms_key"]
    words = f"{reason}: it stays" + (f" with its key {keys[0]}" if keys else "") + " and all that guards it"
    return Kept(
        addresses,
        {each.id for each in guards},
        [
            f"{words}, and goes on costing money; `gaudi3-deploy up {deployment.name}` uses it again, "
            f"`gaudi3-deploy down {deployment.name} --checkpoints` deletes it with every checkpoint in it"
        ],
        ["the storage of its checkpoints"],
    )


def logs(deployment: Deployment, state: State) -> Kept:
    """On IBM Cloud, where flow logs are in a bucket: that bucket, unless it is known to be empty."""
    bucket = storage.logs(state)
    if bucket is None or bucket.type != "ibm_cos_bucket":
        return Kept()
    name = str(bucket.attributes.get("bucket_name") or bucket.id)
    try:
        if not _filled(deployment, name):
            return Kept()
        reason = f"{name} holds flow logs"
    except Unchecked as why:
        reason = f"{name} may hold flow logs, which was not checked ({why})"
    addresses = state.with_needs([bucket])
    sentence = (
        f"{reason}: it stays, and goes on costing money until the year is over after which each log is deleted; delete "
        "them yourself, and run this again"
    )
    return Kept(
        addresses, {each.id for each in state.resources if each.address in addresses}, [sentence], ["its flow logs"]
    )


def let_go(deployment: Deployment, terraform: Terraform, state: State) -> None:
    """Make the bucket one that is deleted with what is in it. Nothing but that mark in the state is changed."""
    bucket = storage.bucket(state)
    if bucket is None or storage.is_marked(bucket) or "destroy_checkpoints" not in terraform.variables():
        return
    planned = terraform.plan(
        deployment.variables, only=storage.marks(state, bucket), given={"destroy_checkpoints": True}
    )
    if planned.create or planned.replace or planned.delete:  # It is gone already: there is nothing to let go.
        planned.discard()
        return
    terraform.apply(planned)


def _filled(deployment: Deployment, bucket: str) -> bool:
    """Whether there is anything in the bucket. Raises `Unchecked`."""
    if deployment.cloud == "ibm":
        return ibm.Account(deployment.region).holds_anything(bucket)
    if deployment.cloud != "aws":
        raise Unchecked(f"nothing here can look into a bucket on {deployment.cloud}")
    with aws(deployment.region) as session:
        from botocore.exceptions import ClientError

        try:
            return holds_anything(session.client("s3"), bucket)
        except ClientError as error:
            if error.response["Error"]["Code"] == "NoSuchBucket":
                return False
            raise
