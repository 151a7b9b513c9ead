"""What the cluster is and how the job runs there: the file of `--cluster`.

What role trainer and the Kubernetes launcher know too has the same name here.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, field_validator

from gaudi3_scale.config.section import Section
from gaudi3_scale.launcher_checks import MOST_NODES
from gaudi3_scale.launcher_file import LauncherFile

LAUNCHER = "the Slurm launcher"
_TIME = re.compile(r"(?:(\d+)-)?(\d+)(?::([0-5]?\d))?(?::([0-5]?\d))?", re.ASCII)
_LONGEST = 2**31
"""Seconds, which Slurm counts in 32 bits."""
_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@%+:/,=&|*()\[\]!-]*")
_OWN = ("--job-name", "--nodes", "--ntasks", "--gres", "--gpus", "--time", "--signal", "--requeue", "--no-requeue",
        "--open-mode", "--output", "--error", "--cpus-per-task", "--mem", "--partition", "--account", "--qos",
        "--reservation", "--constraint", "--exclude", "--exclusive", "--array", "--wrap", "--chdir")  # fmt: skip


def seconds_of(time: str) -> int:
    """Seconds of a time limit as sbatch takes it; ValueError for another text.

    >>> seconds_of("90"), seconds_of("1:30:00"), seconds_of("1-12"), seconds_of("2-00:30")
    (5400, 5400, 129600, 174600)
    """
    found = _TIME.fullmatch(time)
    if found is None:
        raise ValueError("has to be minutes, hours:minutes:seconds or days-hours, such as 24:00:00 or 2-12")
    days, first, second, third = (int(part) if part else None for part in found.groups())
    assert first is not None
    if days is not None:
        return ((days * 24 + first) * 60 + (second or 0)) * 60 + (third or 0)
    if third is not None:
        return (first * 60 + (second or 0)) * 60 + third
    return first * 60 + (second or 0)


def _time(value: str) -> str:
    if seconds_of(value) < 1:
        raise ValueError("has to be above 0")
    if seconds_of(value) >= _LONGEST:
        raise ValueError(f"has to be below {_LONGEST // 86400} days")
    return value


def _text(value: Any) -> Any:
    """YAML reads 24:00:00 as seconds, and 90 as a number."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return value


def _word(value: str) -> str:
    if not _WORD.fullmatch(value):
        raise ValueError("has to be one word without spaces, quotes, '#' and '$'")
    return value


def _folder(value: str) -> str:
    parts = value.split("/")
    if not re.fullmatch(r"/[A-Za-z0-9._@%+=/-]+", value) or any(part in ("", ".", "..") for part in parts[1:]):
        raise ValueError("has to be an absolute path below / without spaces, '.' and '..', such as /shared/jobs")
    return value


def _line(value: str) -> str:
    if not value.strip() or not value.isprintable():
        raise ValueError("has to be one line of a shell")
    return value


def _names(line: str) -> Iterator[str]:
    """What a line of sbatch's options sets: `--a=1 --b 2` is two options, and the first word is one whatever it is."""
    try:
        words = shlex.split(line)
    except ValueError:
        raise ValueError(f"{line!r} has a quote without its end") from None
    for number, word in enumerate(words):
        if not number or word.startswith("-"):
            yield word.partition("=")[0]


Word = Annotated[str, BeforeValidator(_text), AfterValidator(_word)]
Text = Annotated[str, BeforeValidator(_text)]
Time = Annotated[str, AfterValidator(_time)]
Folder = Annotated[str, AfterValidator(_folder)]
Line = Annotated[str, AfterValidator(_line)]


class SlurmOptions(Section):
    """How the job runs on the cluster."""

    name: str = Field(description="of the job")
    nodes: int = Field(ge=1, le=MOST_NODES, description="number of nodes")
    processes_per_node: int = Field(ge=1, le=1024, description="processes of a node, each of which has a card")
    cpu: int = Field(ge=1, le=65533, description="processors that the job has on a node, such as 128")
    time: Time = Field(description="limit, such as 24:00:00; the job saves before it and goes back into the queue")
    folder: Folder = Field(description="that all nodes share, for the folders of jobs, such as /shared/jobs")

    gres: Word = Field("gpu:gaudi3", description="what Slurm calls a card; none = ask for none")
    partition: Word | None = Field(None, description="null = the cluster's default")
    account: Word | None = Field(None, description="null = yours")
    qos: Word | None = Field(None, description="quality of service; null = the cluster's default")
    reservation: Word | None = Field(None, description="null = none")
    constraint: Word | None = Field(None, description="features that the nodes have; null = any")
    exclude: Word | None = Field(None, description="nodes that the job does not get; null = none")
    exclusive: bool = Field(False, description="share the nodes with no other job")
    memory: Word | None = Field(None, description="of a node, such as 800G; null = the partition's default")
    options: tuple[Line, ...] = Field((), description="further options of sbatch, such as --mail-type=FAIL")
    setup: tuple[Line, ...] = Field((), description="lines of the script before the job starts, such as module load")

    venv: Folder = Field("/opt/gaudi3-scale/venv", description="Python environment of the trainer, on all nodes")
    command: tuple[str, ...] = Field((), description="a script of your own and its arguments, in place of a job file")
    chdir: Folder | None = Field(None, description="folder in which the command runs; null = where sbatch is called")
    allow_partial_nodes: bool = Field(
        False, description="take 3, 5, 6 or 7 cards, or a part of several nodes, which the vendor does not support"
    )
    max_restarts: int = Field(0, ge=0, le=1000, description="of the processes after a failure, before the job fails")
    requeue: bool = Field(True, description="put an interrupted job back into the queue")
    stop_timeout: int = Field(
        120, ge=10, le=65535, description="seconds to write a checkpoint and end; KillWait has to be as long"
    )
    threads: int | None = Field(None, ge=1, description="OMP_NUM_THREADS of each process; null = torchrun's default")
    environment: dict[str, Text] = Field({}, description="variables of the processes, shown in the script")
    interface: Word | None = Field(None, description="network interface on which nodes meet; null = by their names")
    rdzv_port: int | None = Field(None, ge=1024, le=65535, description="where nodes meet; null = by the job's number")

    @field_validator("time", mode="before")
    @classmethod
    def _as_sbatch_reads_it(cls, value: Any) -> Any:
        """YAML 1.1 reads 24:00:00 as 86400 and 90 as 90, and nobody knows which it was: texts only."""
        if isinstance(value, int) and not isinstance(value, bool):
            raise ValueError('has to be in quotes, as YAML reads 24:00:00 without them as a number: "24:00:00"')
        return value

    @field_validator("options")
    @classmethod
    def _not_ours(cls, options: tuple[str, ...]) -> tuple[str, ...]:
        for each in options:
            for name in _names(each):
                if not name.startswith("--"):
                    raise ValueError(f"{name!r} has to begin with --, as sbatch's long options do")
                # sbatch takes the beginning of a name for the name.
                if any(own.startswith(name) for own in _OWN) or name.startswith(("--ntasks", "--gpus", "--mem-")):
                    raise ValueError(f"{name} follows from the other keys: set those")
        return options


ASKED = {
    "name": "give the job a name, with --name",
    "nodes": "say on how many nodes it runs, with --nodes",
    "processes_per_node": "say how many processes a node runs, which is the number of its cards",
    "cpu": "say how many processors the job has on a node (scontrol show node shows CPUTot)",
    "time": 'give the limit of its time, such as --set time="24:00:00" (sinfo shows the partition\'s)',
    "folder": "name a folder that all nodes share, for the job's files",
}
"""What has no default, and how it is asked for."""

NOT_CARRIED = {
    "spares": "Slurm gives a job that goes back into the queue other nodes",
    "min_nodes": "an allocation has one number of nodes: give nodes",
    "head": "the first node of the allocation is the head",
    "head_address": "the first node of the allocation is the head",
    "user": "a job is its owner's, who calls sbatch",
    "trainer_version": "the trainer is what the environment venv has",
    "container": "call the engine in a script of your own, and name that as command",
    "config": "give the job file as the argument",
    "node_config": "all nodes read one job file: put the values into it",
    "dataset": "set data.source in the job file",
    "data_sets": "set data.directory in the job file; a set that a process has in its memory stays on the node",
    "interruption": "set the section interruption in the job file",
    "environment_files": "read them in setup, such as `set -a; . /etc/mine.env; set +a`",
    "cards": "give processes_per_node, of which each has a card, and device in the job file",
    "state": "sbatch and scancel start and end jobs",
    "timeout": "sbatch --wait waits for jobs",
    "start_at_boot": "Slurm puts the jobs of a node that was lost back into the queue",
    "resume_stopped": "sbatch starts a job that was cancelled, and it resumes",
}
"""Options of the systemd launcher that Slurm has no place for, and what to do."""

FILE = LauncherFile(
    launcher=LAUNCHER,
    command="gaudi3-train slurm",
    model=SlurmOptions,
    asked=ASKED,
    not_carried=NOT_CARRIED,
    example="partition=gaudi",
    examples={"time": '"24:00:00"', "folder": "/shared/jobs"},
)
