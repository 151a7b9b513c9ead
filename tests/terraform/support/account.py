"""An account of AWS, played by moto on loopback."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import boto3


@dataclass
class Account:
    """A moto server that stands for an account."""

    cloud = "aws"

    url: str
    log: Path
    region: str
    environment: dict[str, str] = field(init=False)
    _clients: dict[str, Any] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.environment = {
            "AWS_ENDPOINT_URL": self.url,
            "AWS_ACCESS_KEY_ID": "testing",
            "AWS_SECRET_ACCESS_KEY": "testing",
            "AWS_REGION": self.region,
            "AWS_DEFAULT_REGION": self.region,
            "AWS_EC2_METADATA_DISABLED": "true",
            # Of the catalogue's types with Gaudi AWS has but a withdrawn one, which moto_server puts back.
            "TF_VAR_accept_withdrawn_type": "true",
        }

    def missing(self) -> str | None:
        """What was asked of moto that it cannot: the provider would try again for many minutes."""
        found = re.search(r"NotImplementedError: (.*)", self.log.read_text())
        return f"moto cannot do this: {found.group(1)}" if found else None

    def client(self, service: str) -> Any:
        """A client of boto3; one of each, as its making reads megabytes."""
        if service not in self._clients:
            self._clients[service] = boto3.client(
                service,
                endpoint_url=self.url,
                region_name=self.region,
                aws_access_key_id="testing",
                aws_secret_access_key="testing",
            )
        return self._clients[service]

    def machines(self) -> dict[str, dict[str, Any]]:
        """Machines that run, by name."""
        answer = self.client("ec2").describe_instances(
            Filters=[{"Name": "instance-state-name", "Values": ["pending", "running"]}]
        )
        found = [each for reservation in answer["Reservations"] for each in reservation["Instances"]]
        return {next(tag["Value"] for tag in each["Tags"] if tag["Key"] == "Name"): each for each in found}

    def everything(self) -> dict[str, int]:
        """How much there is of what a cluster is made of."""
        ec2, iam, kms = self.client("ec2"), self.client("iam"), self.client("kms")
        # AWS's own keys are made when they are first used, and stay.
        own = {
            each.get("TargetKeyId")
            for each in kms.list_aliases()["Aliases"]
            if each["AliasName"].startswith("alias/aws/")
        }
        keys = [kms.describe_key(KeyId=each["KeyId"]) for each in kms.list_keys()["Keys"] if each["KeyId"] not in own]
        running = {each["InstanceId"] for each in self.machines().values()}

        subnets = [each for each in ec2.describe_subnets()["Subnets"] if not each["DefaultForAz"]]

        def of_a_gone_machine(volume: dict[str, Any]) -> bool:
            # AWS deletes a root volume with its machine, moto keeps it.
            attached = {each["InstanceId"] for each in volume["Attachments"]}
            return bool(attached) and not attached & running

        volumes = [each for each in ec2.describe_volumes()["Volumes"] if not of_a_gone_machine(each)]
        # AWS deletes what it made for a machine or a NAT gateway, and refuses to delete a subnet with an interface in
        # it. moto does neither.
        there = {subnet["SubnetId"] for subnet in subnets}
        interfaces = [
            each for each in ec2.describe_network_interfaces()["NetworkInterfaces"] if each["SubnetId"] in there
        ]
        groups = ec2.describe_security_groups()["SecurityGroups"]
        return {
            "instances": len(self.machines()),
            "vpcs": len([each for each in ec2.describe_vpcs()["Vpcs"] if not each["IsDefault"]]),
            "subnets": len(subnets),
            "security groups": len([each for each in groups if each["GroupName"] != "default"]),
            "nat gateways": len(
                [each for each in ec2.describe_nat_gateways()["NatGateways"] if each["State"] != "deleted"]
            ),
            "addresses": len(ec2.describe_addresses()["Addresses"]),
            "endpoints": len(
                [each for each in ec2.describe_vpc_endpoints()["VpcEndpoints"] if each["State"] != "deleted"]
            ),
            "interfaces": len(interfaces),
            "volumes": len(volumes),
            "templates": len(ec2.describe_launch_templates()["LaunchTemplates"]),
            "key pairs": len(ec2.describe_key_pairs()["KeyPairs"]),
            "placement groups": len(ec2.describe_placement_groups()["PlacementGroups"]),
            "groups": len(self.client("autoscaling").describe_auto_scaling_groups()["AutoScalingGroups"]),
            "buckets": len(self.client("s3").list_buckets()["Buckets"]),
            "keys": len([each for each in keys if each["KeyMetadata"]["KeyState"] == "Enabled"]),
            "roles": len([each for each in iam.list_roles()["Roles"] if "/aws-service-role/" not in each["Path"]]),
            "profiles": len(iam.list_instance_profiles()["InstanceProfiles"]),
            "logs": len(self.client("logs").describe_log_groups()["logGroups"]),
            "budgets": len(self.client("budgets").describe_budgets(AccountId="123456789012")["Budgets"]),
        }

    def keys_made(self) -> list[dict[str, Any]]:
        """Every key of the cluster that was ever made, as the service has them."""
        kms = self.client("kms")
        found = [each["KeyId"] for each in kms.list_keys()["Keys"]]
        wanted = {"TagKey": "Cluster", "TagValue": "cluster"}
        ours = [key for key in found if wanted in kms.list_resource_tags(KeyId=key)["Tags"]]
        return [kms.describe_key(KeyId=key)["KeyMetadata"] for key in ours]

    def put(self, bucket: str, key: str) -> None:
        """Put an object into a bucket whose policy demands TLS, which moto takes for one that denies everything."""
        s3 = self.client("s3")
        policy = s3.get_bucket_policy(Bucket=bucket)["Policy"]
        s3.delete_bucket_policy(Bucket=bucket)
        s3.put_object(Bucket=bucket, Key=key, Body=b"weights")
        s3.put_bucket_policy(Bucket=bucket, Policy=policy)

    def remove(self, kind: str, identity: str) -> None:
        """Delete a thing by hand, as a person would who was told of it."""
        ec2, iam = self.client("ec2"), self.client("iam")
        known: dict[str, Callable[[], Any]] = {
            "instance": lambda: ec2.terminate_instances(InstanceIds=[identity]),
            "vpc": lambda: ec2.delete_vpc(VpcId=identity),
            "elastic-ip": lambda: ec2.release_address(AllocationId=identity),
            "key-pair": lambda: ec2.delete_key_pair(KeyPairId=identity),
            "launch-template": lambda: ec2.delete_launch_template(LaunchTemplateId=identity),
            "placement-group": lambda: ec2.delete_placement_group(GroupName="cluster"),
            "key": lambda: self.client("kms").schedule_key_deletion(KeyId=identity),
            "bucket": lambda: self.client("s3").delete_bucket(Bucket=identity),
            "log-group": lambda: self.client("logs").delete_log_group(logGroupName=identity),
            "role": lambda: iam.delete_role(RoleName=identity),
            "instance-profile": lambda: iam.delete_instance_profile(InstanceProfileName=identity),
        }
        known[kind]()


@contextmanager
def moto_account(
    folder: Path, region: str, gate: Path | None = None, public_network: str | None = None
) -> Iterator[Account]:
    """An empty account: a moto server on a free port, ended by its id; its log is in ``folder``.

    ``gate`` is a folder by which it can be stopped at an instant (moto_server.Gate). Public addresses are loopback's,
    where nobody answers, or those of ``public_network``, such as 198.51.100.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    log = folder / "moto.log"
    server = Path(__file__).parent / "moto_server.py"
    with log.open("w") as handle:
        process = subprocess.Popen(
            [sys.executable, str(server), "-H", "127.0.0.1", "-p", str(port)],
            env={
                **{key: value for key, value in os.environ.items() if not key.startswith("AWS_")},
                **({"GATE": str(gate)} if gate else {}),
                **({"PUBLIC_NETWORK": public_network} if public_network else {}),
            },
            stdout=handle,
            stderr=subprocess.STDOUT,
        )
        try:
            for _attempt in range(240):
                assert process.poll() is None, log.read_text()[-2000:]
                try:
                    urllib.request.urlopen(f"http://127.0.0.1:{port}/moto-api/", timeout=5).close()
                    break
                except OSError:
                    time.sleep(0.25)
            yield Account(f"http://127.0.0.1:{port}", log, region)
        finally:
            process.terminate()
            process.wait(timeout=30)
