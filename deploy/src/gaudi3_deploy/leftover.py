"""What is in the account of a cluster, whether Terraform knows of it or not.

Terraform that is killed with -9 while the cloud makes something does not know of it, and so does not destroy it either.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import Any

from gaudi3_deploy.errors import DeployError

#: What Terraform appends to a prefix: a time and a counter.
GENERATED = r"\d{17}[0-9a-f]{9}"
GONE = {"terminated", "shutting-down", "deleted", "deleting", "PendingDeletion"}


class Unchecked(Exception):
    """Why it could not be looked."""


@contextmanager
def aws(region: str) -> Iterator[Any]:
    """A session of boto3; `Unchecked` where that is not installed, or AWS cannot be asked with it."""
    try:
        import boto3
        from botocore.exceptions import BotoCoreError, ClientError
    except ImportError:
        raise Unchecked("boto3 is not installed") from None
    try:
        yield boto3.Session(region_name=region)
    except (BotoCoreError, ClientError) as error:
        raise Unchecked(" ".join(str(error).split())) from None


def on_aws(region: str, cluster: str) -> list[str]:
    """What has the cluster's tags or, where tags come later than the thing, its name, and is not on its way out.

    Each as kind and identity, such as `instance i-0123456789abcdef0`; region as us-west-2. Raises `Unchecked` where AWS
    cannot be asked.
    """
    with aws(region) as session:
        looks = (_of_ec2, _of_groups, _of_others, _of_iam, _of_budgets)
        found = [each for look_at in looks for each in look_at(session, cluster)]
    return sorted(found)


def look(
    find: Callable[[], list[str]], region: str, cluster: str, kept: Collection[str], log: Callable[[str], None]
) -> None:
    """Terraform has destroyed what it knew; say what else `find` finds of the cluster, and is not to be kept."""
    try:
        left = [each for each in find() if each.partition(" ")[2] not in kept]
    except Unchecked as reason:
        log(f"whether anything of cluster {cluster} is left in {region} was not checked: {reason}")
        return
    if left:
        raise DeployError(
            f"Terraform has destroyed what it knew of, but {len(left)} resource(s) of cluster {cluster} are "
            f"left in {region}, as after a kill while they were made: delete {', '.join(left)}."
        )


#: (what it is called here, EC2's operation, the list in its answer, the identity in an entry)
LISTINGS = (
    ("volume", "describe_volumes", "Volumes", "VolumeId"),
    ("elastic-ip", "describe_addresses", "Addresses", "AllocationId"),
    ("nat-gateway", "describe_nat_gateways", "NatGateways", "NatGatewayId"),
    ("vpc-endpoint", "describe_vpc_endpoints", "VpcEndpoints", "VpcEndpointId"),
    ("launch-template", "describe_launch_templates", "LaunchTemplates", "LaunchTemplateId"),
    ("key-pair", "describe_key_pairs", "KeyPairs", "KeyPairId"),
    ("placement-group", "describe_placement_groups", "PlacementGroups", "GroupName"),
    ("security-group", "describe_security_groups", "SecurityGroups", "GroupId"),
    ("internet-gateway", "describe_internet_gateways", "InternetGateways", "InternetGatewayId"),
    ("subnet", "describe_subnets", "Subnets", "SubnetId"),
    ("vpc", "describe_vpcs", "Vpcs", "VpcId"),
)


def _of_ec2(session: Any, cluster: str) -> Iterator[str]:
    """Machines, and what they need."""
    ec2 = session.client("ec2")
    tags = {"Cluster": cluster, "ManagedBy": "terraform"}
    filters = [{"Name": f"tag:{key}", "Values": [value]} for key, value in tags.items()]
    for page in ec2.get_paginator("describe_instances").paginate(Filters=filters):
        for reservation in page["Reservations"]:
            for machine in reservation["Instances"]:
                if machine["State"]["Name"] not in GONE:
                    yield f"instance {machine['InstanceId']}"
    for kind, operation, listed, identity in LISTINGS:
        # The one operation that calls them otherwise.
        name = "Filter" if kind == "nat-gateway" else "Filters"
        for each in getattr(ec2, operation)(**{name: filters})[listed]:
            # A root volume goes with its machine, which is listed itself as long as it is there.
            if each.get("State") not in GONE and not each.get("Attachments"):
                yield f"{kind} {each[identity]}"


def _of_groups(session: Any, cluster: str) -> Iterator[str]:
    """Groups that keep on making machines."""
    filters = [{"Name": "tag:Cluster", "Values": [cluster]}, {"Name": "tag:ManagedBy", "Values": ["terraform"]}]
    pages = session.client("autoscaling").get_paginator("describe_auto_scaling_groups").paginate(Filters=filters)
    for group in (each for page in pages for each in page["AutoScalingGroups"]):
        yield f"autoscaling-group {group['AutoScalingGroupName']}"


def _of_budgets(session: Any, cluster: str) -> Iterator[str]:
    """Budgets, by their names, as a list of them has no tags."""
    account = session.client("sts").get_caller_identity()["Account"]
    budgets = session.client("budgets")
    ours = re.compile(rf"gaudi3-{re.escape(cluster)}-{GENERATED}")
    try:
        pages = [*budgets.get_paginator("describe_budgets").paginate(AccountId=account)]
    except budgets.exceptions.AccessDeniedException:
        return  # Who may not look at budgets has made none.
    for name in (budget["BudgetName"] for page in pages for budget in page.get("Budgets", ())):
        if ours.fullmatch(name):
            yield f"budget {name}"


def _of_others(session: Any, cluster: str) -> Iterator[str]:
    """Keys, buckets and logs. A bucket gets its tags after it was made, so that its name must do."""
    kms, logs = session.client("kms"), session.client("logs")
    wanted = [{"Key": "Cluster", "Values": [cluster]}, {"Key": "ManagedBy", "Values": ["terraform"]}]
    pages = session.client("resourcegroupstaggingapi").get_paginator("get_resources")
    for page in pages.paginate(TagFilters=wanted, ResourceTypeFilters=["kms:key"]):
        for each in page["ResourceTagMappingList"]:
            identity = each["ResourceARN"].rpartition("/")[2]
            if kms.describe_key(KeyId=identity)["KeyMetadata"]["KeyState"] not in GONE:
                yield f"key {identity}"
    for bucket in session.client("s3").list_buckets()["Buckets"]:
        if bucket["Name"].startswith(f"{cluster}-checkpoints-"):
            yield f"bucket {bucket['Name']}"
    for page in logs.get_paginator("describe_log_groups").paginate(logGroupNamePrefix=f"/gaudi3/{cluster}/"):
        for group in page["logGroups"]:
            yield f"log-group {group['logGroupName']}"


def _of_iam(session: Any, cluster: str) -> Iterator[str]:
    """Roles and instance profiles."""
    iam = session.client("iam")
    wanted = {("Cluster", cluster), ("ManagedBy", "terraform")}
    for kind, listing, ask in (
        ("Role", "list_roles", iam.get_role),
        ("InstanceProfile", "list_instance_profiles", iam.get_instance_profile),
    ):
        for page in iam.get_paginator(listing).paginate():
            for each in page[f"{kind}s"]:
                name = each[f"{kind}Name"]
                if not name.startswith(f"{cluster}-"):
                    continue
                told = ask(**{f"{kind}Name": name})[kind].get("Tags", [])
                if wanted <= {(tag["Key"], tag["Value"]) for tag in told}:
                    yield f"{'role' if kind == 'Role' else 'instance-profile'} {name}"
