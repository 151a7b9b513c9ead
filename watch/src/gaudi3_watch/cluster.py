"""The page of a cluster: what its Prometheus has of training, cards, nodes, money and alerts."""

from __future__ import annotations

import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any, TypeVar

from gaudi3_watch import cluster_sections, queries, view
from gaudi3_watch.cluster_sections import Readings
from gaudi3_watch.node_reports import NodeReports, in_order
from gaudi3_watch.prometheus import Prometheus, PrometheusError, Trace, quoted
from gaudi3_watch.view import Asked, View

SECONDS = 8.0
"""For which all its answers are waited for; the listener gives a request two more."""
AT_ONCE = 8
"""Queries that a Prometheus is asked at a time."""
KEPT_SECONDS = 5.0
"""For which an answer serves further browsers."""
MOST_KEPT = 32
USUAL_SPAN = 6 * 3600.0
LONGEST_SPAN = 400 * 86400.0
LEAST_SPAN = 300.0
"""Of a Prometheus that has just begun."""
MINUTE = 60.0
SHORTEST_STEP = 15.0
SIMULATED = (
    "This cluster is simulated, or a job on it runs on the simulated device. Losses are real; speed, temperatures, "
    "power and everything that follows from them say nothing about a Gaudi."
)
T = TypeVar("T")
TITLES = {
    "training": "Training",
    "goodput": "Where the time goes",
    "cards": "Cards and ports",
    "nodes": "Nodes",
    "cost": "Cost",
    "fleet": "Fleet",
}


class ClusterSource:
    """What the page of `gaudi3-watch cluster` shows."""

    def __init__(
        self,
        prometheus: Prometheus,
        health: Path | None = None,
        simulated: bool = False,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._prometheus, self._health, self._simulated, self._clock = prometheus, NodeReports(health), simulated, clock
        self._lock = threading.Lock()
        self._kept: OrderedDict[Asked, tuple[float, Future[View]]] = OrderedDict()
        self._pool = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="gaudi3-watch-query")
        self._begins: float | None = None
        """When the figures of Prometheus begin, as far as the usual span goes back; None as long as it has none."""

    def page(self, asked: Asked) -> View:
        """The whole page as plain data; the same to all who ask the same within some seconds."""
        with self._lock:
            known = self._kept.get(asked)
            is_first = known is None or time.monotonic() - known[0] > KEPT_SECONDS
            if known is None or is_first:
                known = self._kept[asked] = (time.monotonic(), Future())
                self._kept.move_to_end(asked)
            while len(self._kept) > MOST_KEPT:
                self._kept.popitem(last=False)
        if is_first:  # and whoever asks the same meanwhile waits for it, but nobody else does
            try:
                known[1].set_result(self._page(asked))
            except BaseException as error:
                known[1].set_exception(error)
        return known[1].result()

    def _page(self, asked: Asked) -> View:
        now = self._clock()
        problem, first = "", now - USUAL_SPAN
        try:
            first = self._first(asked, now)
        except PrometheusError as error:
            problem = str(error)
        begin, end = asked.span(first, now)
        begin = max(begin, end - LONGEST_SPAN)
        shown = {
            "title": "Cluster",
            "source": f"Prometheus at {view.text(self._prometheus.url)}",
            "jobs": [],
            "job": "",
            "node": asked.node,
            "span": {"begin": begin, "end": end, "first": first, "newest": now},
            "poll": KEPT_SECONDS,
            "usual": now - first,
        }
        if problem:
            return {**shown, **self._unread(problem, now, asked)}
        try:
            found = self._read(asked, begin, end)
        except PrometheusError as error:
            return {**shown, **self._unread(str(error), now, asked)}
        marks = view.marks(found.marks, asked.width, begin, end)
        simulated = self._simulated or found.is_simulated
        nodes = sorted({each.labels.get("instance", "") for each in found.now["targets"]} - {""}, key=in_order)
        problems = [view.problem(each) for each in found.problems]
        if nodes and asked.node and asked.node not in nodes:
            problems.append(view.problem(f"Prometheus knows no node {asked.node}: choose one of the list."))
        verdicts = self._health.section(now, asked.node) if self._health.folder else None
        return {
            **shown,
            "state": cluster_sections.state(found),
            "simulated": SIMULATED if simulated else "",
            "problems": problems,
            "nodes": [view.text(each) for each in nodes],
            "marks": marks,
            "sections": [
                cluster_sections.training(found, simulated),
                cluster_sections.time_spent(found, marks),
                cluster_sections.cards(found, asked.node),
                cluster_sections.nodes(found, now, verdicts),
                cluster_sections.cost(found, simulated),
                cluster_sections.fleet(found, now),
            ],
        }

    def _first(self, asked: Asked, now: float) -> float:
        """Where the span begins that is shown of itself: with the first figures of a Prometheus that is younger."""
        usual = now - USUAL_SPAN
        if asked.begin is not None or asked.last is not None:
            return usual
        if self._begins is None:
            found = self._prometheus.query_range(queries.ANYTHING, usual, now, MINUTE)
            self._begins = min((trace.points.x[0] for trace in found if trace.points.x), default=None)
        return usual if self._begins is None else min(max(usual, self._begins - MINUTE), now - LEAST_SPAN)

    def _unread(self, why: str, now: float, asked: Asked) -> View:
        """The page where Prometheus gives nothing: each section says so."""
        none = view.empty(why, "This page asks again every few seconds.")
        sections = [view.section(name, title, none=none) for name, title in TITLES.items()]
        if self._health.folder:
            sections[3] = self._health.section(now, asked.node)
        said = {"name": "no data", "level": "bad", "text": why, "ended": False, "updated": None}
        found = {
            "state": said,
            "simulated": SIMULATED if self._simulated else "",
            "problems": [view.problem(why, level="bad")],
        }
        return {**found, "nodes": [], "marks": [], "sections": sections}

    def _read(self, asked: Asked, begin: float, end: float) -> Readings:
        """All that the page needs. The first question is asked alone, so that a server that is gone costs one wait."""
        ends = time.monotonic() + SECONDS
        step = max(SHORTEST_STEP, math.ceil((end - begin) / max(1, asked.width)))
        were = self._prometheus.query_range(queries.TRAINED, begin, end, step)
        training = self._prometheus.query(queries.INSTANT["training"])
        trainers = sorted({each.labels.get("instance", "") for each in training}, key=in_order)
        before = sorted({each.labels.get("instance", "") for each in were}, key=in_order)
        candidates = [asked.node] if asked.node in {*trainers, *before} else [*trainers, *before]
        leader = candidates[0] if candidates else ""
        where = f"instance={quoted(asked.node)}" if asked.node else ""
        node = f"instance={quoted(leader)}"

        def submit(query: str) -> str:
            return queries.filled(query, node, where, step)

        instant = {
            name: self._pool.submit(self._prometheus.query, submit(query))
            for name, query in queries.INSTANT.items()
            if name != "training"
        }
        charts = {**queries.CHARTS, **(queries.OF_A_NODE if asked.node else {})}
        ranges = {
            name: [
                (each, self._pool.submit(self._prometheus.query_range, submit(each.query), begin, end, step))
                for each in lines
            ]
            for name, lines in charts.items()
        }
        saved, begun = (
            self._pool.submit(self._prometheus.query_range, submit(query), begin, end, step)
            for query in (queries.CHECKPOINTS, queries.RESTARTS)
        )
        alerts = self._pool.submit(self._prometheus.alerts)
        charted = [future for lines in ranges.values() for _range, future in lines]
        problems = _wait([*instant.values(), alerts, *charted, saved, begun], ends)
        hardware = {each.labels.get("hardware", "") for each in training}
        hardware |= {each.labels.get("hardware", "") for each in were}
        found = Readings(leader, trainers, _answer(alerts), hardware, problems)
        found.now = {name: _answer(future) for name, future in instant.items()} | {"training": training}
        for name, asked_lines in ranges.items():
            traces = [(each, trace) for each, future in asked_lines for trace in _answer(future)]
            traces.sort(key=lambda pair: in_order(pair[1].labels.get(pair[0].label, "")) if pair[0].label else [])
            several = len(traces) > len(asked_lines)
            found.charts[name] = [view.Line(_named(each, trace, several), trace.points) for each, trace in traces]
        times = {value for trace in _answer(saved) for value in trace.points.last if value}
        found.marks = [(each, "checkpoint", "checkpoint") for each in sorted(times)]
        for trace in _answer(begun):
            found.marks += [
                (each, "restart", "restart") for each in _first_of_each(trace.points.x, step + queries.SCRAPES)
            ]
        return found


def _first_of_each(times: list[float], window: float) -> list[float]:
    """The times at which a run of points begins: an event is seen from each point whose window has it."""
    found: list[float] = []
    for time_ in times:
        if not found or time_ - found[-1] > window:
            found.append(time_)
    return found


def _named(asked: queries.Range, trace: Trace, several: bool) -> str:
    """A line's name; that of several lines of one query has their node."""
    if asked.label:
        return trace.labels.get(asked.label, "")
    node = trace.labels.get("instance", "")
    return f"{asked.name}, {node}" if several and node else asked.name


def _wait(futures: Sequence[Future[Any]], ends: float) -> list[str]:
    """For all of them, as long as a browser waits; what was wrong with those that have no answer then."""
    wait(futures, max(0.0, ends - time.monotonic()))
    late = sum(not future.done() for future in futures)
    for future in futures:
        future.cancel()
    failed = {str(each.exception()) for each in futures if each.done() and not each.cancelled() and each.exception()}
    said = f"{late} of {len(futures)} questions took Prometheus longer than {SECONDS:g} s: choose a shorter span."
    return [*sorted(failed)[:3], *([said] if late else [])]


def _answer(future: Future[list[T]]) -> list[T]:
    """What came of a question; nothing where that was too late or failed."""
    is_there = future.done() and not future.cancelled() and future.exception() is None
    return future.result() if is_there else []
