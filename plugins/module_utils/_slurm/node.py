# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Jobs of Slurm on a host that has its commands and the folder of jobs: observed, submitted, cancelled."""

from __future__ import annotations

import json
import os
import pwd
import stat
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Optional

from .._files import write_file
from .._jobs.decision import Situation
from .._jobs.files import PARTS, RECORD, SCRIPT, JobError, open_folder
from .._jobs.node import JobNode, holds_something, owner_of
from .._jobs.spec import RUNNING
from .._jobs.state import command_of
from .._jobs.status import Status
from .._printable import printable
from . import queue
from .described import SlurmSpec
from .queue import SlurmJob

#: Where commands are that PATH of a task may lack.
FOLDERS = ("/usr/bin", "/usr/local/bin", "/opt/slurm/bin")
#: All that a submitted job has of the environment of the task that submits it.
CLEAN = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
#: Seconds between two looks at a job that ends.
INTERVAL = 1.0
#: Seconds that Slurm gets for a job that has ended, besides the job's own.
EPILOG = 60
#: Bytes of the end of a job's output that are read.
TAIL = 1 << 18

#: argv and working folder to exit status, output, errors.
Run = Callable[[list[str], Optional[str]], tuple[int, str, str]]


@dataclass(frozen=True)
class SlurmObserved:
    """All that is known of one job of Slurm."""

    name: str
    state: str
    job: Optional[SlurmJob]
    record: Mapping[str, Any]
    status: Optional[Status]
    situation: Situation
    problem: str = ""
    """Why Slurm did not answer; empty where it did."""

    def as_dict(self, directory: str) -> dict[str, Any]:
        """The job as a module returns it."""
        number = queue.number_of(self.record)
        shown = self.job or (None if number is None else SlurmJob(number))
        return {
            "name": self.name,
            "state": self.state,
            "directory": directory,
            "command": command_of(self.record) or None,
            "spec_sha256": self.record.get("spec_sha256"),
            "exit_status": self.job.exit_status if self.job is not None else None,
            "ending": self.problem or (self.job.ending if self.job is not None else None),
            "slurm": None if shown is None else shown.as_dict(),
            "status": None if self.status is None else self.status.as_dict(),
        }


class SlurmNode:
    """The jobs of Slurm below one folder."""

    def __init__(self, run: Run, find: Callable[[str], Optional[str]], jobs_dir: str) -> None:
        """``find`` gives the path of a command, or None."""
        self._run, self._find = run, find
        self.jobs = JobNode(lambda argv: run(argv, None), jobs_dir, "", "", "")

    @classmethod
    def of(cls, module: Any) -> SlurmNode:
        """By the options of the module that runs."""
        return cls(
            lambda argv, folder: module.run_command(argv, cwd=folder, environ_update={"LC_ALL": "C", "LANGUAGE": "C"}),
            lambda name: module.get_bin_path(name, required=False, opt_dirs=list(FOLDERS)),
            module.params["jobs_dir"],
        )

    def command(self, name: str) -> str:
        """Where a command of Slurm is; JobError where it is not."""
        found = self._find(name)
        if found is None:
            raise JobError(
                f"{name} is not on this host: submit from one that has Slurm's commands, such as the controller, a "
                "login host or a node (Debian: apt-get install slurm-client)."
            )
        return found

    def script_path(self, name: str) -> str:
        """The script of a job."""
        return os.path.join(self.jobs.control(name).path, SCRIPT)

    def directory(self, name: str) -> str:
        """The folder of a job."""
        return self.jobs.directory(name)

    def observe(self, name: str, user: Optional[str] = None, *, tolerant: bool = False) -> SlurmObserved:
        """Read everything about one job; JobError where Slurm does not answer, unless ``tolerant``.

        ``user`` is whose jobs of this name count that are not on record.
        """
        record = self.jobs.control(name).record()
        status = Status.in_folder(self.directory(name))
        job, problem = None, ""
        try:
            job = self._asked(name, record, user)
        except JobError as error:
            if not tolerant:
                raise
            problem = str(error)
        has_script = self.jobs.control(name).has(SCRIPT)
        state = queue.UNKNOWN if problem else queue.state_of(job, record, status, has_script)
        live = job is not None and job.live
        situation = Situation(
            state=RUNNING if live else state,
            spec_sha256=record.get("spec_sha256"),
            config_sha256=record.get("config_sha256"),
            has_output=holds_something(self.directory(name)),
            has_setup=has_script,
            stopped_on_purpose=bool(record.get("stopped_at")),
        )
        if live and not queue.written_since(record, status):
            # What an earlier run wrote says nothing about this one.
            status = None
        return SlurmObserved(name, state, job, record, status, situation, problem)

    def _asked(self, name: str, record: Mapping[str, Any], user: Optional[str]) -> Optional[SlurmJob]:
        """The job that the record is of; JobError where another has its name: both would write in one folder."""
        owner = str((record.get("slurm") or {}).get("user") or user or "")
        if not owner:
            return None
        squeue = self.command("squeue")
        rc, out, err = self._run(queue.live_argv(squeue, user or owner, name), None)
        if rc != 0:
            raise JobError(f"Slurm does not answer: {_one_line(err or out)}.")
        live = queue.live_jobs(out)
        own = queue.own_job(record, live, self.script_path(name))
        if own is not None:
            return own
        if live and user is not None:
            raise JobError(
                f"Slurm has job {live[0].number} of the name {name} and user {user}, which was not submitted here: "
                "cancel it with scancel, or choose another name."
            )
        number = queue.number_of(record)
        return None if number is None else self._ended(number, name)

    def _ended(self, number: int, name: str) -> Optional[SlurmJob]:
        """A job that runs no more: as Slurm remembers it for some minutes, else as the accounting has it."""
        rc, out, _err = self._run(queue.shown_argv(self.command("scontrol"), number), None)
        found = queue.shown_job(out, number, name) if rc == 0 else None
        sacct = self._find("sacct")
        if found is not None or sacct is None:
            return found
        rc, out, _err = self._run(queue.kept_argv(sacct, number), None)
        return queue.kept_job(out, number, name) if rc == 0 else None

    def text(self, spec: SlurmSpec) -> str:
        """The script of a job, as ``gaudi3-train slurm`` writes it; JobError with its sentences where it refuses."""
        _uid, group = owner_of(spec.job.user)
        files = {"cluster.yml": spec.cluster_text, **({"job.yml": spec.job_text} if spec.job_text else {})}
        with tempfile.TemporaryDirectory(prefix="gaudi3-slurm-") as folder:
            os.chown(folder, -1, group)
            os.chmod(folder, 0o750)
            for name, text in files.items():
                path = os.path.join(folder, name)
                write_file(path, text, 0o640, group)
            words = [f"{spec.job.venv}/bin/gaudi3-train", "slurm", *(["job.yml"] if spec.job_text else [])]
            rc, out, err = self._run(self._as_user(spec.job.user, [*words, "--cluster", "cluster.yml"]), folder)
        if rc != 0:
            said = [line.partition("gaudi3-train: ")[2] or line for line in err.strip().splitlines()]
            raise JobError(" ".join(printable(line, 500) for line in said[-20:]) or "gaudi3-train slurm failed.")
        return out

    def submit(self, spec: SlurmSpec, script: str) -> None:
        """Write the job's files and give its script to sbatch; JobError where Slurm refuses it.

        The record is there before the job: a run that is ended in between finds its job by the script.
        """
        sbatch = self.command("sbatch")
        control, user = self.jobs.control(spec.job.name), spec.job.user
        owner = owner_of(user)
        control.output.make(owner)
        record = {
            "schema": 1,
            "name": spec.job.name,
            "spec_sha256": spec.sha256,
            "config_sha256": spec.config_sha256,
            "started_at": time.time(),
            "specification": spec.as_dict(),
            "slurm": {"user": user},
        }
        control.write({RECORD: _json(record), SCRIPT: script}, owner[1])
        control.remove(*(name for name in PARTS if name != SCRIPT))
        argv = self._as_user(user, [sbatch, "--parsable", self.script_path(spec.job.name)])
        rc, out, err = self._run(argv, self.directory(spec.job.name))
        number = queue.submitted(out) if rc == 0 else None
        if number is None:
            raise JobError(f"sbatch did not take job {spec.job.name}: {_one_line(err or out) or 'no reason given'}.")
        self.note_number(spec.job.name, number, user)

    def note_number(self, name: str, number: int, user: str) -> None:
        """Keep which job of Slurm it is."""
        self.jobs.control(name).note(slurm={"job": number, "user": user})

    def cancel(self, found: SlurmObserved, patience: float) -> None:
        """Cancel a job, wait until it is over and remember that this was asked for; JobError where it is not."""
        user = str((found.record.get("slurm") or {}).get("user") or "")
        if found.job is None:
            return
        argv = self._as_user(user, [self.command("scancel"), str(found.job.number)])
        rc, out, err = self._run(argv, None)
        if rc != 0:
            raise JobError(f"scancel {found.job.number} failed: {_one_line(err or out)}.")
        deadline = time.monotonic() + patience
        while (now := self.observe(found.name)).job is not None and now.job.live:
            if time.monotonic() >= deadline:
                raise JobError(
                    f"Job {found.job.number} of Slurm was cancelled and is {now.job.state} after {patience:.0f} s: "
                    "look at its nodes, and run again."
                )
            time.sleep(INTERVAL)
        self.jobs.control(found.name).note(stopped_at=time.time())

    def log(self, name: str, lines: int, number: Optional[int]) -> list[str]:
        """The last lines of a job's output, each as it may be shown."""
        if lines < 1 or number is None:
            return []
        try:
            text = _tail(self.directory(name), f"{name}-{number}.out")
        except (OSError, JobError):
            return []
        return [printable(line, 4096) for line in text.splitlines()[-lines:]]

    def _as_user(self, user: str, argv: list[str]) -> list[str]:
        """The command by the job's user, with an environment that has nothing of the task's."""
        try:
            entry = pwd.getpwnam(user)
        except KeyError:
            raise JobError(f"User {user}, whose job it is, does not exist on this host: add the user again.") from None
        words = ["env", "-i", CLEAN, f"HOME={entry.pw_dir}", f"USER={user}", f"LOGNAME={user}", "LC_ALL=C.UTF-8", *argv]
        if entry.pw_uid == os.geteuid():
            return words
        if os.geteuid() != 0:
            raise JobError(
                f"The job is of user {user}, and the task runs as another one: use become, or set 'user' to the one "
                "who runs it."
            )
        return ["setpriv", f"--reuid={entry.pw_uid}", f"--regid={entry.pw_gid}", "--init-groups", *words]


def _json(value: Mapping[str, Any]) -> str:
    return json.dumps(value, indent=2, sort_keys=True) + "\n"


def _one_line(said: str) -> str:
    return printable(" ".join(said.split()), 500).rstrip(".")


def _tail(directory: str, name: str) -> str:
    """The end of a regular file in a folder of the job's user, who may have put anything there."""
    folder = open_folder(directory)
    try:
        handle = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    finally:
        os.close(folder)
    with os.fdopen(handle, "rb") as stream:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode) or found.st_nlink > 1:
            return ""
        stream.seek(max(0, found.st_size - TAIL))
        return stream.read(TAIL).decode("utf-8", "replace")
