"""What can be known before anything is rented: tools, credentials, quota, price, the way in."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gaudi3_deploy import estimate
from gaudi3_deploy.record import Deployment
from gaudi3_deploy.requested import KEY, KEYS_THERE, PREFIX

OK, PROBLEM, UNKNOWN = "ok", "problem", "unknown"
#: By what the providers take credentials from the environment; AWS is asked itself.
VARIABLES = {
    "ibm": ("IC_API_KEY", "IBMCLOUD_API_KEY"),
    "azure": ("ARM_CLIENT_ID", "ARM_USE_CLI", "ARM_USE_OIDC"),
    "gcp": ("GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_CREDENTIALS"),
}
#: IBM Cloud VPC documentation, Quotas and service limits: per region, until a higher one is granted.
IBM_QUOTA = {"vCPU": 200, "GPU": 16, "TB of instance storage": 18}
#: Families of instance types by the words of the quota's name in Service Quotas ("Running On-Demand DL instances").
FAMILIES = {"dl": "DL", "p": "P", "g": "G and VT", "trn": "Trn", "inf": "Inf"}


@dataclass(frozen=True)
class Finding:
    """What was found out about one thing."""

    what: str
    verdict: str
    sentence: str

    def as_dict(self) -> dict[str, str]:
        """For a program."""
        return {"check": self.what, "result": self.verdict, "sentence": self.sentence}


def look(
    deployment: Deployment, offer: Mapping[str, Any] | None, price: estimate.Price | None, executable: str
) -> Iterator[Finding]:
    """Everything, in the order in which it would fail."""
    yield from _tools(deployment, executable)
    yield _type(deployment, offer)
    yield _credentials(deployment)
    yield from _quota(deployment, offer)
    if price is not None:
        verdict = OK if price.usd_per_hour is not None else UNKNOWN
        yield Finding("price", verdict, price.description)
    yield _key(deployment)
    yield _way_in(deployment)


def _tools(deployment: Deployment, executable: str) -> Iterator[Finding]:
    wanted = {
        executable: "Terraform 1.9 or newer",
        "ssh": "OpenSSH's client",
        "ansible-playbook": "ansible-core 2.17 to 2.21",
    }
    if deployment.variables.get("connection") == "ssm":
        wanted |= {"aws": "the AWS command line", "session-manager-plugin": "the AWS command line's plugin"}
    missing = [f"{command} ({what})" for command, what in wanted.items() if shutil.which(command) is None]
    if missing:
        yield Finding("tools", PROBLEM, f"not on this machine: {', '.join(missing)}: install what is missing")
    else:
        yield Finding("tools", OK, f"{', '.join(Path(each).name for each in wanted)} are there")


def _type(deployment: Deployment, offer: Mapping[str, Any] | None) -> Finding:
    name = str(deployment.variables.get("instance_type", ""))
    if offer is None:
        return Finding("type", UNKNOWN, f"the catalogue has no {name or 'type, as none was given'}")
    if offer["withdrawn"] and not _given(deployment, "accept_withdrawn_type"):
        since = offer["withdrawn"]["since"] if isinstance(offer["withdrawn"], dict) else offer["withdrawn"]
        return Finding("type", PROBLEM, f"{name} is no longer offered (since {since}): take another type")
    if offer["refused"]:
        return Finding("type", PROBLEM, str(offer["refused"]))
    region, regions = deployment.region, offer["regions"]
    if region and regions and region not in regions:
        return Finding("type", PROBLEM, f"{name} is not known to be offered in {region}: use {', '.join(regions)}")
    return Finding("type", OK, f"{name}: {offer['cards']} x {offer['accelerator']} (seen {offer['seen']})")


def _credentials(deployment: Deployment) -> Finding:
    cloud = deployment.cloud
    if cloud == "onprem":
        return Finding("credentials", OK, "none are needed for machines that are your own")
    if cloud == "aws":
        answer = _ask_aws(deployment, "sts", lambda client: client.get_caller_identity()["Arn"])
        return Finding("credentials", OK if answer[0] else PROBLEM, answer[1])
    found = [each for each in VARIABLES[cloud] if os.environ.get(each)]
    if found:
        return Finding("credentials", OK, f"{found[0]} is set; whether {cloud} takes it is seen when it is planned")
    wanted = " or ".join(VARIABLES[cloud])
    # The other two have command lines whose sessions their providers take.
    verdict = PROBLEM if cloud == "ibm" else UNKNOWN
    return Finding("credentials", verdict, f"{wanted} is not set: the provider takes its credentials from there")


def _quota(deployment: Deployment, offer: Mapping[str, Any] | None) -> Iterator[Finding]:
    if offer is None or deployment.cloud not in ("aws", "ibm") or not offer.get("vcpus"):
        return
    count = int(deployment.variables.get("cluster_size") or 0) // int(offer["cards"])
    if deployment.cloud == "ibm":
        storage = (offer.get("nvme_count") or 0) * (offer.get("nvme_gb") or 0) / 1000
        needed = {"vCPU": offer["vcpus"], "GPU": offer["cards"], "TB of instance storage": storage}
        beyond = [
            f"{count * each:g} {what} of {IBM_QUOTA[what]}"
            for what, each in needed.items()
            if count * each > IBM_QUOTA[what]
        ]
        if beyond:
            sentence = (
                f"{count} node(s) need {', '.join(beyond)} that a new account has in a region: ask IBM for a quota"
            )
            yield Finding("quota", UNKNOWN, f"{sentence}, unless yours is higher already")
        return
    family = re.match(r"[a-z]+", str(deployment.variables["instance_type"]))
    word = FAMILIES.get(family.group() if family else "")
    if word is None:
        return
    needed_vcpus = count * int(offer["vcpus"])

    def quota(client: Any) -> str:
        pages = client.get_paginator("list_service_quotas").paginate(ServiceCode="ec2")
        named = f"Running On-Demand {word} instances"
        for each in (quota for page in pages for quota in page["Quotas"]):
            if each["QuotaName"] == named:
                return str(each["Value"])
        return ""

    known, answer = _ask_aws(deployment, "service-quotas", quota)
    if not known or not answer:
        yield Finding(
            "quota", UNKNOWN, f"the quota of on-demand {word} instances was not read" + f": {answer}" * (not known)
        )
    elif float(answer) < needed_vcpus:
        sentence = f"{count} node(s) need {needed_vcpus} vCPUs of on-demand {word} instances, and the quota is {answer}"
        yield Finding("quota", PROBLEM, f"{sentence}: ask AWS for a higher one")
    else:
        yield Finding("quota", OK, f"{needed_vcpus} vCPUs of {float(answer):g}")


def _ask_aws(deployment: Deployment, service: str, question: Callable[[Any], str]) -> tuple[bool, str]:
    """Whether AWS answered, and its answer or the reason."""
    try:
        import boto3
        from botocore.exceptions import BotoCoreError, ClientError
    except ImportError:
        return False, "boto3 is not installed: pip install boto3"
    try:
        return True, question(boto3.Session(region_name=deployment.region).client(service))
    except (BotoCoreError, ClientError) as error:
        return False, " ".join(str(error).split())


def _key(deployment: Deployment) -> Finding:
    given = [each for each in (KEY, *KEYS_THERE) if _given(deployment, each)]
    if deployment.cloud == "onprem" or given:
        return Finding("ssh key", OK, "given" if given else "your machines know yours already")
    return Finding("ssh key", PROBLEM, "there is none in ~/.ssh/id_*.pub: give one with --ssh-key")


def _given(deployment: Deployment, variable: str) -> Any:
    """What was asked for, by an option or by TF_VAR_NAME; None where neither was."""
    environment = deployment.environment.get(f"{PREFIX}{variable}")
    return deployment.variables.get(variable, None if environment in ("", "false", "[]") else environment)


def _way_in(deployment: Deployment) -> Finding:
    jump = str(_given(deployment, "jump_host") or "")
    if jump:
        called = ["ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", jump, "true"]
        try:
            answer = subprocess.run(called, capture_output=True, text=True, check=False, timeout=30)
        except (OSError, subprocess.TimeoutExpired) as error:
            return Finding("way in", PROBLEM, f"the jump host {jump} was not reached ({error}): try `ssh {jump}`")
        if answer.returncode:
            reason = (answer.stderr.strip().splitlines() or ["no reason given"])[-1]
            return Finding("way in", PROBLEM, f"the jump host {jump} does not let you in ({reason}): try `ssh {jump}`")
        return Finding("way in", OK, f"the jump host {jump} lets you in")
    if deployment.cloud == "onprem":
        return Finding("way in", OK, "you reach the machines directly")
    for each in ("connection", "public_entry", "allowed_cidrs"):
        value = _given(deployment, each)
        if value not in (None, "", "direct", "none", []):
            return Finding("way in", UNKNOWN, f"{each} is {value}; whether it leads to the nodes is seen by `wait`")
    sentence = "none is set: give jump_host or allowed_cidrs" + (", or connection=ssm" * (deployment.cloud == "aws"))
    return Finding("way in", PROBLEM, sentence)
