"""Reading the cluster's file: each wrong or missing key in a sentence."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from gaudi3_scale import yaml_file
from gaudi3_scale.config.section import Section
from gaudi3_scale.errors import ConfigError
from gaudi3_scale.kubernetes.cluster import ASKED, NOT_CARRIED, ClusterOptions, PodMonitorOptions, Toleration, Volume

LAUNCHER = "the Kubernetes launcher"


def read_options(
    path: Path | None, overrides: Sequence[str], given: Mapping[str, Any], on_cards: bool
) -> ClusterOptions:
    """The cluster's file (none = no file) with KEY=VALUE overrides and what the command line gives by name.

    Raises:
        ConfigError: With a sentence for each thing that is missing, or one for the first that is wrong.
    """
    values = _file(path) if path is not None else {}
    for override in overrides:
        key, separator, text = override.partition("=")
        if not separator or not key:
            raise ConfigError(f"--set is {override!r}: give KEY=VALUE, such as --set image=registry.example/train:1.")
        try:
            values[key] = yaml_file.read(text) if text else ""
        except yaml.YAMLError:
            raise ConfigError(f"The value of --set {override!r} is not valid YAML: put it in quotes.") from None
    values |= {key: value for key, value in given.items() if value is not None}
    return checked(values, on_cards)


def checked(values: Mapping[str, Any], on_cards: bool) -> ClusterOptions:
    """The options of these values; ConfigError as of `read_options`."""
    refused = [
        f"{key} is set, and {LAUNCHER} does not carry it: {NOT_CARRIED[key]}." for key in values if key in NOT_CARRIED
    ]
    unknown = [_unknown(key) for key in values if key not in NOT_CARRIED and key not in ClusterOptions.model_fields]
    on_cards = on_cards and values.get("devices") != "none"
    asked = [key for key in ASKED if values.get(key) is None and (on_cards or key != "huge_pages")]
    missing = [f"{key} is not given: {ASKED[key]}." for key in asked]
    if refused or unknown or missing:
        raise ConfigError("\n".join([*refused, *unknown, *missing]))
    try:
        return ClusterOptions.model_validate(values)
    except ValidationError as error:
        raise ConfigError(_sentence(error)) from None


def template() -> str:
    """A cluster's file to start from, each key with its meaning; those with a default as comments."""
    lines = ["# The cluster of `gaudi3-train kubernetes --cluster FILE`. Fill in what has no #, which has no default."]
    for name, field in ClusterOptions.model_fields.items():
        if field.is_required() or name in ASKED:
            example = {"volumes": "[{claim: , access: , path: /checkpoints}]"}.get(name, "")
            lines.append(f"{name}: {example}".rstrip() + f"  # {field.description}")
        else:
            default = list(field.default) if isinstance(field.default, tuple) else field.default
            text = yaml.safe_dump(default, default_flow_style=True).splitlines()[0]
            lines.append(f"#{name}: {text}  # {field.description}")
    for title, section in (
        ("each of volumes", Volume),
        ("pod_monitor", PodMonitorOptions),
        ("each of tolerations", Toleration),
    ):
        lines += [f"# In {title}:", *_about(section)]
    return "\n".join(lines) + "\n"


def _about(section: type[Section]) -> Iterator[str]:
    for name, field in section.model_fields.items():
        yield f"#   {name}: {field.description}"


def _file(path: Path) -> dict[str, Any]:
    try:
        values = yaml_file.read(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no UTF-8"
        raise ConfigError(
            f"The cluster's file {path} cannot be read ({reason}): `gaudi3-train kubernetes --template` prints one to "
            "start from."
        ) from None
    except yaml.YAMLError as error:
        raise ConfigError(f"The cluster's file {path} is not valid YAML ({str(error).splitlines()[0]}).") from None
    if values is None:
        return {}
    if not isinstance(values, dict):
        raise ConfigError(f"The cluster's file {path} is a {type(values).__name__}, and has to be keys with values.")
    return {str(key): value for key, value in values.items()}


def _unknown(key: str) -> str:
    near = difflib.get_close_matches(key, ClusterOptions.model_fields, n=1, cutoff=0.6)
    hint = f"did you mean {near[0]!r}?" if near else "`gaudi3-train kubernetes --template` prints all keys."
    return f"Unknown key {key!r} of the cluster: {hint}"


def _sentence(error: ValidationError) -> str:
    """One sentence about the first thing that is wrong; a misspelt key explains most others, so it goes first."""
    problem = sorted(error.errors(), key=lambda each: each["type"] != "extra_forbidden")[0]
    key = ".".join(str(part) for part in problem["loc"])
    if problem["type"] == "extra_forbidden":
        return f"Unknown key {key!r} of the cluster: `gaudi3-train kubernetes --template` prints all keys."
    if problem["type"] == "missing":
        return f"{key} is not given: `gaudi3-train kubernetes --template` says what it is."
    reason = str(problem["ctx"]["error"]) if problem["type"] == "value_error" else problem["msg"]
    reason = reason[:1].lower() + reason[1:]
    if not key:
        return f"Of the cluster's keys, {reason}."
    if problem["type"] == "value_error" and isinstance(problem["input"], dict):
        return f"{key}: {reason}."
    return f"{key} is {problem['input']!r}, but it {reason.removeprefix('input ').replace('should', 'has to')}."
