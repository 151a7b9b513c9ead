"""The page of a job's folder, or of a folder of jobs: their own files alone, on any machine."""

from __future__ import annotations

import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gaudi3_doctor import job_status
from gaudi3_watch import job_sections, view
from gaudi3_watch.job_files import METRICS, JobFiles
from gaudi3_watch.node_reports import NodeReports, in_order
from gaudi3_watch.view import Asked, View, number

SECONDS_TO_READ = 0.25
"""Of a request, before it answers with what it has; the page asks again at once."""
PIECE = 2**20
MOST_JOBS = 1000
MOST_OPEN = 4
"""Jobs whose series are kept."""
RESCAN_SECONDS = 5.0
LIVE_SECONDS = 2.0
FLEET = ("job", "state", "step", "loss", "tokens/s", "goodput", "restarts", "spent", "device")


class FolderSource:
    """What the page of `gaudi3-watch run` shows."""

    def __init__(self, folder: Path, health: Path | None = None, clock: Callable[[], float] = time.time) -> None:
        self._folder, self._health, self._clock = folder, NodeReports(health), clock
        self._lock = threading.Lock()
        self._open: OrderedDict[str, JobFiles] = OrderedDict()
        self._found: dict[str, Path] = {}
        """The jobs by the names under which they are shown."""
        self._are_all = True
        self._closed = 0
        """Folders that this user may not read, such as those of another team's jobs."""
        self._scanned = -RESCAN_SECONDS

    def page(self, asked: Asked) -> View:
        """The whole page as plain data."""
        with self._lock:
            return self._page(asked)

    def _page(self, asked: Asked) -> View:
        now = self._clock()
        names = list(self._jobs())
        problems: list[View] = []
        if not self._are_all:
            problems.append(
                view.problem(f"There are more than {MOST_JOBS:,} jobs or folders here: not all are listed.")
            )
        if self._closed:
            folders = f"{self._closed} folder{'s' if self._closed > 1 else ''}"
            left_out = f"The user of this page may not read {folders} here, whose jobs are left out."
            problems.append(view.problem(left_out))
        said: list[View] = []
        if not names:
            job, files = "", JobFiles(self._folder)
            status: dict[str, Any] = {}
        else:
            job = asked.job if asked.job in names else self._newest(names)
            status, said = self._status(job)
            problems += said
            files = self._files(job)
        if asked.job and asked.job != job:
            problems.append(view.problem(f"There is no job {asked.job} here: {job or 'nothing'} is shown."))
        # To a thousandth as the points are: a point before the span has no part in the range of a chart's values.
        first, newest = (round(each, 3) for each in files.span or (now - 60, now))
        span = asked.span(first, newest)
        nodes = self._health.section(now, asked.node)
        marks = view.marks(files.marks, asked.width, *span)
        sections = [
            job_sections.training(status, files, asked, span),
            job_sections.time_spent(status, files, asked, span, marks),
            _no_cards(),
            nodes,
            job_sections.cost(status, files, asked, span),
            self._fleet(names),
        ]
        return {
            "title": job or view.text(self._folder.name),
            "source": f"Files in {view.text(self._folder)}",
            "state": job_sections.state(status, now, is_unread=bool(said)),
            "simulated": _simulated(status),
            "problems": problems + job_sections.problems(files),
            "jobs": names if len(names) > 1 else [],
            "job": job,
            "nodes": [view.text(each) for each in nodes.get("known", ())],
            "node": asked.node,
            "span": {"begin": span[0], "end": span[1], "first": first, "newest": newest},
            "marks": marks,
            "sections": sections,
            "usual": 0,
            "poll": 0.1 if files.share_read < 1 else LIVE_SECONDS,
        }

    def _jobs(self) -> dict[str, Path]:
        """Names of the jobs: one of an empty name would not be found again, so the folder's own is used."""
        if time.monotonic() - self._scanned < RESCAN_SECONDS:
            return self._found
        self._scanned, self._are_all = time.monotonic(), True
        if _is_job(self._folder):
            self._found = {view.text(self._folder.resolve().name) or "job": self._folder}
            return self._found
        inside = self._inside(self._folder)
        self._closed = sum(not os.access(folder, os.R_OK | os.X_OK) for folder in (self._folder, *inside))
        found: dict[str, Path] = {}
        for folder in inside:
            if _is_job(folder):
                found.setdefault(view.text(folder.name), folder)
            else:  # a job's folder holds those of its nodes, or a team's its jobs'
                jobs = [below for below in self._inside(folder) if _is_job(below)]
                found |= {view.text(f"{folder.name}/{below.name}"): below for below in jobs}
        self._are_all = self._are_all and len(found) <= MOST_JOBS
        self._found = {name: found[name] for name in sorted(found, key=in_order)[:MOST_JOBS]}
        return self._found

    def _inside(self, folder: Path) -> list[Path]:
        """The folders in one, as many as are looked at."""
        found = _folders(folder)
        self._are_all = self._are_all and len(found) <= MOST_JOBS
        return found[:MOST_JOBS]

    def _folder_of(self, job: str) -> Path:
        return self._found[job]

    def _newest(self, names: list[str]) -> str:
        """The job that was heard of last."""
        return max(names, key=lambda name: _changed(self._folder_of(name)))

    def _files(self, job: str) -> JobFiles:
        files = self._open.pop(job, None) or JobFiles(self._folder_of(job))
        self._open[job] = files
        while len(self._open) > MOST_OPEN:
            self._open.popitem(last=False)
        end = time.monotonic() + SECONDS_TO_READ
        while files.poll(PIECE) and files.share_read < 1 and time.monotonic() < end:
            pass
        return files

    def _status(self, job: str) -> tuple[dict[str, Any], list[View]]:
        try:
            return dict(job_status.read(self._folder_of(job) / job_status.FILE)), []
        except job_status.StatusError as error:
            return {}, [view.problem(str(error))]

    def _fleet(self, names: list[str]) -> View:
        if not names:
            why = view.empty(
                f"{self._folder} has no job.", "Give the output_dir of a job, or a folder of such folders."
            )
            return view.section("fleet", "Fleet", none=why)
        rows: list[list[view.Cell]] = []
        running = 0
        for name in names:
            status, said = self._status(name)
            if said:
                rows.append([name, view.cell("its status.json cannot be read", "warn"), *[""] * 7])
                continue
            state = job_sections.state(status, self._clock())
            running += state["name"] == "running"
            goodput, cost = status.get("goodput") or {}, status.get("cost") or {}
            step = f"{number(status.get('step'), 15)} of {number(status.get('max_steps'), 15)}"
            ratio, spent = goodput.get("ratio"), cost.get("spent")
            rows.append(
                [
                    name,
                    view.cell(state["name"], state["level"]),
                    step,
                    number(status.get("loss")),
                    number(status.get("tokens_per_second")),
                    f"{number(100 * ratio, 3)} %" if isinstance(ratio, int | float) else "",
                    view.text(goodput.get("restarts", ""), 10),
                    f"{number(spent, 6)} {view.text(cost.get('currency') or '', 12)}"
                    if isinstance(spent, int | float)
                    else "",
                    job_sections.device_words(status).removeprefix("on "),
                ]
            )
        tiles = [view.tile("Jobs", f"{len(names):,}"), view.tile("Running", f"{running:,}")]
        listed = view.table("jobs", "Jobs in this folder", FLEET, rows, range(2, 8))
        return view.section("fleet", "Fleet", tiles, (), [listed])


def _simulated(status: dict[str, Any]) -> str:
    """What has to be said about where the figures come from; nothing of real hardware."""
    if status.get("simulated"):
        return (
            "These figures come from the simulator. Losses are real. Speed, step times and all that follows from them "
            "are those of a processor, and say nothing about a Gaudi."
        )
    return ""


def _no_cards() -> View:
    why = view.empty(
        "A job's folder holds no readings of cards and ports.",
        "Run gaudi3-watch cluster with the address of the cluster's Prometheus to see them.",
    )
    return view.section("cards", "Cards and ports", none=why)


def _is_job(folder: Path) -> bool:
    return any(os.path.lexists(folder / name) for name in (job_status.FILE, METRICS))


def _folders(folder: Path) -> list[Path]:
    try:
        with os.scandir(folder) as entries:
            found = [
                each.name for each in entries if each.is_dir(follow_symlinks=False) and not each.name.startswith(".")
            ]
    except OSError:
        return []
    return [folder / name for name in sorted(found)]


def _changed(folder: Path) -> float:
    times = []
    for name in (job_status.FILE, METRICS):
        try:
            times.append((folder / name).lstat().st_mtime)
        except OSError:
            continue
    return max(times, default=0.0)
