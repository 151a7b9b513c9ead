# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""The systemd units of a training job: the one that runs it on a node, and the one that starts it after a boot."""

from __future__ import annotations

import os

from .._data.records import folder_of as users_of
from .._health.fence import FENCE_PATH, RUNTIME_FENCE_PATH
from .container import Container, Share, group_numbers, unit_lines, user_numbers
from .launch_command import NodeShare, launch_argv
from .rules import UNPRINTABLE, check_address, check_group, check_path
from .spec import INVOCATION, RUNTIME_ENVIRONMENT, JobSpec, control_folder, unit_name

HEADER = "# Written by gaudi3.scale.gaudi_train; the next start of the job overwrites what is changed here.\n"
#: What a job that is a child of its unit may not do.
SANDBOX = (
    "NoNewPrivileges=yes",
    "PrivateTmp=yes",
    "ProtectSystem=full",
    "ProtectHome=read-only",
    "RestrictSUIDSGID=yes",
    "LockPersonality=yes",
)
#: Exit code of a trainer which left because it was told to: EX_TEMPFAIL, try again later.
INTERRUPTED_EXIT = 75
#: Seconds of stop_timeout which the launcher keeps for itself.
LAUNCHER_SECONDS = 5


def _quote(text: str) -> str:
    """Quote a word for a unit file, where % names a specifier and $ (in commands) a variable."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("\t", "\\t")
    return f'"{escaped}"' if any(char in text for char in " \t\"'\\;#") or not text else escaped


def unit_text(spec: JobSpec, share: NodeShare) -> str:
    """The unit of a job on one node; ValueError for what would write another line into it.

    systemd runs it as root, so that a line which a parameter adds would be a command of root's.
    """
    check_path("The job's folder", share.directory)
    if share.address is not None:
        check_address("address", share.address)
    daemon = " docker.service" if spec.container and spec.container["engine"] == "docker" else ""
    lines = [
        "[Unit]",
        f"Description=Gaudi 3 training job {spec.name}",
        f"Wants=network-online.target{daemon}",
        f"After=network-online.target{daemon}",
        "StartLimitIntervalSec=0",
        # A node that is out of service starts no job, whoever asks.
        f"AssertPathExists=!{FENCE_PATH}",
        f"AssertPathExists=!{RUNTIME_FENCE_PATH}",
        "",
        "[Service]",
        _keep_invocation(share.directory),
        *_keep_data(spec),
        *_run_lines(spec, share),
        # A restart is torchrun's (max_restarts) or the operator's, who resumes from the last checkpoint.
        "Restart=no",
        # A trainer that left because it was told to; not to be restarted by whatever Restart= a site sets.
        f"SuccessExitStatus={INTERRUPTED_EXIT}",
        f"RestartPreventExitStatus={INTERRUPTED_EXIT}",
        "KillMode=mixed",
        f"TimeoutStopSec={spec.stop_timeout}",
        # Where a node's memory ends, the job goes before sshd and the exporters.
        "OOMScoreAdjust=500",
        # What the kernel kills then is one process, whose end the launcher sees: it restarts the processes of the job
        # (max_restarts) or ends with a failure. systemd's default would stop the whole unit beforehand.
        "OOMPolicy=continue",
        "LimitMEMLOCK=infinity",
        "LimitNOFILE=65536",
        "TasksMax=infinity",
        # The client of a container's engine is root's and makes mounts; what the job may not do is the engine's matter.
        *(SANDBOX if spec.container is None else ()),
        "StandardOutput=journal",
        "StandardError=journal",
        f"SyslogIdentifier=gaudi-train-{spec.name}",
    ]
    for line in lines:
        # Each field was checked; this holds for those which are added later, too.
        if UNPRINTABLE.search(line) or line.endswith("\\"):
            raise ValueError(
                f"The unit of job {spec.name} would have the line {line!r}: take out control characters and the "
                "backslash at its end."
            )
    return HEADER + "\n".join(lines) + "\n"


def _keep_invocation(directory: str) -> str:
    """The line that has root keep what systemd calls this run, whoever starts it, before a process of the job runs.

    systemd itself forgets it of a run that ended well. Nodes may share the folder, so the host's name (%H) is in the
    file's. Where it cannot be written, none is kept.
    """
    script = 'echo "$INVOCATION_ID" >"$1.part" && mv -f "$1.part" "$1" || rm -f "$1"'
    place = _quote(f"{control_folder(directory)}/{INVOCATION}.")
    # A quote ends a word.
    place = place[:-1] + '%H"' if place.endswith('"') else place + "%H"
    return "ExecStartPre=-+/bin/sh -c " + f"{_quote(script)} sh {place}".replace("$", "$$")


def _keep_data(spec: JobSpec) -> list[str]:
    """The lines that record the job as a user of its data before it runs, and take that back when it has ended."""
    lines = []
    for place in spec.data_sets:
        check_path("data_sets", place)
        record = _quote(os.path.join(users_of(*os.path.split(place.rstrip("/"))), unit_name(spec.name)))
        record = record.replace("$", "$$")
        lines.append(f"ExecStartPre=-+/usr/bin/install -D -m 644 /dev/null {record}")
        lines.append(f"ExecStopPost=-+/bin/rm -f {record}")
    return lines


def boot_unit_text(spec: JobSpec, directory: str, systemctl: str) -> str:
    """The unit that starts a job after a boot, unless it is over: finished, or a spare node's.

    What the job's user wrote is read as that user, and decides no more than whether to start.
    """
    check_path("The job's folder", directory)
    script = '! grep -Eqs "$$1" "$$2"'
    over = '"state": *"(finished|spare)"'
    condition = f"/bin/sh -c {_quote(script)} sh {_quote(over)} {_quote(directory + '/status.json')}"
    lines = [
        "[Unit]",
        f"Description=Go on with Gaudi 3 training job {spec.name} after a boot",
        "Wants=network-online.target",
        "After=network-online.target gaudi3-scale-ports.service",
        "",
        "[Service]",
        "Type=oneshot",
        "TimeoutStartSec=60",
        f"User={spec.user}",
        f"ExecCondition={condition}",
        f"ExecStart=+{_path(systemctl)} --no-block start {unit_name(spec.name)}",
        "",
        "[Install]",
        "WantedBy=multi-user.target",
    ]
    return HEADER + "\n".join(lines) + "\n"


def _environment(spec: JobSpec, share: NodeShare) -> dict[str, str]:
    """What the job finds in its environment, whatever it runs in."""
    environment = {
        "PYTHONUNBUFFERED": "1",
        "HABANA_LOGS": share.directory + "/habana_logs",
        # torchrun would kill its workers after 30 seconds, before their last checkpoint may be written.
        "TORCH_ELASTIC_SHUTDOWN_TIMEOUT": str(max(1, spec.stop_timeout - LAUNCHER_SECONDS)),
    }
    if spec.command:
        environment["GAUDI3_JOB_DIRECTORY"] = share.directory
    if share.interface is not None:
        check_address("interface", share.interface)
        # gloo publishes the address of the node's own name otherwise, and HCCL's control connection begins there, too.
        environment.update(GLOO_SOCKET_IFNAME=share.interface, HCCL_SOCKET_IFNAME=share.interface)
    if share.modules:
        environment["HABANA_VISIBLE_MODULES"] = ",".join(map(str, share.modules))
    for group in share.groups:
        check_group(group)
    if spec.threads is not None:
        environment["OMP_NUM_THREADS"] = str(spec.threads)
    return environment


def _run_lines(spec: JobSpec, share: NodeShare) -> list[str]:
    """What the unit runs, as whom and where."""
    if spec.container is not None:
        return _container_lines(spec, share)
    environment = {**_environment(spec, share), "XDG_CACHE_HOME": "/var/cache/gaudi3-scale"}
    # A file goes before Environment=, and what the user of the job sets goes before the files.
    own = [f"{key}={spec.environment[key]}" for key in sorted(spec.environment)]
    argv = [*(["/usr/bin/env", *own] if own else []), *launch_argv(spec, share)]
    return [
        "Type=exec",
        f"User={spec.user}",
        *([f"SupplementaryGroups={' '.join(share.groups)}"] if share.groups else []),
        "WorkingDirectory=" + _path(spec.chdir or share.directory),
        "CacheDirectory=gaudi3-scale",
        *("Environment={0}".format(_quote(key + "=" + environment[key])) for key in sorted(environment)),
        # The dash makes a file optional.
        *("EnvironmentFile=-" + _path(path) for path in (RUNTIME_ENVIRONMENT, *spec.environment_files)),
        "ExecStart=" + " ".join(_quote(word).replace("$", "$$") for word in argv),
    ]


def _container_lines(spec: JobSpec, share: NodeShare) -> list[str]:
    """The same in a container, which has the vendor's variables from its image."""
    container = container_of(spec)
    # The image knows neither the user nor its home, and may not be written to.
    environment = {**_environment(spec, share), "HOME": "/tmp", "USER": spec.user}
    shown = {key: value for key, value in environment.items() if key not in share.file_variables}
    seen = Share(
        name=unit_name(spec.name).rpartition(".")[0],
        directory=share.directory,
        control=control_folder(share.directory),
        environment=os.path.dirname(spec.venv),
        user=user_numbers(spec.user),
        groups=group_numbers(share.groups),
        workdir=spec.chdir or "",
        variables={**shown, **spec.environment},
        has_file=bool(share.file_variables),
        devices=share.devices,
        files=share.files,
    )
    return unit_lines(container, seen, launch_argv(spec, share), spec.stop_timeout)


def container_of(spec: JobSpec) -> Container:
    """What the job runs in, with the folders that its command is in."""
    given = dict(spec.container or {})
    own = [] if spec.script is None else [*([spec.chdir] if spec.chdir else []), os.path.dirname(spec.script)]
    return Container.of({**given, "folders": [*(given.get("folders") or []), *own]})


def _path(path: str) -> str:
    return path.replace("%", "%%")
