"""What is in the account under a cluster's tags, whether Terraform knows of it or not.

Terraform that is killed with -9 while the cloud makes something does not know of it, and so does not destroy it either.
"""

from __future__ import annotations

from typing import Any

GONE = {"terminated", "shutting-down", "deleted", "deleting", "PendingDeletion"}


class Unchecked(Exception):
    """Why it could not be looked."""


def on_aws(region: str, cluster: str) -> list[str]:
    """ARNs of what carries the cluster's tags and is not on its way out; region as us-west-2.

    Raises `Unchecked` where AWS cannot be asked.
    """
    try:
        import boto3
        from botocore.exceptions import BotoCoreError, ClientError
    except ImportError:
        raise Unchecked("boto3 is not installed") from None
    try:
        client = boto3.client("resourcegroupstaggingapi", region_name=region)
        wanted = [{"Key": "Cluster", "Values": [cluster]}, {"Key": "ManagedBy", "Values": ["terraform"]}]
        pages = client.get_paginator("get_resources").paginate(TagFilters=wanted)
        found = sorted({each["ResourceARN"] for page in pages for each in page["ResourceTagMappingList"]})
        staying = {arn for arn in found if _stays(boto3, region, arn)}
        return sorted(staying | set(_of_iam(boto3.client("iam"), cluster)))
    except (BotoCoreError, ClientError) as error:
        raise Unchecked(" ".join(str(error).split())) from None


def _of_iam(iam: Any, cluster: str) -> list[str]:
    """Roles and instance profiles, of which the tagging service does not tell all."""
    wanted = {("Cluster", cluster), ("ManagedBy", "terraform")}
    found = []
    for kind, listing in (("Role", "list_roles"), ("InstanceProfile", "list_instance_profiles")):
        pages = iam.get_paginator(listing).paginate()
        named = [each for page in pages for each in page[f"{kind}s"] if each[f"{kind}Name"].startswith(f"{cluster}-")]
        for each in named:
            ask = iam.get_role if kind == "Role" else iam.get_instance_profile
            told = ask(**{f"{kind}Name": each[f"{kind}Name"]})[kind].get("Tags", [])
            if wanted <= {(tag["Key"], tag["Value"]) for tag in told}:
                found.append(each["Arn"])
    return found


def _stays(boto3: Any, region: str, arn: str) -> bool:
    """Whether it is more than the memory of something that is gone, which AWS lists for an hour or so."""
    from botocore.exceptions import ClientError

    service, resource = arn.split(":", 5)[2], arn.split(":", 5)[5]
    kind, _, identity = resource.partition("/")
    try:
        if (service, kind) == ("kms", "key"):
            answer = boto3.client("kms", region_name=region).describe_key(KeyId=identity)
            return answer["KeyMetadata"]["KeyState"] not in GONE
        if service != "ec2":
            return True
        ec2 = boto3.client("ec2", region_name=region)
        if kind == "instance":
            answer = ec2.describe_instances(InstanceIds=[identity])
            return any(i["State"]["Name"] not in GONE for each in answer["Reservations"] for i in each["Instances"])
        if kind == "natgateway":
            answer = ec2.describe_nat_gateways(NatGatewayIds=[identity])
            return any(each["State"] not in GONE for each in answer["NatGateways"])
        if kind == "volume":
            answer = ec2.describe_volumes(VolumeIds=[identity])
            machines = {at["InstanceId"] for each in answer["Volumes"] for at in each["Attachments"]}
            # A root volume goes with its machine, which is listed itself as long as it is there.
            return not machines
    except ClientError as error:
        if "NotFound" in error.response["Error"]["Code"]:
            return False
        raise
    return True
