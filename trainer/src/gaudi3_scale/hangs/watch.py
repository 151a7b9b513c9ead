"""The launcher's part: reads the rings of its node when a process says that it waits for good, and says who is missing.

A thread looks at the rings five times a second. When a process announces its end, all rings of the node are read, the
stacks are asked for, and the process may end. Launchers of several nodes send each other what they read over the store
in which the nodes have met; who does not answer in time is silent. What lies in the job's folder afterwards is for
readers: nothing is decided by it.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gaudi3_scale.files import draft, opened_folder
from gaudi3_scale.hangs import ring, stacks
from gaudi3_scale.hangs.compare import Evidence
from gaudi3_scale.hangs.verdict import Verdict, verdict_of
from gaudi3_scale.hangs.view import NodeView, groups_of, parsed, plain, view_of

LOOK = 0.2
"""Seconds between two looks at the node's rings."""
ASK = 1.0
"""Seconds between two questions whether another node has a hang."""
SETTLE = 0.5
"""Seconds from the first process that ends to the look: others are about to say so, too."""
ANSWER = 5.0
"""Seconds that the other nodes' launchers have to say what they see."""
LINGER = 2.0
"""Seconds more in which the others may read what this node said."""
KEPT = 10
"""Hangs whose notes stay in a job's folder."""
SUBFOLDER = "hangs"
ASKED, NODE, HOST, READ = (f"gaudi3/hang/{name}" for name in ("asked", "node", "host", "read"))
MESSAGE = 4 * 1024 * 1024
"""Bytes of one node's message that are read."""


@dataclass(frozen=True)
class Meeting:
    """The nodes of one start of the job, and the store in which they meet."""

    store: Any
    """A `MeetingStore`."""
    node: int
    nodes: int
    head: bool
    """Whether this node may be the one that has the store."""


@dataclass
class Answers:
    """What the other nodes said, so far."""

    nodes: dict[int, NodeView] = field(default_factory=dict)
    hosts: dict[int, str] = field(default_factory=dict)
    heads: set[int] = field(default_factory=set)
    reached: bool = False
    """Did the store answer all that it was asked?"""


class HangWatch:
    """Watches the processes of one node."""

    def __init__(self, folder: Path, report: Callable[[Verdict, Path | None], None]) -> None:
        """`folder` is the launcher's own; `report` is called with the verdict, and the job's folder if known."""
        self._folder, self._report = folder, report
        self._attempt, self._last = 0, False
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def begin(self, meeting: Meeting | None = None) -> None:
        """The processes are about to start; without a `meeting` this node is alone."""
        self.end()
        self._attempt += 1
        folder = self._folder / str(self._attempt)
        folder.mkdir(mode=0o700)
        os.environ[ring.FOLDER] = str(folder)
        self._stop = threading.Event()
        self._thread = threading.Thread(
            target=self._run, args=(folder, self._stop, meeting), name="hang-watch", daemon=True
        )
        self._thread.start()

    def end(self, last: bool = False) -> None:
        """The processes have ended; what is being looked at is looked at to its end. `last` if none will follow."""
        thread, self._thread = self._thread, None
        if thread is not None:
            self._last = last
            self._stop.set()
            thread.join(SETTLE + stacks.WAIT + 2 * ANSWER + LINGER)

    def _run(self, folder: Path, stop: threading.Event, meeting: Meeting | None) -> None:
        try:
            answers = Answers()
            if meeting is not None:
                _quietly(lambda: _introduce(meeting))
            if self._waits(folder, stop, meeting, answers):
                self._examine(folder, meeting, answers)
            elif meeting is not None and any(map(_died, folder.glob("*.ring"))):
                self._tell(folder, meeting)
        except Exception as error:  # the job's own message stands, whatever happens here
            print(f"gaudi3-launch: a hang could not be explained ({type(error).__name__}: {error})", flush=True)

    def _waits(self, folder: Path, stop: threading.Event, meeting: Meeting | None, answers: Answers) -> bool:
        """Wait for a hang; False if there is none to the end."""
        asked = time.monotonic()
        while True:
            over = stop.wait(LOOK)
            if any(ring.ends(path) in (ring.HUNG, ring.TIMED_OUT, ring.LOST) for path in folder.glob("*.ring")):
                return True
            if over:
                return False
            if meeting is not None and time.monotonic() - asked >= ASK:
                asked = time.monotonic()
                if len(answers.hosts) < meeting.nodes:
                    _quietly(lambda: _learn_hosts(meeting, answers))
                if _quietly(lambda: meeting.store.peek(ASKED)):
                    return True

    def _examine(self, folder: Path, meeting: Meeting | None, answers: Answers) -> None:
        time.sleep(SETTLE)
        node, contents, stacks_of = look(folder, meeting)
        world_size = contents[0].world_size if contents else 0
        if meeting is not None and world_size:
            thread = threading.Thread(target=_exchange, args=(meeting, node, answers, world_size), daemon=True)
            thread.start()
            thread.join(ANSWER + LINGER)  # a store on a node that is stopped answers nothing for a minute
        verdict = verdict_of(*gathered(node, contents, meeting, answers)) if contents else None
        if verdict is not None:
            job = next((Path(content.folder) for content in contents if content.folder), None)
            self._report(verdict, job)
            if job is not None:
                # A file system that hangs holds up this thread alone.
                writer = threading.Thread(target=_leave_notes, args=(job, node, stacks_of, verdict), daemon=True)
                writer.start()
                writer.join(ANSWER)
        if meeting is not None:
            _quietly(lambda: _wait_for_readers(meeting, answers.nodes, LINGER))

    def _tell(self, folder: Path, meeting: Meeting) -> None:
        """Let the others know what the processes did that died here: they wait for them, and ask why."""
        node, _, _ = look(folder, meeting)
        told = threading.Thread(target=_quietly, args=(lambda: _share(meeting, node, self._last),), daemon=True)
        told.start()
        told.join(ANSWER + LINGER)


def _died(path: Path) -> bool:
    """Whether the process of this ring ended by an error or without a word."""
    content = ring.read(path)
    if content is None:
        return False
    return content.end == ring.FAILED or (content.end == ring.RUNNING and process_state(content.process) == "gone")


def look(folder: Path, meeting: Meeting | None = None) -> tuple[NodeView, list[ring.Content], dict[int, str]]:
    """The node's processes as they are now, and the stacks of those that give them; then they may end."""
    paths = sorted(folder.glob("*.ring"))
    contents = [content for path in paths if (content := ring.read(path)) is not None]
    states = {content.process: process_state(content.process) for content in contents}
    now = time.monotonic_ns()
    views = tuple(view_of(content, states[content.process], now) for content in contents)
    answering = {
        content.process: folder / f"{content.rank}.stacks"
        for content in contents
        if content.stacks and states[content.process] == "running"
    }
    found = stacks.ask(answering)
    for path in paths:
        with contextlib.suppress(OSError):
            ring.acknowledge(path)
    number = meeting.node if meeting is not None else 0
    ranks: tuple[int, ...] = ()
    if contents:
        local = contents[0].local_world_size
        ranks = tuple(range(number * local, (number + 1) * local))
    node = NodeView(number, socket.gethostname(), ranks, views, groups_of(contents))
    return node, contents, {content.rank: found[content.process] for content in contents if content.process in found}


def process_state(process: int) -> str:
    """One of `view.STATES`."""
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return "gone"
    return {"T": "stopped", "t": "stopped", "Z": "gone", "X": "gone"}.get(state, "running")


def gathered(
    node: NodeView, contents: Sequence[ring.Content], meeting: Meeting | None, answers: Answers
) -> tuple[Evidence, dict[int, str]]:
    """All that is known, and the node of each rank."""
    world_size, local = contents[0].world_size, contents[0].local_world_size
    nodes = {**answers.nodes, node.number: node}
    views = {view.rank: view for each in nodes.values() for view in each.views}
    groups = {key: group for each in nodes.values() for key, group in each.groups.items()}
    hosts = dict(answers.hosts) | {number: each.host for number, each in nodes.items()}
    by_rank = {rank: hosts.get(rank // local, f"node {rank // local} of the job") for rank in range(world_size)}
    count = meeting.nodes if meeting is not None else 1
    silent = tuple(number for number in range(count) if number not in nodes)
    if silent and not answers.reached:
        # Without the store nobody is heard; if it is known where it is, that node is the one that does not answer.
        heads = answers.heads - {node.number}
        suspects = tuple(range(next(iter(heads)) * local, (next(iter(heads)) + 1) * local)) if len(heads) == 1 else ()
        return Evidence(world_size, views, groups, silent, cut_off=True, head=suspects), by_rank
    return Evidence(world_size, views, groups, silent), by_rank


def _introduce(meeting: Meeting) -> None:
    about = {"host": socket.gethostname(), "head": meeting.head}
    meeting.store.set(f"{HOST}/{meeting.node}", json.dumps(about))


def _learn_hosts(meeting: Meeting, answers: Answers) -> None:
    for number in range(meeting.nodes):
        said = meeting.store.peek(f"{HOST}/{number}") if number not in answers.hosts else None
        about = json.loads(said[:1000]) if said else None
        if isinstance(about, dict) and isinstance(about.get("host"), str) and about["host"].isprintable():
            answers.hosts[number] = about["host"][:120]
            if about.get("head") is True:
                answers.heads.add(number)


def _exchange(meeting: Meeting, node: NodeView, answers: Answers, world_size: int) -> None:
    """Tell the other nodes what this one sees, and hear what they see."""

    def exchange() -> None:
        store = meeting.store
        store.set(f"{NODE}/{meeting.node}", json.dumps(plain(node)))
        store.set(ASKED, "1")
        _learn_hosts(meeting, answers)
        deadline = time.monotonic() + ANSWER
        missing = set(range(meeting.nodes)) - {meeting.node}
        while missing and time.monotonic() < deadline:
            for number in sorted(missing):
                said = store.peek(f"{NODE}/{number}")
                if said is not None:
                    missing.discard(number)
                    with contextlib.suppress(ValueError, RecursionError):
                        answers.nodes[number] = parsed(json.loads(said[:MESSAGE]), number, world_size)
            if missing:
                time.sleep(0.1)
        store.set(f"{READ}/{meeting.node}", "1")
        answers.reached = True

    _quietly(exchange)


def _share(meeting: Meeting, node: NodeView, last: bool) -> None:
    """Leave what is known of this node where the others look, and let them read it before the store may end."""
    meeting.store.set(f"{NODE}/{meeting.node}", json.dumps(plain(node)))
    if not (last and meeting.head):
        return
    deadline = time.monotonic() + LINGER
    while not meeting.store.peek(ASKED) and time.monotonic() < deadline:  # they have just begun to look
        time.sleep(0.1)
    if meeting.store.peek(ASKED):
        _wait_for_readers(meeting, [number for number in range(meeting.nodes) if number != meeting.node], ANSWER)


def _wait_for_readers(meeting: Meeting, nodes: Iterable[int], seconds: float) -> None:
    """The store may end with this launcher: let these nodes read what they asked for first."""
    deadline = time.monotonic() + seconds
    while meeting.head and time.monotonic() < deadline:
        if all(meeting.store.peek(f"{READ}/{number}") for number in nodes):
            return
        time.sleep(0.1)


def _leave_notes(job: Path, node: NodeView, stacks_of: dict[int, str], verdict: Verdict) -> None:
    """What was found, into the job's folder: the notes of each rank, the stacks, and the sentence."""
    name = f"{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}-node-{node.number}"
    files = {f"rank-{each['rank']}.json": json.dumps(each) for each in plain(node)["views"]}
    files["stacks.txt"] = stacks.grouped(stacks_of)
    files["verdict.json"] = json.dumps({**verdict.status(), "host": node.host, "groups": plain(node)["groups"]})
    with contextlib.suppress(OSError):
        with opened_folder(job, SUBFOLDER, name, make=True) as folder:
            for each, text in files.items():
                with draft(folder, each) as file:
                    file.write(text.encode())
        with opened_folder(job, SUBFOLDER) as folder:
            names = os.listdir(folder)  # noqa: PTH208  # of an open folder
            for old in sorted(each for each in names if each.endswith(f"-node-{node.number}"))[:-KEPT]:
                with opened_folder(job, SUBFOLDER, old) as inner:
                    for each in os.listdir(inner):  # noqa: PTH208
                        os.unlink(each, dir_fd=inner)
                os.rmdir(old, dir_fd=folder)


def _quietly(action: Callable[[], Any]) -> Any:
    """What the action gives; None if the store has no answer."""
    try:
        return action()
    except Exception:  # of a store that is gone: torch has no common class for it
        return None
