"""What keeps a job from running under Slurm as it should, each in a sentence: sbatch takes all of these."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import PurePosixPath

from gaudi3_scale.config import Config
from gaudi3_scale.launcher_checks import leaving, open_secrets, read_by, variable, written_by
from gaudi3_scale.slurm.slurm_options import LAUNCHER, SlurmOptions, seconds_of

EARLY = 60
"""Seconds by which Slurm may send the signal ahead of the time that it is given (sbatch's manual, --signal)."""
CARDS = 8
SETS = (1, 2, 4, 8)
"""Numbers of cards of a node that the vendor supports together."""
OF_ONE_NODE = ("/tmp", "/var/tmp", "/dev/shm", "/run")
OF_SCRIPT = ("folder", "head", "port", "code")
"""Variables of the script itself."""
OF_SHELL = (
    "BASHOPTS", "BASHPID", "BASH_ALIASES", "BASH_ARGC", "BASH_ARGV", "BASH_CMDS", "BASH_COMMAND", "BASH_LINENO",
    "BASH_MONOSECONDS", "BASH_SOURCE", "BASH_SUBSHELL", "BASH_TRAPSIG", "BASH_VERSINFO", "DIRSTACK", "EPOCHREALTIME",
    "EPOCHSECONDS", "EUID", "FUNCNAME", "GROUPS", "HISTCMD", "LINENO", "OPTIND", "PIPESTATUS", "PPID", "RANDOM",
    "SECONDS", "SHELLOPTS", "SRANDOM", "UID", "_",
)  # fmt: skip
"""Variables that bash lets nobody set, or hands on with other values than they were given (seen with 5.2)."""
_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")


def problems(config: Config, options: SlurmOptions) -> Iterator[str]:
    """All of them; `config` is the job file as the nodes read it."""
    if not _NAME.fullmatch(options.name):
        yield (
            f"name is {options.name!r}, but it has to be 1 to 63 letters, digits, '.', '_' and '-', with a letter or "
            "digit at both ends."
        )
    yield from _devices(config, options)
    yield from _environment(options)
    yield from _setup(options)
    yield from _files(config, options)
    least = options.stop_timeout + EARLY
    if (given := seconds_of(options.time)) <= least:
        yield (
            f"time is {options.time}, which is {given} s, and the notice comes up to {least} s before its end "
            f"(stop_timeout + {EARLY}): give more time, or a shorter stop_timeout."
        )
    yield from leaving(config, options.stop_timeout, LAUNCHER)
    yield from open_secrets(
        config, "all who read the script would see it: put it into a variable, and read that from a file in setup"
    )


def _devices(config: Config, options: SlurmOptions) -> Iterator[str]:
    processes, cards = options.processes_per_node, options.gres != "none"
    if config.device == "cuda":
        yield f"device is cuda, and {LAUNCHER} asks for Gaudi cards or for none: set device to hpu or cpu."
    if config.device == "hpu" and not cards:
        yield f"device is hpu, and gres is none, with which {LAUNCHER} asks for no cards: change one of them."
    if config.device not in ("auto", "hpu") or not cards:
        return
    if processes > CARDS:
        yield f"processes_per_node is {processes}, and a node has {CARDS} cards: give {CARDS}, or device cpu."
    elif options.allow_partial_nodes:
        return
    elif processes not in SETS:
        yield (
            f"processes_per_node is {processes}, where 1, 2, 4 or 8 are supported: give one of them, or set "
            "allow_partial_nodes to try it."
        )
    elif options.nodes > 1 and processes < CARDS:
        yield (
            f"processes_per_node is {processes} on {options.nodes} nodes, and Slurm may choose other modules on each, "
            "whose ports are not wired to each other: give 8, or one node, or set allow_partial_nodes to try it."
        )


def _environment(options: SlurmOptions) -> Iterator[str]:
    secret = "all who read the script would see it: read it from a file in setup"
    for name in options.environment:
        if name.startswith(("SLURM_", "SBATCH_", "SRUN_")):
            yield f"environment has {name}, which is Slurm's: give its option in options."
        elif name in OF_SCRIPT:
            yield f"environment has {name}, which the script uses for itself: choose another name."
        elif name in OF_SHELL:
            yield f"environment has {name}, which the shell sets: take it out."
        else:
            yield from variable(name, "the task prolog", secret)


def _setup(options: SlurmOptions) -> Iterator[str]:
    """What bash says of the lines, which it only reads: one without its end would take in the rest of the script."""
    bash = shutil.which("bash")
    if not options.setup or bash is None:
        return
    text = "\n".join(options.setup) + "\n"
    done = subprocess.run(
        [bash, "--norc", "-n", "-s"], input=text, env={"LC_ALL": "C"}, capture_output=True, text=True, check=False
    )
    if said := done.stderr.strip().splitlines():
        yield f"setup is no whole piece of a shell: bash says: {said[0].partition(': ')[2]}: correct it."


def _files(config: Config, options: SlurmOptions) -> Iterator[str]:
    """Files and folders that the job names."""
    named = {**read_by(config), **written_by(config)}
    if options.command:
        named["command"] = str(PurePosixPath(options.chdir or ".", options.command[0]))
    for key, path in named.items():
        if not path.startswith("/"):
            yield f"{key} is {path!r}, and {LAUNCHER} needs an absolute path, as the nodes see it."
    for key, path in written_by(config).items():
        if any(path == folder or path.startswith(f"{folder}/") for folder in OF_ONE_NODE):
            yield (
                f"{key} is {path}, which each node has for itself, and Slurm may give the job another node each time: "
                "choose a folder that all nodes share."
            )
