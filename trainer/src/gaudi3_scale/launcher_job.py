"""A job as another launcher's nodes read it: the job file with what only the launcher knows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gaudi3_scale.config import Config
from gaudi3_scale.errors import ConfigError
from gaudi3_scale.job_file_text import as_text


def job_or_command(given: Config | None, command: object) -> Config:
    """The job of the file, or the defaults where the cluster's file has a command instead.

    Raises:
        ConfigError: For both or neither.
    """
    if (given is None) != bool(command):
        raise ConfigError(
            "A job is a job file, or a command in the cluster's file for a script of your own: give one of them."
        )
    return given or Config()


def as_read(given: Config, known: Mapping[str, Any], launcher: str) -> tuple[Config, str]:
    """The job as the nodes read it, and its file, whose head names the keys of `known` that the job leaves open.

    Args:
        given: The job.
        known: What the launcher knows, by key, dotted within a section.
        launcher: The command that writes the job, such as `gaudi3-train slurm`.
    """
    values: dict[str, Any] = given.model_dump(mode="json", exclude_unset=True)
    added = []
    for key, value in known.items():
        section, _, name = key.rpartition(".")
        if name in (values.get(section, {}) if section else values):
            continue
        if section:
            values[section] = {**values.get(section, {}), name: value}
        else:
            values = {key: value, **values}
        added.append(key)
    config = Config.model_validate(values, context={"elsewhere": True})
    head = f"# Set by {launcher}: {', '.join(added)}\n" if added else ""
    return config, head + as_text(values)
