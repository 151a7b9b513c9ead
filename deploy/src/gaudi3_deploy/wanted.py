"""What is asked for, laid over what was asked for before."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import yaml

from gaudi3_deploy import record
from gaudi3_deploy.errors import UsageError
from gaudi3_deploy.record import Deployment
from gaudi3_deploy.terraform import variables_of

PREFIX = "TF_VAR_"
CLOUDS = ("aws", "azure", "gcp", "ibm", "onprem")


def wanted(
    deployments: Path,
    tree: Path,
    name: str,
    cloud: str | None,
    size: int | None,
    kind: str | None,
    var: list[str] | None,
    var_file: Path | None,
) -> Deployment:
    """The record with what is asked for now laid over what was asked for before.

    `tree` has a root module per cloud. What its variables are given by TF_VAR_NAME is kept as well, so that a shell in
    which it is not set can take down what was made.
    """
    deployment = record.load(deployments, name)
    if deployment is None or deployment.phase == "down":
        if cloud is None:
            raise UsageError(f"Deployment {name!r} is new: say where with --cloud, one of {', '.join(CLOUDS)}.")
        periods = deployment.periods if deployment else []
        deployment = Deployment(record.check_name(name), deployments / name, cloud, periods=periods)
    if cloud is not None and cloud not in CLOUDS:
        raise UsageError(f"The cloud {cloud!r} is none of {', '.join(CLOUDS)}: give one of them.")
    if cloud is not None and cloud != deployment.cloud:
        raise UsageError(
            f"Deployment {name!r} is in {deployment.cloud}, not {cloud}: give the new one another name, or take this "
            f"one down first."
        )
    variables = {**deployment.variables, **_read_variables(var_file), **dict(_variable(each) for each in var or ())}
    for key, value in (("name", name), ("cluster_size", size), ("instance_type", kind)):
        if value is not None:
            variables[key] = value
    before, region = deployment.variables.get("region"), variables.get("region")
    if deployment.phase == "stored" and region != before:
        raise UsageError(
            f"The checkpoints of deployment {name!r} are kept in {before or 'the default region'}, and region is "
            f"{region}: give the same, take another name, or delete them first with `gaudi3-deploy down {name} "
            "--checkpoints`."
        )
    deployment.variables = variables
    deployment.environment |= {
        f"{PREFIX}{each}": os.environ[f"{PREFIX}{each}"]
        for each in variables_of(tree / deployment.cloud)
        if f"{PREFIX}{each}" in os.environ
    }
    deployment.save()
    return deployment


def _variable(text: str) -> tuple[str, Any]:
    key, separator, value = text.partition("=")
    if not separator or not key:
        raise UsageError(f"The variable {text!r} is not of the form KEY=VALUE: write for example region=us-west-2.")
    try:
        return key, yaml.safe_load(value)
    except yaml.YAMLError:
        raise UsageError(f"The value of the variable {text!r} is not valid YAML: put it in quotes.") from None


def _read_variables(path: Path | None) -> dict[str, Any]:
    if path is None:
        return {}
    try:
        values = yaml.safe_load(path.read_text())
    except (OSError, yaml.YAMLError) as error:
        raise UsageError(f"The variables in {path} cannot be read ({error}): give a YAML or JSON file.") from None
    if not isinstance(values, dict):
        raise UsageError(
            f"The file {path} is not a mapping of variables to values: write for example region: us-west-2."
        )
    return values
