"""The batch script of a job, as a person would write it.

How Slurm ends a job decides its form, seen with Slurm 22.05: SIGTERM goes to the batch shell and to the tasks of srun,
and to no other program of the script, so that the launcher has to be such a task. A shell without a trap would end at
once and take srun with it. `--signal` without B: goes to the tasks alone.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from gaudi3_scale.errors import ConfigError
from gaudi3_scale.interruption.exit_code import EXIT_CODE
from gaudi3_scale.interruption.patience import SHUTDOWN_TIMEOUT
from gaudi3_scale.launcher_checks import LAUNCHER_SECONDS
from gaudi3_scale.own_script import DIRECTORY
from gaudi3_scale.slurm.slurm_job import SlurmJob

FIRST_LINE = "#!/bin/bash\n"
HEAD = FIRST_LINE + "# Written by gaudi3-train slurm, which overwrites it. Start the job: sbatch"
END = "END_OF_JOB_FILE"
"""Line after the job file in the script."""


def batch_script(job: SlurmJob) -> str:
    """The whole script; the same text for the same job."""
    parts = [
        f"{HEAD} {job.options.name}.sbatch",
        "\n".join(f"#SBATCH {each}" for each in directives(job)),
        "",
        *_files(job),
        "\n".join(_variables(job)),
        *([] if not job.options.setup else ["", *job.options.setup]),
        *_meeting(job),
        "",
        "# When the job is cancelled or out of time, Slurm sends SIGTERM to the tasks of srun and to this shell, which",
        "# waits for them and does not put the job back into the queue.",
        "trap 'exit 143' TERM",
        "code=0",
        # Also where a line of setup says `set -e`.
        f"{_start(job)} || code=$?",
        *_again(job),
        'exit "$code"',
    ]
    return "\n".join(parts) + "\n"


def directives(job: SlurmJob) -> Iterator[str]:
    """The options of sbatch."""
    options = job.options
    yield f"--job-name={options.name}"
    yield f"--nodes={options.nodes}"
    yield "--ntasks-per-node=1"
    yield f"--cpus-per-task={options.cpu}"
    if job.on_cards:
        yield f"--gres={options.gres}:{options.processes_per_node}"
    if options.memory is not None:
        yield f"--mem={options.memory}"
    yield f"--time={options.time}"
    yield f"--signal=USR1@{options.stop_timeout}"
    yield "--requeue" if options.requeue else "--no-requeue"
    yield "--open-mode=append"
    yield "--output=%x-%j.out"
    for name in ("partition", "account", "qos", "reservation", "constraint", "exclude"):
        if (value := getattr(options, name)) is not None:
            yield f"--{name}={value}"
    if options.exclusive:
        yield "--exclusive"
    yield from options.options


def _files(job: SlurmJob) -> Iterator[str]:
    """What the nodes read."""
    yield f"folder={job.folder}"
    yield 'mkdir -p "$folder" || exit 1'
    if job.text is not None:
        if f"\n{END}\n" in f"\n{job.text}":
            raise ConfigError(f"The job file has the line {END}, which ends it in the script: write it another way.")
        yield f"cat >\"$folder/job.yml\" <<'{END}' || exit 1\n{job.text}{END}"
    if job.options.nodes > 1:
        yield "# Only nodes that have it join the job."
        yield "(umask 077 && od -An -v -tx1 -w32 -N32 /dev/urandom | tr -d ' ' >\"$folder/secret\") || exit 1"
    yield ""


def _variables(job: SlurmJob) -> Iterator[str]:
    options = job.options
    own = {"PYTHONUNBUFFERED": "1", SHUTDOWN_TIMEOUT: str(options.stop_timeout - LAUNCHER_SECONDS)}
    if job.on_cards:
        own["HABANA_LOGS"] = f"{job.config.output_dir}/habana_logs"
    if options.command:
        own[DIRECTORY] = str(job.config.output_dir)
    if options.interface is not None:
        own |= {"GLOO_SOCKET_IFNAME": options.interface, "HCCL_SOCKET_IFNAME": options.interface}
    if options.threads is not None:
        own["OMP_NUM_THREADS"] = str(options.threads)
    for name, value in {**own, **options.environment}.items():
        yield f"export {name}={shlex.quote(value)}"


def _meeting(job: SlurmJob) -> Iterator[str]:
    """Where the nodes meet."""
    options = job.options
    if options.nodes == 1:
        return
    yield ""
    yield 'head=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)'
    yield f"port={options.rdzv_port if options.rdzv_port is not None else '$((20000 + SLURM_JOB_ID % 10000))'}"


def _start(job: SlurmJob) -> str:
    """The line that runs the launcher on each node; a node that fails leaves the others to notice it themselves."""
    options = job.options
    # Where sbatch was called with --export=NONE, as sites have it in SBATCH_EXPORT, srun would take that over.
    words = ["srun --kill-on-bad-exit=0 --wait=0 --export=ALL", f"--cpus-per-task={options.cpu}"]
    if options.chdir is not None:
        words.append(f"--chdir={options.chdir}")
    lines = [" ".join(words), f"{options.venv}/bin/python -m gaudi3_scale.launch"]
    counts = f"--nnodes={options.nodes} --nproc-per-node={options.processes_per_node}"
    if options.nodes == 1:
        lines.append(f"{counts} --standalone")
    else:
        lines.append(f'{counts} --rdzv-backend=c10d --rdzv-endpoint="$head:$port"')
        # Not by $folder, which a file that setup reads may have set.
        lines.append(f'--rdzv-id="$SLURM_JOB_ID-${{SLURM_RESTART_COUNT:-0}}" --secret-file={job.folder}/secret')
    lines.append(f"--max-restarts={options.max_restarts} --no-python")
    if options.command:
        python = [f"{options.venv}/bin/python"] if options.command[0].endswith(".py") else []
        lines.append(shlex.join([*python, *options.command]))
    else:
        lines.append(f"{options.venv}/bin/gaudi3-train fit --config {job.folder}/job.yml")
    return " \\\n  ".join(lines)


def _again(job: SlurmJob) -> Iterator[str]:
    if job.options.requeue:
        yield f"# {EXIT_CODE}: interrupted with a checkpoint, from which it goes on."
        yield f'if [ "$code" -eq {EXIT_CODE} ]; then scontrol requeue "$SLURM_JOB_ID"; fi'
