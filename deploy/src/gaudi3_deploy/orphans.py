"""What AWS has of a cluster and Terraform's state has not: made by a run that was killed before it wrote it down.

Each is found by the cluster's tags or, where it has none, by what it belongs to, and reported by its address in the
module and the id that `terraform import` takes. What has a generated name and no data could be made a second time; it
is looked for anyway, as it costs money or stands in the way when the rest is destroyed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from gaudi3_deploy.collection._terraform.state import State
from gaudi3_deploy.leftover import GENERATED, aws

Orphans = Iterator[tuple[str, str]]
PORTS = {22: "ssh", 3000: "grafana", 9090: "prometheus", 9093: "alertmanager", 9109: "watch"}
WEB = {80: "http", 443: "https"}


def sweep(region: str, cluster: str, state: State) -> list[str]:
    """Delete key pairs and security groups of the cluster that the state lacks; their ids. Raises `Unchecked`.

    A key pair cannot be taken over, as AWS keeps no public half to compare with, and a group that was cut off before it
    was closed must not be. Neither holds anything; a group would keep its VPC from being deleted, and AWS does not
    delete one that is in use.
    """
    known = {each.id for each in state.resources} | {
        str(each.attributes.get("key_pair_id")) for each in state.resources
    }
    tags = {"Cluster": cluster, "ManagedBy": "terraform"}
    filters = [{"Name": f"tag:{key}", "Values": [value]} for key, value in tags.items()]
    gone = []
    with aws(region) as session:
        ec2 = session.client("ec2")
        for pair in ec2.describe_key_pairs(Filters=filters)["KeyPairs"]:
            if pair["KeyPairId"] not in known:
                ec2.delete_key_pair(KeyName=pair["KeyName"])
                gone.append(pair["KeyPairId"])
        for group in ec2.describe_security_groups(Filters=filters)["SecurityGroups"]:
            if group["GroupId"] not in known and group["GroupName"] != "default":
                ec2.delete_security_group(GroupId=group["GroupId"])
                gone.append(group["GroupId"])
    return gone


def on_aws(region: str, cluster: str, state: State) -> dict[str, str]:
    """Ids by address in the module, of what belongs to the cluster and is not in the state. Raises `Unchecked`."""
    with aws(region) as session:
        return _Search(session, cluster, state).all()


class _Search:
    """One look at an account. What was found before serves to find what belongs to it."""

    def __init__(self, session: Any, cluster: str, state: State) -> None:
        self._session = session
        self._cluster = cluster
        self._state = state
        self._found: dict[str, str] = {}
        self._ec2 = session.client("ec2")
        self._tags = {"Cluster": cluster, "ManagedBy": "terraform"}
        self._filters = [{"Name": f"tag:{key}", "Values": [value]} for key, value in self._tags.items()]

    def all(self) -> dict[str, str]:
        """Look for everything, in the order in which one thing leads to the next."""
        for look in (
            self._storage,
            self._names,
            self._network,
            self._gateways,
            self._routes,
            self._rules,
            self._machines,
            self._identities,
        ):
            for address, identity in look():
                self._found.setdefault(address, identity)
        return {address: each for address, each in self._found.items() if self._state.named(address) is None}

    def _id(self, address: str) -> str | None:
        """The id of a thing that the state has, or that was found."""
        known = self._state.named(address)
        return known.id if known else self._found.get(address)

    def _named(self, tagged: Mapping[str, Any]) -> str:
        """The tag Name without the cluster's."""
        name = next((tag["Value"] for tag in tagged.get("Tags", ()) if tag["Key"] == "Name"), "")
        return str(name).removeprefix(self._cluster).removeprefix("-")

    def _ours(self, tags: Iterable[Mapping[str, str]]) -> bool:
        # KMS writes TagKey and TagValue.
        told = {each.get("Key", each.get("TagKey")): each.get("Value", each.get("TagValue")) for each in tags}
        return self._tags.items() <= told.items()

    def _storage(self) -> Orphans:
        """The key, its alias, the bucket: with data in it, if there are several; then the oldest."""
        kms, s3 = self._session.client("kms"), self._session.client("s3")
        if self._state.named("aws_s3_bucket.checkpoints") is None:
            pattern = re.compile(rf"{re.escape(self._cluster)}-checkpoints-{GENERATED}")
            names = [each["Name"] for each in s3.list_buckets()["Buckets"] if pattern.fullmatch(each["Name"])]
            buckets = [name for name in sorted(names) if self._usable_bucket(s3, name)]
            for name in sorted(buckets, key=lambda each: not holds_anything(s3, each))[:1]:
                yield "aws_s3_bucket.checkpoints", name
        if self._state.named("aws_kms_key.cluster") is None:
            about = [each for each in self._keys(kms) if each["KeyState"] == "Enabled"]
            used = self._key_of_bucket(s3)
            about.sort(key=lambda each: (used not in (each["KeyId"], each["Arn"]), each["CreationDate"]))
            for each in about[:1]:
                yield "aws_kms_key.cluster", each["KeyId"]
        key = self._id("aws_kms_key.cluster")
        if key and self._state.named("aws_kms_alias.cluster") is None:
            pattern = re.compile(rf"alias/gaudi3-{re.escape(self._cluster)}-{GENERATED}")
            for alias in kms.list_aliases(KeyId=key)["Aliases"]:
                if pattern.fullmatch(alias["AliasName"]):
                    yield "aws_kms_alias.cluster", alias["AliasName"]

    def _keys(self, kms: Any) -> Iterator[dict[str, Any]]:
        """The cluster's keys. The tagging service learns of a key late: where there are few, each is asked itself."""
        known = [each["KeyId"] for page in kms.get_paginator("list_keys").paginate() for each in page["Keys"]]
        if len(known) > 100:
            wanted = [{"Key": key, "Values": [value]} for key, value in self._tags.items()]
            pages = self._session.client("resourcegroupstaggingapi").get_paginator("get_resources")
            listed = pages.paginate(TagFilters=wanted, ResourceTypeFilters=["kms:key"])
            known = [each["ResourceARN"] for page in listed for each in page["ResourceTagMappingList"]]
        for key in known:
            try:
                tags = kms.list_resource_tags(KeyId=key)["Tags"]
            except kms.exceptions.ClientError:
                continue  # Not everybody's key may be asked about; the cluster's own may.
            if self._ours(tags):
                yield kms.describe_key(KeyId=key)["KeyMetadata"]

    def _usable_bucket(self, s3: Any, name: str) -> bool:
        """Whether it is here and the cluster's. A bucket without tags was killed before it got them, and is empty."""
        try:
            place = s3.get_bucket_location(Bucket=name)["LocationConstraint"] or "us-east-1"
            if place != self._session.region_name:
                return False
            return self._ours(s3.get_bucket_tagging(Bucket=name)["TagSet"])
        except s3.exceptions.ClientError as error:
            return error.response["Error"]["Code"] == "NoSuchTagSet" and not holds_anything(s3, name)

    def _key_of_bucket(self, s3: Any) -> str | None:
        """The key that the bucket encrypts with."""
        bucket = self._id("aws_s3_bucket.checkpoints")
        if bucket is None:
            return None
        try:
            answer = s3.get_bucket_encryption(Bucket=bucket)["ServerSideEncryptionConfiguration"]
        except s3.exceptions.ClientError:
            return None
        rule: dict[str, str] = answer["Rules"][0]["ApplyServerSideEncryptionByDefault"]
        return rule.get("KMSMasterKeyID")

    def _names(self) -> Orphans:
        """What has no place in the network."""
        for group in self._ec2.describe_placement_groups(Filters=self._filters)["PlacementGroups"]:
            if group["GroupName"] == self._cluster and self._ours(group.get("Tags", ())):
                yield "aws_placement_group.cluster", group["GroupName"]
        for address in self._ec2.describe_addresses(Filters=self._filters)["Addresses"]:
            if (name := self._named(address)) in ("nat", "entry"):
                yield f"aws_eip.{name}[0]", address["AllocationId"]
        pattern = re.compile(rf"{re.escape(self._cluster)}-([a-z-]+)-{GENERATED}")
        for template in self._ec2.describe_launch_templates(Filters=self._filters)["LaunchTemplates"]:
            if match := pattern.fullmatch(template["LaunchTemplateName"]):
                yield f'aws_launch_template.node["{match.group(1)}"]', template["LaunchTemplateId"]
        logs = self._session.client("logs")
        prefix = f"/gaudi3/{self._cluster}/flow-"
        for group in logs.describe_log_groups(logGroupNamePrefix=prefix)["logGroups"]:
            yield "aws_cloudwatch_log_group.flow", group["logGroupName"]

    @property
    def _vpc(self) -> str | None:
        """The VPC; where it is the user's own, that of the machines' group."""
        group = self._state.named("aws_security_group.nodes")
        return self._id("aws_vpc.cluster") or (str(group.attributes.get("vpc_id") or "") or None if group else None)

    def _network(self) -> Orphans:
        """The VPC and its parts, by their names."""
        for vpc in self._ec2.describe_vpcs(Filters=self._filters)["Vpcs"]:
            yield "aws_vpc.cluster", vpc["VpcId"]
        vpc_id = self._vpc
        if vpc_id is None:
            return
        inside = [*self._filters, {"Name": "vpc-id", "Values": [vpc_id]}]
        places = {"nodes": "nodes", "gateway": "gateway[0]"}
        for subnet in self._ec2.describe_subnets(Filters=inside)["Subnets"]:
            if place := places.get(self._named(subnet)):
                yield f"aws_subnet.{place}", subnet["SubnetId"]
        for table in self._ec2.describe_route_tables(Filters=inside)["RouteTables"]:
            if place := places.get(self._named(table)):
                yield f"aws_route_table.{place}", table["RouteTableId"]
        for group in self._ec2.describe_security_groups(Filters=inside)["SecurityGroups"]:
            # A new group lets everything out until Terraform takes that rule away: one that was left so is made anew.
            closed = not any(
                each["IpProtocol"] == "-1" and each.get("IpRanges") for each in group["IpPermissionsEgress"]
            )
            if closed and (place := {"nodes": "nodes", "monitor": "monitor[0]"}.get(self._named(group))):
                yield f"aws_security_group.{place}", group["GroupId"]
        for endpoint in self._ec2.describe_vpc_endpoints(Filters=inside)["VpcEndpoints"]:
            service = endpoint["ServiceName"].rpartition(".")[2]
            if endpoint["State"].lower() in ("available", "pending"):
                place = "s3" if service == "s3" else f'interface["{service}"]'
                yield f"aws_vpc_endpoint.{place}", endpoint["VpcEndpointId"]
        of_vpc = [*self._filters, {"Name": "resource-id", "Values": [vpc_id]}]
        for log in self._ec2.describe_flow_logs(Filter=of_vpc)["FlowLogs"]:
            yield "aws_flow_log.cluster", log["FlowLogId"]

    def _gateways(self) -> Orphans:
        """Ways to the internet. A gateway that failed is of no use."""
        vpc_id = self._vpc
        for gateway in self._ec2.describe_internet_gateways(Filters=self._filters)["InternetGateways"]:
            if not gateway["Attachments"] or gateway["Attachments"][0]["VpcId"] == vpc_id:
                yield "aws_internet_gateway.cluster[0]", gateway["InternetGatewayId"]
        for gateway in self._ec2.describe_nat_gateways(Filter=self._filters)["NatGateways"]:
            if gateway["State"] in ("pending", "available"):
                yield "aws_nat_gateway.cluster[0]", gateway["NatGatewayId"]

    def _routes(self) -> Orphans:
        """Routes, and which subnet uses which table; they have no tags."""
        for place in ("nodes", "gateway[0]"):
            table = self._id(f"aws_route_table.{place}")
            if table is None:
                continue
            for found in self._ec2.describe_route_tables(Filters=[{"Name": "route-table-id", "Values": [table]}])[
                "RouteTables"
            ]:
                if any(each.get("DestinationCidrBlock") == "0.0.0.0/0" for each in found["Routes"]):
                    yield f"aws_route.{'nodes[0]' if place == 'nodes' else place}", f"{table}_0.0.0.0/0"
                subnet = self._id(f"aws_subnet.{place}")
                if any(subnet and each.get("SubnetId") == subnet for each in found["Associations"]):
                    yield f"aws_route_table_association.{place}", f"{subnet}/{table}"

    def _rules(self) -> Orphans:
        """Rules of the security groups of nodes and monitor, by what they let through."""
        places = {"nodes": "aws_security_group.nodes", "monitor": "aws_security_group.monitor[0]"}
        owners = {group: name for name, place in places.items() if (group := self._id(place))}
        between = {("nodes", "nodes"): ("self", "self"), ("monitor", "nodes"): ('monitor["all"]',) * 2,
                   ("nodes", "monitor"): ('from_monitor["all"]', 'to_monitor["all"]')}  # fmt: skip
        webs = {"nodes": "web", "monitor": "monitor_web"}
        admitted = {"nodes": "admitted", "monitor": "admitted_to_monitor"}
        if not owners:
            return
        wanted = [{"Name": "group-id", "Values": list(owners)}]
        for rule in self._ec2.describe_security_group_rules(Filters=wanted)["SecurityGroupRules"]:
            out, owner = rule["IsEgress"], owners[rule["GroupId"]]
            cidr = rule.get("CidrIpv4") or rule.get("CidrIpv6")
            other = owners.get(rule.get("ReferencedGroupInfo", {}).get("GroupId"), "")
            way = "egress_rule" if out else "ingress_rule"
            if (owner, other) in between:
                place = between[owner, other][out]
            elif out and rule.get("PrefixListId"):
                place = "s3"
            elif out and cidr == "0.0.0.0/0" and rule["FromPort"] in WEB:
                place = f'{webs[owner]}["{WEB[rule["FromPort"]]}"]'
            elif not out and cidr and rule["FromPort"] in PORTS:
                place = f'{admitted[owner]}["{PORTS[rule["FromPort"]]} {cidr}"]'
            else:
                continue
            yield f"aws_vpc_security_group_{way}.{place}", rule["SecurityGroupRuleId"]

    def _machines(self) -> Orphans:
        """Machines, and the group that keeps them."""
        running = [{"Name": "instance-state-name", "Values": ["pending", "running"]}]
        number = re.compile(r"\d{2,}")
        for page in self._ec2.get_paginator("describe_instances").paginate(Filters=[*self._filters, *running]):
            for each in (machine for reservation in page["Reservations"] for machine in reservation["Instances"]):
                name = self._named(each)
                if name == "monitor":
                    yield "aws_instance.monitor[0]", each["InstanceId"]
                elif number.fullmatch(name):
                    yield f'aws_instance.node["{self._cluster}-{name}"]', each["InstanceId"]
        pattern = re.compile(rf"{re.escape(self._cluster)}-{GENERATED}")
        pages = self._session.client("autoscaling").get_paginator("describe_auto_scaling_groups").paginate()
        for group in (each for page in pages for each in page["AutoScalingGroups"]):
            if pattern.fullmatch(group["AutoScalingGroupName"]) and self._ours(group.get("Tags", ())):
                yield "aws_autoscaling_group.nodes[0]", group["AutoScalingGroupName"]

    def _identities(self) -> Orphans:
        """Roles with their own policies, and instance profiles."""
        iam = self._session.client("iam")
        places = {"node": "node", "monitor": "monitor[0]", "flow": "flow"}
        pattern = re.compile(rf"{re.escape(self._cluster)}-({'|'.join(places)})-{GENERATED}")

        def listed(operation: str, of: str, kind: str, ask: Callable[..., Any]) -> Iterator[tuple[str, str]]:
            for page in iam.get_paginator(operation).paginate():
                for name in (each[f"{kind}Name"] for each in page[of]):
                    if (match := pattern.fullmatch(name)) and self._ours(
                        ask(**{f"{kind}Name": name})[kind].get("Tags", ())
                    ):
                        yield places[match.group(1)], name

        for place, name in listed("list_roles", "Roles", "Role", iam.get_role):
            yield f"aws_iam_role.{place}", name
        for place, name in listed(
            "list_instance_profiles", "InstanceProfiles", "InstanceProfile", iam.get_instance_profile
        ):
            yield f"aws_iam_instance_profile.{place}", name
        policies = {
            "node": {"checkpoints": "checkpoints", "session": 'session["node"]'},
            "monitor[0]": {"session": 'session["monitor"]'},
            "flow": {"write": "flow"},
        }
        for place, known in policies.items():
            role = self._id(f"aws_iam_role.{place}")
            for name in iam.list_role_policies(RoleName=role)["PolicyNames"] if role else ():
                for prefix, policy in known.items():
                    if re.fullmatch(rf"{prefix}-{GENERATED}", name):
                        yield f"aws_iam_role_policy.{policy}", f"{role}:{name}"


def holds_anything(s3: Any, bucket: str) -> bool:
    """Whether a bucket has an object, or a version of one that was deleted."""
    answer = s3.list_object_versions(Bucket=bucket, MaxKeys=1)
    return bool(answer.get("Versions") or answer.get("DeleteMarkers"))
