"""A job as its nodes read it: the job file with what only the launcher knows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gaudi3_scale.config import Config
from gaudi3_scale.errors import ConfigError
from gaudi3_scale.job_file_text import as_text
from gaudi3_scale.slurm.slurm_checks import problems
from gaudi3_scale.slurm.slurm_options import SlurmOptions


@dataclass(frozen=True)
class SlurmJob:
    """What is written down as a batch script."""

    options: SlurmOptions
    config: Config
    """As the nodes read it."""
    text: str | None
    """The job file of the nodes; None for a script of the user's own."""

    @property
    def on_cards(self) -> bool:
        """Does it use Gaudi cards?"""
        return self.options.gres != "none" and self.config.device in ("auto", "hpu")

    @property
    def folder(self) -> str:
        """Of the job, where the launcher's own files are."""
        return f"{self.options.folder}/{self.options.name}"


def make(given: Config | None, options: SlurmOptions) -> SlurmJob:
    """The job of this file, or of the cluster's `command` where there is none, on this cluster.

    Raises:
        ConfigError: With a sentence for each thing that Slurm does not carry, or that no node could do.
    """
    if (given is None) != bool(options.command):
        raise ConfigError(
            "A job is a job file, or a command in the cluster's file for a script of your own: give one of them."
        )
    if options.chdir is not None and not options.command:
        raise ConfigError("chdir is the folder in which a command runs, and command is not given.")
    config, text = _as_read(given or Config(), options)
    if found := list(problems(config, options)):
        raise ConfigError("\n".join(found))
    return SlurmJob(options, config, None if given is None else text)


def _as_read(given: Config, options: SlurmOptions) -> tuple[Config, str]:
    """The job as the nodes read it, and its file."""
    values: dict[str, Any] = given.model_dump(mode="json", exclude_unset=True)
    added = []
    if "device" not in values:
        values = {"device": "cpu" if options.gres == "none" else "hpu", **values}
        added.append("device")
    if "output_dir" not in values:
        values = {"output_dir": f"{options.folder}/{options.name}", **values}
        added.append("output_dir")
    config = Config.model_validate(values, context={"elsewhere": True})
    head = f"# Set by gaudi3-train slurm: {', '.join(added)}\n" if added else ""
    return config, head + as_text(values)
