"""torchrun that knows an interruption: `python -m gaudi3_scale.launch`, with torchrun's own arguments.

torchrun takes every exit code but 0 for a failure: it restarts a worker that left because its node is being reclaimed,
and ends with 1 itself. Here 75 is what it says: try again later. Workers that leave with it are not restarted, and the
launcher ends with 75 too. It ends with 2 where workers refused the request with 2. It gives workers the time that
TORCH_ELASTIC_SHUTDOWN_TIMEOUT (or torchrun's own option) says with every torch from 2.9 on, and passes SIGUSR1 on with
every one. What else it does is torchrun's.

    python -m gaudi3_scale.launch --nnodes=2 --nproc-per-node=8 ... --no-python gaudi3-train fit --config job.yml
    python -m gaudi3_scale.launch --replace --nnodes=2:3 ...     a node that has to leave is done without, or replaced
    python -m gaudi3_scale.launch --status=status.json ...       a spare that was not needed says so there
    python -m gaudi3_scale.launch --status=status.json --say-ending ... train.py     and so does any node how it ended
    python -m gaudi3_scale.launch --secret-file=secret --nnodes=2 ...     only nodes that have this secret join the job
    python -m gaudi3_scale.launch --trace-parent=file ...     traces, if they are on, belong to what this file names

With `--replace` only the nodes that were told to leave do so; the others meet again, with a spare node or fewer than
before, and go on from the checkpoint that was just saved. A launcher that fails itself leaves in the same way. The
node that hosts the rendezvous is the exception: the store is there, and nothing goes on without it.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

from gaudi3_scale.errors import ConfigError, TrainerError
from gaudi3_scale.hangs.memory_folder import PREFIX, hold, remove_left_behind
from gaudi3_scale.hangs.watch import HangWatch, Meeting
from gaudi3_scale.hpu.torch_import import refuse_known_bad, without_plugins
from gaudi3_scale.internals import (
    ON_SIGNAL,
    OWN_STORE,
    have_agent,
    have_backend,
    have_wait,
    is_this_machine,
    watched_agent,
)
from gaudi3_scale.interruption.exit_code import EXIT_CODE
from gaudi3_scale.interruption.patience import DEFAULT, LEAVING_FILE, SHUTDOWN_TIMEOUT
from gaudi3_scale.launch import rendezvous_state
from gaudi3_scale.launch.attempts import Attempts
from gaudi3_scale.launch.outcome import JobOutcome, code_of, not_met, why
from gaudi3_scale.meeting_store import MeetingStore
from gaudi3_scale.membership import Membership
from gaudi3_scale.next_command import LAUNCHER, meeting
from gaudi3_scale.secret import SECRET_FILE, read_secret

SIGNALS = "SIGTERM,SIGINT,SIGHUP,SIGQUIT,SIGUSR1"
"""Passed on to the workers; SIGUSR1 besides torchrun's own, as schedulers send it ahead of time."""

RINGS = 16 * 1024 * 1024
"""Bytes that have to be free for the notes of a node's processes, which take 40 kB each."""
_LOOPBACK = re.compile(r"localhost\b|127\.|\[?::1\b")


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run torchrun's agent; end with 0, 75 (interrupted), 2 (the request is wrong), or 1."""
    try:
        refuse_known_bad()  # whatever the workers' script is
    except TrainerError as error:
        _give_up(error)
    with without_plugins():  # the launcher computes nothing; a plugin that is broken is for the workers to report
        from torch.distributed import DistError
        from torch.distributed import run as torchrun
    from torch.distributed.elastic.multiprocessing.api import SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.elastic.rendezvous import RendezvousError

    args, passes_signals = _parse(torchrun, list(sys.argv[1:] if arguments is None else arguments))
    if args.replace or args.nnodes != "1":
        os.environ[OWN_STORE] = "1"  # for nodes that come late; see there
    outcome = JobOutcome(args.status, args.say_ending)
    folder = tempfile.mkdtemp(prefix="gaudi3-launch-")
    rings = _ring_folder(folder)
    watch = HangWatch(rings, outcome.hang)
    attempts = Attempts.of_launcher(args.trace_parent, args.status, os.environ)
    try:
        membership = _membership(args, _most_nodes(torchrun, args), Path(folder))
        seconds = _seconds(getattr(args, "shutdown_timeout", None))
        # Only some versions can be told, and none when a worker failed or the nodes meet again: it is 30 s then.
        have_wait(seconds)
        os.environ[SHUTDOWN_TIMEOUT] = str(seconds)
        os.environ[LAUNCHER] = json.dumps(meeting(args))
        rendezvous_state.install()
        before_start = partial(_watch_for_hangs, watch, outcome, args.rdzv_endpoint)
        signals = () if passes_signals else (signal.SIGUSR1,)
        agents = _install(args.replace, signals, membership, before_start, attempts)
    except TrainerError as error:
        _remove(folder, rings)
        _give_up(error)
    try:
        os.environ[LEAVING_FILE] = str(Path(folder) / "leaving")
        code, reason = 0, None
        outcome.begin()
        # torchrun hears signals from its first processes on; a spare node has none, and would end without a word to
        # the others, who meet with it again and again until its heartbeat is missed.
        for name in SIGNALS.split(","):
            signal.signal(signal.Signals[name], ON_SIGNAL.get())
        try:
            torchrun.run(args)  # type: ignore[no-untyped-call]
        except ChildFailedError as failure:
            code = code_of({each.exitcode for each in failure.failures.values()})
            if code != EXIT_CODE:
                reason = why(failure)
                print(failure, file=sys.stderr)
        except SignalException as received:
            if args.replace and agents:
                agents[-1].leave_rendezvous()
            codes = agents[-1].exit_codes() if agents else set()
            code = EXIT_CODE if codes <= {EXIT_CODE} else 128 + int(received.sigval)
            reason = (
                f"{received.sigval.name} was sent to the launcher, and not all processes ended with {EXIT_CODE} "
                "(interrupted): give the Trainer an InterruptionCallback to save a checkpoint first"
            )
        except (RendezvousError, DistError) as failed:
            code, reason = 1, not_met(args.rdzv_endpoint, failed)
            print(f"gaudi3-launch: {reason}", file=sys.stderr)
        except TrainerError as failed:
            code, reason = failed.exit_code, str(failed)
            print(f"gaudi3-launch: {reason}", file=sys.stderr)
        except Exception as failed:  # of whatever it is, the status says it before the traceback
            watch.end(last=True)
            attempts.end(1)
            outcome.end(1, f"{type(failed).__name__}: {(str(failed).strip() or 'no message').splitlines()[0]}")
            raise
        watch.end(last=True)
        spare = code == 0 and bool(agents) and not agents[-1].worked
        attempts.end(code, spare)
        if spare:
            outcome.spare()
        else:
            outcome.end(code, reason)
        if code == EXIT_CODE:
            print("gaudi3-launch: interrupted; started again, the job goes on", file=sys.stderr)
    finally:
        _remove(folder, rings)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _ring_folder(folder: str) -> Path:
    """Where the processes note their collectives: in memory, where there is room, as a disk may hang."""
    memory = Path("/dev/shm")
    if os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > RINGS:
        remove_left_behind(memory)
        rings = Path(tempfile.mkdtemp(prefix=PREFIX, dir=memory))
        hold(rings)
        return rings
    rings = Path(folder) / "rings"
    rings.mkdir(mode=0o700)
    return rings


def _remove(*folders: str | Path) -> None:
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)


def _watch_for_hangs(watch: HangWatch, outcome: JobOutcome, endpoint: str, agent: Any) -> None:
    """The processes of this node are about to start."""
    store, node, nodes = agent.meeting_point
    meeting = None
    if nodes > 1 and isinstance(store, MeetingStore):
        meeting = Meeting(store, node, nodes, is_this_machine(endpoint.rpartition(":")[0]))
    watch.begin(meeting)
    outcome.pass_on_hang()


def _name_processes(processes: list[Any], ranks: list[Any]) -> None:
    """Say in the journal which process is which rank: it has the number of the process with each line, and no rank."""
    if "JOURNAL_STREAM" in os.environ and processes:
        numbers = " ".join(map(str, processes))
        print(f"gaudi3-launch: ranks {ranks[0]} to {ranks[-1]} are processes {numbers}", file=sys.stderr, flush=True)


def _give_up(error: TrainerError) -> NoReturn:
    print(f"gaudi3-launch: {error}", file=sys.stderr)
    sys.exit(error.exit_code)


def _parse(torchrun: Any, arguments: Sequence[str]) -> tuple[Any, bool]:
    """torchrun's arguments and ours, and whether it passes all of SIGNALS on by itself: torch 2.9 has no option for it.

    What follows the script is the script's, whatever its options are called.
    """
    parser = torchrun.get_args_parser()
    knows = "--signals-to-handle" in parser.format_help()
    own = parser.add_argument_group("gaudi3_scale")
    own.add_argument("--replace", action="store_true", help="go on without a node that has to leave")
    own.add_argument("--status", type=Path, help="status.json of this node")
    own.add_argument("--secret-file", type=Path, help="64 hexadecimal digits that all nodes of the job have")
    own.add_argument("--say-ending", action="store_true", help="write into it how the job ended")
    own.add_argument("--trace-parent", type=Path, help="file with the traceparent of what started the job")
    args = parser.parse_args([*(["--signals-to-handle", SIGNALS] if knows else []), *arguments])
    if args.say_ending and args.status is None:
        parser.error("--say-ending needs --status")
    return args, knows


def _seconds(option: int | None) -> int:
    """How long workers have between a signal and SIGKILL: torchrun's option where it has one, else the variable."""
    if option is not None:
        return option
    given = os.environ.get(SHUTDOWN_TIMEOUT, str(DEFAULT))
    if not given.isdecimal():
        raise ConfigError(f"{SHUTDOWN_TIMEOUT} is {given!r}: give a whole number of seconds, or unset it.")
    return int(given)


def _most_nodes(torchrun: Any, args: Any) -> int:
    """With how many nodes the job works at most; 0 where torchrun is going to refuse what was given."""
    try:
        return int(torchrun.parse_min_max_nnodes(args.nnodes)[1])
    except (ValueError, RuntimeError):
        return 0


def _membership(args: Any, nodes: int, folder: Path) -> Membership | None:
    """By which secret the nodes of the job know each other; None where they have none. ConfigError for a bad file.

    A node that is alone makes one up, so that nobody joins it.
    """
    os.environ.pop(SECRET_FILE, None)
    path = args.secret_file
    alone = nodes == 1 and (args.standalone or not args.rdzv_endpoint) and args.master_port is None
    if path is None and alone:
        path = folder / "secret"
        path.touch(0o600)
        path.write_text(os.urandom(32).hex() + "\n")
    if path is None:
        host = args.rdzv_endpoint or args.master_addr
        if not _LOOPBACK.match(host):
            print(
                f"gaudi3-launch: the job's nodes have no secret in common, so that whoever reaches {host} can join the "
                "job as a node: give each of them the same --secret-file, or let only the job's nodes reach that port",
                file=sys.stderr,
            )
        return None
    if not alone and args.rdzv_backend != "c10d":
        raise ConfigError(
            f"--secret-file was given with the rendezvous {args.rdzv_backend!r}, which asks nobody for it: add "
            "--rdzv-backend=c10d."
        )
    membership = Membership(read_secret(path))
    os.environ[SECRET_FILE] = str(path.absolute())
    return membership


def _install(
    replace: bool,
    unhandled: Sequence[signal.Signals],
    membership: Membership | None = None,
    before_start: Callable[[Any], None] = lambda agent: None,
    attempts: Attempts | None = None,
) -> list[Any]:
    """Have torchrun use an agent that knows 75, and these signals besides torchrun's own; the agents it makes."""
    from torch.distributed.elastic.agent.server.api import DEFAULT_ROLE, RunResult, WorkerState
    from torch.distributed.elastic.multiprocessing.api import SignalException
    from torch.distributed.elastic.rendezvous import RendezvousConnectionError

    made: list[Any] = []
    base: Any = watched_agent()
    traced = attempts or Attempts()

    class Agent(base):
        """Watches the workers of one node."""

        worked = False
        """Has this node had workers, or was it a spare that was not needed?"""

        def __init__(self, *positional: Any, **named: Any) -> None:
            super().__init__(*positional, **named)
            made.append(self)

        def run(self, role: str = DEFAULT_ROLE) -> RunResult:
            # When the others have ended, torchrun returns nothing from a spare and trips over it; or, if the head was
            # quicker, the spare finds the rendezvous gone.
            result: RunResult | None = None
            try:
                result = super().run(role)
            except RendezvousConnectionError:
                if self.worked or not self.was_spare():
                    raise
            finally:
                # torchrun would close the rendezvous, which ends the job of those who can do without this node.
                if replace and result is None:
                    self.leave_instead_of_closing()
            return result or RunResult(state=WorkerState.SUCCEEDED)

        def before_meeting(self) -> None:
            traced.meet()

        def before_start(self) -> None:
            self.worked = True
            traced.begin(lambda: self.meeting_point)
            before_start(self)
            for number in unhandled:
                signal.signal(number, ON_SIGNAL.get())
            Path(os.environ[LEAVING_FILE]).unlink(missing_ok=True)  # of workers that were stopped to start these

        def after_start(self, processes: list[Any], ranks: list[Any]) -> None:
            _name_processes(processes, ranks)

        def after_look(self, result: RunResult) -> RunResult:
            interrupted = result.state == WorkerState.FAILED and self.exit_codes() == {EXIT_CODE}
            if result.state in (WorkerState.FAILED, WorkerState.UNHEALTHY) and not interrupted:
                traced.fail()
            if not interrupted:
                return result
            if not replace:
                self.restarts_left = 0
            elif Path(os.environ[LEAVING_FILE]).exists():
                raise SignalException("this node was told to leave", signal.SIGTERM)
            else:
                self.restarts_left += 1  # a node that left is no failure of the others
            return result

    have_agent(Agent)
    if membership is not None:
        Agent.seal_of = staticmethod(membership.seal_of)
        have_backend(membership.join)
    return made
