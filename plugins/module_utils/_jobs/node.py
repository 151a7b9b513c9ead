# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""A training job as one node has it: reading its files and its unit, and carrying out a decision."""

from __future__ import annotations

import contextlib
import fcntl
import grp
import json
import os
import pwd
import shutil
import time
from collections.abc import Callable, Iterator
from typing import Any, Optional

from .._data.index import INDEX
from .._files import make_folder, write_file
from .._host.systemd import UnitState, parse_show, show_argv
from .._printable import printable
from .container import ENVIRONMENT
from .decision import Situation, archive_name
from .files import PARTS, RECORD, Control, JobError, read_regular
from .log import EPILOGUE_LINES, last_words
from .rules import NAME
from .spec import CONFIG, CONTROL, JobSpec, boot_unit_name, unit_name
from .state import Observed, fresh, state_of
from .status import Status

#: Name of the lock among root's folders about jobs; no job's, as it begins with a dot.
LOCK = ".lock"

#: AnsibleModule.run_command: argv to exit status, output, errors.
Run = Callable[[list[str]], tuple[int, str, str]]

#: Options of a module that say where jobs are and with which tools they are looked at.
PLACES: dict[str, dict[str, Any]] = {
    "jobs_dir": {"type": "path", "default": "/var/lib/gaudi3-scale/jobs"},
    "unit_dir": {"type": "path", "default": "/etc/systemd/system"},
    "systemctl_executable": {"type": "path", "default": "systemctl"},
    "journalctl_executable": {"type": "path", "default": "journalctl"},
}


class JobNode:
    """The jobs of this node, below one folder."""

    def __init__(self, run: Run, jobs_dir: str, unit_dir: str, systemctl: str, journalctl: str) -> None:
        self.run = run
        self.systemctl = systemctl
        self._journalctl = journalctl
        self.jobs_dir = jobs_dir
        self.unit_dir = unit_dir

    @classmethod
    def of(cls, module: Any) -> JobNode:
        """The jobs of the node a module runs on, by the module's own options (:data:`PLACES`)."""
        return cls(
            lambda argv: module.run_command(argv, environ_update={"LC_ALL": "C", "LANGUAGE": "C"}),
            module.params["jobs_dir"],
            module.params["unit_dir"],
            module.get_bin_path(module.params["systemctl_executable"], required=True),
            module.get_bin_path(module.params["journalctl_executable"], required=True),
        )

    def directory(self, name: str) -> str:
        """The folder of a job."""
        return os.path.join(self.jobs_dir, name)

    def unit_path(self, name: str) -> str:
        """The file of a job's unit."""
        return os.path.join(self.unit_dir, unit_name(name))

    def boot_unit_path(self, name: str) -> str:
        """The file of the unit that starts a job again after a boot."""
        return os.path.join(self.unit_dir, boot_unit_name(name))

    def config_path(self, name: str) -> str:
        """The trainer's configuration of a job."""
        return os.path.join(self.control(name).path, CONFIG)

    def environment_path(self, name: str) -> str:
        """What a job in a container has from environment files."""
        return os.path.join(self.control(name).path, ENVIRONMENT)

    def control(self, name: str) -> Control:
        """Root's files about a job."""
        return Control(self.directory(name))

    @contextlib.contextmanager
    def alone(self, patience: float = 60.0) -> Iterator[None]:
        """Hold the lock that everyone takes who changes jobs of this node; JobError if another keeps it.

        Between a look at a job and what is done about it, nobody else may start or stop one.
        """
        make_folder(self.jobs_dir)
        handle = self.control(LOCK).lock()
        try:
            deadline = time.monotonic() + patience
            while True:
                try:
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if time.monotonic() >= deadline:
                        raise JobError(
                            f"Another run has been changing the jobs of this node for {patience:.0f} s: wait for it "
                            "(two controllers may be at work), then run again."
                        ) from None
                time.sleep(0.1)
            yield
        finally:
            os.close(handle)

    def names(self) -> list[str]:
        """All jobs with a folder or a unit here, in order; folders of earlier specifications do not count."""
        found: set[str] = set()
        if os.path.isdir(self.jobs_dir):
            found.update(name for name in os.listdir(self.jobs_dir) if NAME.fullmatch(name))
        if os.path.isdir(self.unit_dir):
            for name in os.listdir(self.unit_dir):
                if name.startswith("gaudi-train-") and name.endswith(".service"):
                    found.add(name[len("gaudi-train-") : -len(".service")])
        return sorted(name for name in found if NAME.fullmatch(name))

    def unit(self, name: str) -> UnitState:
        """What systemd says of a job's unit; no file of the job is read. JobError where it says nothing."""
        rc, out, err = self.run(show_argv(self.systemctl, unit_name(name)))
        if rc != 0:
            raise JobError(f"systemctl show {unit_name(name)} failed: {printable((err or out).strip())}")
        try:
            return parse_show(out)
        except ValueError as error:
            raise JobError(str(error)) from error

    def running(self) -> list[str]:
        """Names of the jobs of which a process may be alive; no file of a job is read."""
        return [name for name in self.names() if self.may_run(name)]

    def may_run(self, name: str) -> bool:
        """Whether a process of the job may be alive; so it is where systemd says nothing of its unit."""
        try:
            return self.unit(name).up
        except JobError:
            return True

    def observe(self, name: str) -> Observed:
        """Read everything about one job; nothing is changed."""
        unit = self.unit(name)
        folder, control = self.directory(name), self.control(name)
        record = control.record()
        status = Status.in_folder(folder)
        has_unit = os.path.exists(self.unit_path(name))
        state = state_of(unit, has_unit, record, status)
        situation = Situation(
            state=state,
            spec_sha256=record.get("spec_sha256"),
            config_sha256=record.get("config_sha256"),
            has_output=holds_something(folder),
            has_setup=has_unit or control.has(CONFIG),
            stopped_on_purpose=bool(record.get("stopped_at")),
        )
        if unit.up and not fresh(record, status, unit):
            # What an earlier run wrote says nothing about this one.
            status = None
        return Observed(name, state, unit, record, status, situation)

    def observe_at_rest(self, name: str, patience: float = 10.0) -> Observed:
        """Observe a job, giving one that is going down the time to be gone."""
        deadline = time.monotonic() + patience
        while True:
            found = self.observe(name)
            if found.unit.active_state != "deactivating" or time.monotonic() >= deadline:
                return found
            time.sleep(0.2)

    def log(self, name: str, lines: int, since: Optional[float] = None, run: str = "") -> list[str]:
        """The last lines of a job's journal, each as it may be shown; of its last start only where that is known.

        ``run`` is what systemd calls that start. ``since``, in seconds since 1970, counts where it is not known.
        """
        if lines < 1:
            return []
        # Newest first: with --since alone, --lines would count from the beginning.
        argv = [self._journalctl, "--reverse", f"--lines={lines + EPILOGUE_LINES}"]
        if not run:
            argv.append("--unit=" + unit_name(name))
            argv += [f"--since=@{int(since)}"] if since else []
        argv += ["--output=cat", "--no-pager", "--quiet"]
        # What the job's processes wrote, and what systemd itself says of them.
        argv += [f"_SYSTEMD_INVOCATION_ID={run}", "+", f"INVOCATION_ID={run}", "_PID=1"] if run else []
        rc, out, _err = self.run(argv)
        return [printable(line, 4096) for line in last_words(out.splitlines()[::-1], lines)] if rc == 0 else []

    def diff(self, name: str, texts: dict[str, str]) -> list[dict[str, str]]:
        """What happens to the job's files, for diff mode; a file without a new text is removed."""
        result = []
        before = {
            self.config_path(name): self.control(name).text(CONFIG),
            self.unit_path(name): read_regular(self.unit_path(name)) or "",
            self.boot_unit_path(name): read_regular(self.boot_unit_path(name)) or "",
        }
        for path, old in before.items():
            new = texts.get(path, "")
            if old != new:
                headers = {
                    "before_header": path if old else path + " (absent)",
                    "after_header": path if new else path + " (absent)",
                }
                result.append({**headers, "before": old, "after": new})
        return result

    def archive_path(self, name: str, spec_sha256: Optional[str]) -> str:
        """Where a job's folder is moved to."""
        taken = set(os.listdir(self.jobs_dir))
        if CONTROL in taken:
            taken.update(os.listdir(os.path.join(self.jobs_dir, CONTROL)))
        return os.path.join(self.jobs_dir, archive_name(name, spec_sha256, taken))

    def archive(self, name: str, spec_sha256: Optional[str]) -> str:
        """Move a job's folder aside, with all that an earlier specification produced; return where to."""
        target = self.archive_path(name, spec_sha256)
        os.rename(self.directory(name), target)
        self.control(name).move(target)
        return target

    def remove_archives(self, paths: list[str]) -> None:
        """Remove folders that were moved aside, with all that is in them."""
        for path in paths:
            self.control(os.path.basename(path)).purge()
            shutil.rmtree(path)

    def start(
        self, spec: JobSpec, texts: dict[str, str], owner: tuple[int, int], lines: int, share: dict[str, Any]
    ) -> None:
        """Write a job's files and start its unit; raise JobError with the log when it does not come up.

        ``share`` is kept in the job's record: what other jobs of this node have to know of this one.
        """
        control = self.control(spec.name)
        control.output.make(owner)
        now = time.time()
        record = {
            "schema": 1,
            "name": spec.name,
            "spec_sha256": spec.sha256,
            "config_sha256": spec.config_sha256,
            "started_at": now,
            "specification": spec.as_dict(),
            "share": share,
        }
        files = {RECORD: json.dumps(record, indent=2, sort_keys=True) + "\n"}
        for path, text in texts.items():
            if os.path.dirname(path) == self.unit_dir:
                write_file(path, text, 0o644, 0)
            else:
                files[os.path.basename(path)] = text
        control.write(files, owner[1])
        control.remove(*(name for name in PARTS if name not in files))
        boots = self.boot_unit_path(spec.name) in texts
        if not boots:
            self._forget_boot(spec.name)
        self._systemd("daemon-reload")
        if boots:
            self._systemd("enable", boot_unit_name(spec.name))
        rc, _out, err = self.run([self.systemctl, "start", unit_name(spec.name)])
        if rc != 0:
            raise JobError(
                f"Unit {unit_name(spec.name)} did not start: {printable(' '.join(err.split())) or 'no reason given'}",
                self.log(spec.name, lines, now),
            )

    def _forget_boot(self, name: str) -> None:
        """See to it that a boot does not start the job."""
        if os.path.exists(self.boot_unit_path(name)):
            self._systemd("disable", boot_unit_name(name))
            os.unlink(self.boot_unit_path(name))

    def stop(self, name: str) -> None:
        """Stop a job's unit and wait until it is down; remember that this was asked for."""
        try:
            self._forget_boot(name)
        finally:
            # Also where nothing can be written.
            self._systemd("stop", unit_name(name))
        # A trainer which was asked to stop may end with an exit status that systemd takes for a failure.
        self.run([self.systemctl, "reset-failed", unit_name(name)])
        self.control(name).note(stopped_at=time.time())

    def remove(self, found: Observed, purge: bool) -> None:
        """Remove a job's unit and configuration, and with ``purge`` all it ever wrote here.

        job.json stays with the output: it says what made it.
        """
        if found.unit.up:
            self.stop(found.name)
        self.control(found.name).remove(*PARTS)
        self._forget_boot(found.name)
        if os.path.exists(self.unit_path(found.name)):
            os.unlink(self.unit_path(found.name))
        self._systemd("daemon-reload")
        self.run([self.systemctl, "reset-failed", unit_name(found.name)])
        self.forget(found.name, purge)

    def forget(self, name: str, purge: bool) -> None:
        """Remove a job's configuration, and with ``purge`` all it ever wrote here."""
        control = self.control(name)
        control.remove(*PARTS)
        if purge:
            control.purge()
            if os.path.isdir(self.directory(name)):
                shutil.rmtree(self.directory(name))

    def _systemd(self, *arguments: str) -> None:
        rc, out, err = self.run([self.systemctl, *arguments])
        if rc != 0:
            raise JobError("systemctl {0} failed: {1}".format(" ".join(arguments), printable((err or out).strip())))


def holds_something(folder: str) -> bool:
    """Whether a folder is there and not empty; one that cannot be looked into counts as holding something."""
    try:
        with os.scandir(folder) as entries:
            return next(entries, None) is not None
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True


def owner_of(user: str) -> tuple[int, int]:
    """Numbers of a user and its group."""
    try:
        entry = pwd.getpwnam(user)
        return entry.pw_uid, grp.getgrgid(entry.pw_gid).gr_gid
    except KeyError as error:
        raise JobError(
            f"User {user} does not exist on this node: install the trainer with the role "
            "gaudi3.scale.trainer, or set 'user'."
        ) from error


def check_script(script: str) -> None:
    """Raise JobError when the user's script is not there."""
    if not os.path.isfile(script):
        raise JobError(f"{script} is not a file on this node: copy the script of 'command' to every node of the job.")


def check_data_set(folder: str) -> None:
    """Raise JobError when a set of training data is not there, or was not copied to its end."""
    if not os.path.isfile(os.path.join(folder, INDEX)):
        raise JobError(
            f"{folder} is no whole set of data on this node: bring it, as the playbook gaudi3.scale.data does."
        )


def check_venv(venv: str, contained: bool = False) -> None:
    """Raise JobError when the trainer is not installed; the Python of one for a container is in the image."""
    for path in (venv + "/bin/python", venv + "/bin/gaudi3-train"):
        if not (os.path.lexists(path) if contained else os.access(path, os.X_OK)):
            raise JobError(
                f"{path} is missing on this node: install the trainer with the role gaudi3.scale.trainer, "
                "or set 'venv'."
            )
