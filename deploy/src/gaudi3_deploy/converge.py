"""Take over what a run that was cut off left incomplete, or made without writing it down.

Terraform calls a resource *tainted* whose creation was cut off, and plans to replace it. A key or a bucket must never
be replaced, and nothing else needs to be: once the mark is gone, the plan asks the cloud for the thing as it is,
completes what it lacks, and makes what is not there.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from gaudi3_deploy import leftover, orphans, orphans_ibm
from gaudi3_deploy.collection._terraform.state import Resource, State
from gaudi3_deploy.collection._terraform.storage import stays_when_tainted
from gaudi3_deploy.errors import DeployError, UsageError
from gaudi3_deploy.leftover import Unchecked
from gaudi3_deploy.record import BEFORE, Deployment
from gaudi3_deploy.terraform import Terraform

#: Phases in which the last command ran to its end: there is nothing to take over.
WHOLE = ("up", "site", "ready")
DURABLE = ("aws_kms_key.cluster", "aws_kms_alias.cluster", "aws_s3_bucket.checkpoints")
MACHINES = ("aws_instance", "aws_autoscaling_group", "ibm_is_instance")
NODE = re.compile(r'(?:aws|ibm_is)_instance\.node\[".*-(\d+)"\]')
#: What a cloud has and the state lacks can be looked for; by the network, which comes before its machines.
NETWORK = {
    "aws": ("aws_vpc.cluster", "aws_security_group.nodes"),
    "ibm": ("ibm_is_vpc.cluster", "ibm_is_security_group.nodes"),
}
#: What a module makes with a count, as it may be the user's own; found without the index.
COUNTED = (*DURABLE, "aws_vpc.cluster", "aws_subnet.nodes", "aws_route_table.nodes",
           "aws_route_table_association.nodes", "aws_vpc_endpoint.s3", "aws_iam_role.node",
           "aws_iam_role_policy.checkpoints")  # fmt: skip


def lacking(deployment: Deployment, state: State) -> dict[str, str]:
    """Ids, by address in the module, of what belongs to the deployment and is not in the state. Raises `Unchecked`."""
    region, name = deployment.region, deployment.name
    if deployment.cloud == "ibm":
        if deployment.phase in BEFORE:
            return {}  # Names are all that it is known by, and what was made is in the state.
        return orphans_ibm.on_ibm(region, name, state, deployment.since or deployment.entered)
    return orphans.on_aws(region, name, state)


def finder(deployment: Deployment) -> Callable[[], list[str]] | None:
    """What lists all that the cloud has of a deployment, as kind and id; None where that cannot be asked."""
    region, name, since = deployment.region, deployment.name, deployment.since
    if deployment.cloud == "ibm":
        return lambda: orphans_ibm.left_on_ibm(region, name, since)
    return (lambda: leftover.on_aws(region, name)) if deployment.cloud == "aws" else None


def take_over(deployment: Deployment, terraform: Terraform, nodes: int = 0) -> dict[str, str]:
    """Untaint what is whole. The ids, by address in the module, of what exists and the state lacks.

    Of `nodes` nodes in all, if that is known: what is there beyond them no configuration has a place for.
    """
    state = terraform.state()
    for resource in (each for each in state.resources if each.tainted):
        if _is_whole(resource, state, deployment):
            terraform.untaint(resource.address)
            terraform.log(f"{resource.address} ({resource.id}) was being made when the last run ended, and is kept")
    if deployment.cloud not in NETWORK or deployment.phase in WHOLE or not terraform.adopts:
        return {}
    try:
        found = lacking(deployment, state)
    except Unchecked as reason:
        terraform.log(
            f"whether anything of cluster {deployment.name} is in {deployment.region} that Terraform's state lacks "
            f"was not checked: {reason}"
        )
        return {}
    found = _of_this_deployment(found, deployment, state, nodes)
    for address, identity in found.items():
        terraform.log(f"{address} ({identity}) is there without Terraform's knowledge, and is taken over")
    return found


def _of_this_deployment(found: dict[str, str], deployment: Deployment, state: State, nodes: int) -> dict[str, str]:
    """Without what may be another deployment's of the same name, from another record; running machines are refused."""
    machines = {address: each for address, each in found.items() if address.split(".")[0] in MACHINES}
    # A network comes before its machines: without one on record, these were never this deployment's.
    if machines and not _has_network(deployment, state):
        told = ", ".join(machines.values())
        raise UsageError(
            f"Machines of a cluster {deployment.name!r} run in {deployment.region} ({told}), "
            "of which this deployment's state knows nothing: take another name, or work on them where they were made."
        )
    if deployment.phase in BEFORE:
        return {address: each for address, each in found.items() if address in DURABLE}
    beyond = {address for address in found if nodes and (match := NODE.match(address)) and int(match.group(1)) > nodes}
    return {address: each for address, each in found.items() if address not in beyond}


def _has_network(deployment: Deployment, state: State) -> bool:
    """Whether the state has what comes before a machine."""
    return any(state.named(each) for each in NETWORK.get(deployment.cloud, ()))


def count(deployment: Deployment, terraform: Terraform, price: tuple[float | None, bool] | None = None) -> None:
    """Count the nodes that run, whatever became of the command that made or ended them.

    `price` is that of a node in USD per hour, and whether the user gave it; without it, the nodes cost what they have
    cost so far. Nodes of which an interrupted `up` could count nothing cost money since it began, at most.
    """
    if deployment.cloud == "onprem":
        return
    try:
        state = terraform.state()
    except DeployError:
        return  # Whoever needs the state next is told why it cannot be read.
    nodes = state.nodes() + _nodes_beside(deployment, state)
    last = deployment.periods[-1] if deployment.periods else None
    kind = str(deployment.variables.get("instance_type", ""))
    if price is None and last is not None:
        price, kind = (last.hourly_usd, last.given), last.instance_type
    usd, given = price or (None, False)
    began = None
    if nodes > deployment.nodes and deployment.phase == "applying" and deployment.entered:
        began = max(deployment.entered, last.ended or last.began) if last else deployment.entered
    deployment.count(nodes, kind, usd, now=began, given=given)


def _nodes_beside(deployment: Deployment, state: State) -> int:
    """How many nodes the cloud has of which Terraform, cut off while it asked for them, knows nothing."""
    if not _has_network(deployment, state):
        return 0
    try:
        found = lacking(deployment, state)
    except Unchecked:
        return 0
    return sum(1 for address in found if NODE.match(address))


def take_over_to_destroy(deployment: Deployment, terraform: Terraform) -> None:
    """Write down what the state lacks, so that it is destroyed with the rest, or kept as storage."""
    if deployment.phase in BEFORE:
        return
    for address, identity in take_over(deployment, terraform).items():
        try:
            index = "[0]" if address in COUNTED else ""
            terraform.take(deployment.variables, f"module.cluster.{address}{index}", identity)
        except DeployError as error:
            # It is named among what is left in the end.
            terraform.log(f"{address} ({identity}) was not taken over: {error}")


def sweep(deployment: Deployment, terraform: Terraform, state: State) -> None:
    """Delete what nothing can take over and nobody needs; what could not be looked for is named in the end."""
    if deployment.cloud != "aws" or not state.resources:
        return
    try:
        gone = orphans.sweep(deployment.region, deployment.name, state)
    except Unchecked:
        return
    if gone:
        terraform.log(f"deleted what an interrupted run left behind: {', '.join(gone)}")


def _is_whole(resource: Resource, state: State, deployment: Deployment) -> bool:
    """Whether Terraform can go on with it as it is."""
    if resource.type == "aws_instance" and resource.id in (state.machines_told() or ()):
        return False  # Somebody marked a machine that jobs may use: the plan says so and asks.
    if resource.type in ("aws_nat_gateway", "aws_instance"):
        return _runs(resource, deployment.region)
    return stays_when_tainted(resource)


def _runs(resource: Resource, region: str) -> bool:
    """Whether AWS says that a machine or a gateway is there; no where it cannot be asked: a new one takes its place."""
    try:
        import boto3
        from botocore.exceptions import BotoCoreError, ClientError
    except ImportError:
        return False
    ec2: Any = boto3.Session(region_name=region).client("ec2")
    try:
        if resource.type == "aws_nat_gateway":
            (gateway,) = ec2.describe_nat_gateways(NatGatewayIds=[resource.id])["NatGateways"]
            return gateway["State"] in ("pending", "available")
        answer = ec2.describe_instances(InstanceIds=[resource.id])["Reservations"]
        return bool(answer) and answer[0]["Instances"][0]["State"]["Name"] in ("pending", "running")
    except (BotoCoreError, ClientError, ValueError):
        return False
