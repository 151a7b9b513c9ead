"""A job as its nodes read it: the job file with what only the launcher knows."""

from __future__ import annotations

from dataclasses import dataclass

from gaudi3_scale.config import Config
from gaudi3_scale.errors import ConfigError
from gaudi3_scale.launcher_job import as_read, job_or_command
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
    job = job_or_command(given, options.command)
    if options.chdir is not None and not options.command:
        raise ConfigError("chdir is the folder in which a command runs, and command is not given.")
    known = {
        "device": "cpu" if options.gres == "none" else "hpu",
        "output_dir": f"{options.folder}/{options.name}",
    }
    config, text = as_read(job, known, "gaudi3-train slurm")
    if found := list(problems(config, options)):
        raise ConfigError("\n".join(found))
    return SlurmJob(options, config, None if given is None else text)
