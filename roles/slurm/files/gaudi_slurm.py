# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""What Slurm calls on a Gaudi node, each bounded in time: prolog, task prolog, epilog, health check, and gres.conf.

None of them ever ends with a failure: Slurm would drain the node for it, and hold the job.

    gaudi_slurm.py gres              before slurmd starts: gres.conf in the order of the module ids
    gaudi_slurm.py prolog            as root, before a job: a fenced node and unsupported cards send the job away
    gaudi_slurm.py task-prolog       as the job's user: prints the variables of its processes
    gaudi_slurm.py epilog            as root, after a job: ends what still holds its cards
    gaudi_slurm.py health            as root, now and then: drains the node, or gives it back
    gaudi_slurm.py examine           prints the report of an examination at depth quick as JSON, for health
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from engine._cards.accel import users
from engine._files import make_folder, write_file
from engine._health import fence
from engine._health.collect import Sources
from engine._health.examine import Patience, examine
from engine._hl_smi.command import HlSmi, Runner
from engine._slurm import cards, conf, draining

ENVIRONMENT_FILES = ("/etc/gaudi3-scale/runtime.env", "/etc/gaudi3-scale/fabric.env")
FOLDERS = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin", "/opt/slurm/bin")
"""Where programs are: slurmd calls these with no PATH at all, and a site's own Slurm may be in any of them."""
ANSWER = 10
"""Seconds for one call of Slurm's commands."""
AGAIN = 8
"""Seconds in which a controller that does not answer is asked again; the prolog has 45 in all."""
UNANSWERED = re.compile("contact slurm controller|timed out|Zero Bytes|[Cc]ommunication|standby")
"""What Slurm's commands say of a controller that does not answer (texts of 22.05.8, 24.11.5 and 26.05.5)."""
PATIENCE = 40
"""Seconds for one examination, less than slurmd gives the health check."""
EMPTY = 15
"""Seconds in which cards have to be free after a job."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one of them; what fails in it is logged, and only `gres` may end with 1, as slurmd needs its file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["gres", "prolog", "task-prolog", "epilog", "health", "examine"])
    parser.add_argument("--sysfs", default="/sys")
    parser.add_argument("--gres-conf", default="/etc/slurm/gres.conf")
    parser.add_argument("--fence", default=fence.FOLDER)
    parser.add_argument("--cards", type=int, default=8, help="how many cards the node has")
    parser.add_argument(
        "--examine", default="", help="command that prints a report as JSON; `examine` is this program's own"
    )
    parser.add_argument("--hl-smi", default="/usr/bin/hl-smi")
    parser.add_argument("--patience", type=float, default=PATIENCE)
    parser.add_argument("--allow-partial", action="store_true", help="take sets of cards that are not supported")
    asked = parser.parse_args(arguments)
    given = filter(None, os.environ.get("PATH", "").split(os.pathsep))
    os.environ["PATH"] = os.pathsep.join(dict.fromkeys([*given, *FOLDERS]))
    actions: dict[str, Callable[[argparse.Namespace], int]] = {
        "gres": write_gres, "prolog": prolog, "task-prolog": task_prolog, "epilog": epilog, "health": health,
        "examine": print_report,
    }  # fmt: skip
    try:
        return actions[asked.what](asked)
    except Exception as error:  # of whatever it is: a job must not wait for it, and a node not be drained
        log(f"{asked.what} failed: {type(error).__name__}: {error}")
        return 1 if asked.what == "gres" else 0


def write_gres(asked: argparse.Namespace) -> int:
    """One line for each card; with fewer than there should be, slurmd would drain the node for good, so it waits."""
    deadline = time.monotonic() + ANSWER
    while len(modules := cards.modules_of_node(asked.sysfs)) < asked.cards and time.monotonic() < deadline:
        time.sleep(0.5)
    if len(modules) < asked.cards:
        log(f"{len(modules)} of {asked.cards} cards have a module id: slurmd starts once all are there")
        return 1
    write_file(asked.gres_conf, conf.gres_conf(modules))
    return 0


def prolog(asked: argparse.Namespace) -> int:
    """Send a job away that cannot run here: back into the queue, or off where no other cards would do."""
    job, node = os.environ.get("SLURM_JOB_ID", ""), os.environ.get("SLURMD_NODENAME", "")
    found = fence.read(asked.fence)
    if found is not None:
        drain(node, draining.step(draining.NodeState(), found, None, 0, 1).reason)
        send_away(job, fence.refusal(found), again=True)
        return 0
    granted = granted_cards(asked)
    if asked.allow_partial or granted.is_supported:
        return 0
    named = ", ".join(map(str, granted.modules))
    if granted.can_be_supported:
        send_away(job, f"modules {named} are no set that the vendor supports; it waits for another", again=True)
    else:
        send_away(job, f"{len(granted.modules)} cards are not supported together: ask for 1, 2, 4 or 8", again=False)
    return 0


def task_prolog(asked: argparse.Namespace) -> int:
    """Print what Slurm adds to the environment of the job's processes."""
    texts = []
    for path in ENVIRONMENT_FILES:
        with contextlib.suppress(OSError, UnicodeDecodeError):
            texts.append(Path(path).read_text(encoding="utf-8"))
    print("\n".join(cards.exports(granted_cards(asked), texts)), flush=True)
    return 0


def epilog(asked: argparse.Namespace) -> int:
    """End what still holds the job's cards: nobody else may, and the next job could not have them."""
    granted = {f"accel{index}" for index in granted_cards(asked).indices}
    deadline = time.monotonic() + EMPTY
    while granted and (left := [each for each in users() if each.held & granted]):
        for user in left:
            log(f"ending {user}, which still holds a card of job {os.environ.get('SLURM_JOB_ID', '')}")
            with contextlib.suppress(ProcessLookupError):
                os.kill(user.pid, signal.SIGKILL)
        if time.monotonic() >= deadline:
            drain(os.environ.get("SLURMD_NODENAME", ""), f"{draining.OURS}{left[0]} holds a card and cannot be ended")
            break
        time.sleep(0.5)
    return 0


def health(asked: argparse.Namespace) -> int:
    """Drain the node or give it back. Slurm starts the next check while one still runs: that one is left alone."""
    node = os.environ.get("SLURMD_NODENAME") or os.uname().nodename.partition(".")[0]
    make_folder(fence.RUNTIME)
    with os.fdopen(os.open(f"{fence.RUNTIME}/slurm-health.lock", os.O_RDWR | os.O_CREAT, 0o600), "r+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return 0
        found = fence.read(asked.fence)
        why = draining.reason_of(found_by(asked)) if found is None and asked.examine else "" if not found else None
        state = draining.NodeState.of(slurm("scontrol", "show", "node", node))
        if not state.states:
            return 0
        reasons = slurm("sinfo", "-h", "-N", "-o", "%N %E").splitlines()
        ours = {line.split(" ")[0] for line in reasons if f" {draining.OURS}" in line}
        all_nodes = {line.split(" ")[0] for line in reasons}
        step = draining.step(state, found, why, len(ours - {node}), len(all_nodes))
        if step.action == draining.DRAIN:
            drain(node, step.reason)
        elif step.action == draining.RESUME:
            slurm("scontrol", "update", f"NodeName={node}", "State=RESUME")
        elif step.reason:
            log(step.reason)
    return 0


def print_report(asked: argparse.Namespace) -> int:
    """Examine the node, in a process of its own that can be ended."""
    runner = Patience(Runner(ANSWER))
    tool = HlSmi(asked.hl_smi, runner) if Path(asked.hl_smi).exists() else None
    sources = Sources(runner, tool, os.uname().release, table=(asked.hl_smi,))
    done = examine(sources, time.monotonic, time.sleep, expected_cards=asked.cards)
    print(json.dumps(done.report.as_dict()), flush=True)
    return 0


def found_by(asked: argparse.Namespace) -> Any:
    """The report of an examination; None of one that hangs, fails or prints something else."""
    own = [sys.executable, "-s", __file__, "examine", f"--cards={asked.cards}", f"--hl-smi={asked.hl_smi}"]
    try:
        done = run(own if asked.examine == "examine" else asked.examine.split(), asked.patience)
        return json.loads(done) if done is not None else None
    except (ValueError, RecursionError):
        return None


def granted_cards(asked: argparse.Namespace) -> cards.Allocation:
    """The cards of the job or step that this was called for."""
    files = cards.files_of(Path(asked.gres_conf).read_text(encoding="utf-8"))
    return cards.allocation(cards.places(os.environ), files, cards.modules_of_node(asked.sysfs))


def send_away(job: str, why: str, again: bool) -> None:
    """Put a job back into the queue, or end it, and say why where `scontrol show job` shows it."""
    log(f"job {job}: {why}")
    slurm("scontrol", "update", f"JobId={job}", f"Comment={draining.OURS}{why}"[:300])
    if not again or not requeue(job):
        slurm("scancel", job)


def requeue(job: str) -> bool:
    """Whether Slurm takes a job back: not one of srun's own, which cannot wait.

    A controller that does not answer, as it starts again, is asked again; what it never answered ends no job.
    """
    deadline = time.monotonic() + AGAIN
    while True:
        said: list[str] = []
        if run(["scontrol", "requeue", job], ANSWER, said) is not None:
            return True
        if said and not UNANSWERED.search(said[0]):
            return False
        if time.monotonic() >= deadline:
            log(f"job {job} was not put back into the queue: Slurm does not answer")
            return True
        time.sleep(2)


def drain(node: str, reason: str) -> None:
    """Take no more jobs."""
    slurm("scontrol", "update", f"NodeName={node}", "State=DRAIN", f"Reason={reason}")


def slurm(*command: str) -> str:
    """What one of Slurm's commands prints; nothing where it fails or gives no answer."""
    return run(command, ANSWER) or ""


def run(command: Sequence[str], seconds: float, said: list[str] | None = None) -> str | None:
    """Up to a megabyte of what a command prints; None where it fails, or takes longer, and all of it is then ended.

    ``said`` gets what one that fails by itself says of it.
    """
    errors = subprocess.DEVNULL if said is None else subprocess.PIPE
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, start_new_session=True
    ) as process:
        try:
            output, why = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            log(f"{command[0]} gave no answer in {seconds:g} s")
            return None
    if process.returncode and said is not None:
        said.append((why or b"")[:4096].decode("utf-8", "replace"))
    return output[: 1 << 20].decode("utf-8", "replace") if process.returncode == 0 else None


def log(text: str) -> None:
    """Into the journal by way of slurmd's log, or the job's output of a task prolog."""
    print(f"gaudi-slurm: {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
