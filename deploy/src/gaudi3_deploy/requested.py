"""What is asked for, laid over what was asked for before."""

from __future__ import annotations

import datetime
import os
from pathlib import Path
from typing import Any

import yaml

from gaudi3_deploy import declared, given_file, record, yaml_file
from gaudi3_deploy.errors import UsageError
from gaudi3_deploy.messages import reason
from gaudi3_deploy.record import Deployment

PREFIX = "TF_VAR_"
KEY = "ssh_public_key"
#: Variables by which a root module takes a key that the account has already.
KEYS_THERE = ("existing_key_name", "existing_ssh_key_ids", "ssh_key_name", "ssh_key_ids", "ssh_key_id", "key_name")
#: Where ECDSA keys are taken, too: elsewhere the plan would refuse one that nobody gave.
ANY_KEY = ("gcp", "onprem")
CLOUDS = ("aws", "azure", "gcp", "ibm", "onprem")


def requested_deployment(
    deployments: Path,
    tree: Path,
    name: str,
    cloud: str | None,
    size: int | None,
    kind: str | None,
    var: list[str] | None,
    var_file: Path | None,
    ssh_key: Path | None = None,
) -> Deployment:
    """The record with what is asked for now laid over what was asked for before; nothing is written yet.

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
    variables = {**deployment.variables, **_read_variables(var_file), **dict(variable(each) for each in var or ())}
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
    known = declared.names(tree / deployment.cloud)
    if ssh_key is not None:
        variables[KEY] = public_key(ssh_key)
    elif KEY in known and not {KEY, *KEYS_THERE} & {each for each in variables if variables[each]}:
        named = any(f"{PREFIX}{each}" in os.environ for each in (KEY, *KEYS_THERE))
        own = None if named else default_key(deployment.cloud)
        if own is not None and f"{PREFIX}{KEY}" not in deployment.environment:
            variables[KEY] = public_key(own)
    deployment.variables = variables
    deployment.environment |= {
        f"{PREFIX}{each}": os.environ[f"{PREFIX}{each}"] for each in known if f"{PREFIX}{each}" in os.environ
    }
    return deployment


def default_key(cloud: str) -> Path | None:
    """The user's own public key, of the types that the cloud takes."""
    kinds = ("ed25519", "rsa", "ecdsa") if cloud in ANY_KEY else ("ed25519", "rsa")
    found = (Path.home() / ".ssh" / f"id_{kind}.pub" for kind in kinds)
    return next((each for each in found if each.is_file()), None)


def public_key(path: Path) -> str:
    """The key in a file such as ~/.ssh/id_ed25519.pub; for a private one, that beside it."""
    path = path.expanduser()
    try:
        text = given_file.read_text(path).strip()
        if "PRIVATE KEY" in text:
            text = given_file.read_text(path.with_name(f"{path.name}.pub")).strip()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"The public key of {path} cannot be read ({reason(error)}): give a file such as id_ed25519.pub."
        ) from None
    if len(text.split()) < 2 or "\n" in text:
        raise UsageError(f"There is no public key in {path}: give a file such as ~/.ssh/id_ed25519.pub.")
    return text


def given_names(var: list[str] | None, var_file: Path | None) -> list[str]:
    """The variables that were named now."""
    return [*_read_variables(var_file), *(variable(each)[0] for each in var or ())]


def variable(text: str) -> tuple[str, Any]:
    key, separator, value = text.partition("=")
    if not separator or not key:
        raise UsageError(f"The variable {text!r} is not of the form KEY=VALUE: write for example region=us-west-2.")
    try:
        found = yaml_file.read(value)
        return key, value if isinstance(found, datetime.date) else _plain(found)
    except yaml.YAMLError:
        raise UsageError(f"The value of the variable {text!r} is not valid YAML: put it in quotes.") from None


def _read_variables(path: Path | None) -> dict[str, Any]:
    if path is None:
        return {}
    try:
        values = yaml_file.read(given_file.read_text(path))
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise UsageError(
            f"The variables in {path} cannot be read ({reason(error)}): give a YAML or JSON file."
        ) from None
    if not isinstance(values, dict):
        raise UsageError(
            f"The file {path} is not a mapping of variables to values: write for example region: us-west-2."
        )
    return {str(key): _plain(value) for key, value in values.items()}


def _plain(value: Any) -> Any:
    """As JSON has it, which knows no dates: in YAML 2026-01-01 is one."""
    if isinstance(value, dict):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    return value if value is None or isinstance(value, (str, int, float)) else str(value)
