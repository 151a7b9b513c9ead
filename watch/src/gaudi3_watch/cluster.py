"""The page of a cluster: what its Prometheus has of training, cards, nodes, money and alerts."""

from __future__ import annotations

import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from gaudi3_watch import cluster_sections, queries, view
from gaudi3_watch.cluster_sections import Readings
from gaudi3_watch.node_reports import NodeReports, in_order
from gaudi3_watch.prometheus import Prometheus, PrometheusError, quoted
from gaudi3_watch.view import Asked, View

AT_ONCE = 8
"""Queries that a Prometheus is asked at a time."""
KEPT_SECONDS = 5.0
"""For which an answer serves further browsers."""
MOST_KEPT = 32
USUAL_SPAN = 6 * 3600.0
LONGEST_SPAN = 400 * 86400.0
SHORTEST_STEP = 15.0
SIMULATED = (
    "This cluster is simulated, or a job on it runs on the simulated device. Losses are real; speed, temperatures, "
    "power and everything that follows from them say nothing about a Gaudi."
)
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
        self._kept: OrderedDict[Asked, tuple[float, View]] = OrderedDict()
        self._pool = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="gaudi3-watch-query")

    def page(self, asked: Asked) -> View:
        """The whole page as plain data; the same to all who ask the same within some seconds."""
        with self._lock:
            found = self._kept.get(asked)
            if found is None or time.monotonic() - found[0] > KEPT_SECONDS:
                found = (time.monotonic(), self._page(asked))
                self._kept[asked] = found
                while len(self._kept) > MOST_KEPT:
                    self._kept.popitem(last=False)
            return found[1]

    def _page(self, asked: Asked) -> View:
        now = self._clock()
        begin, end = asked.span(now - USUAL_SPAN, now)
        begin = max(begin, end - LONGEST_SPAN)
        shown = {
            "title": "Cluster",
            "source": f"Prometheus at {view.text(self._prometheus.url)}",
            "jobs": [],
            "job": "",
            "node": asked.node,
            "span": {"begin": begin, "end": end, "first": now - USUAL_SPAN, "newest": now},
            "poll": KEPT_SECONDS,
            "usual": USUAL_SPAN,
        }
        try:
            found = self._read(asked, begin, end)
        except PrometheusError as error:
            return {**shown, **self._unread(str(error), now, asked)}
        marks = view.marks(found.marks, asked.width, begin, end)
        simulated = self._simulated or found.is_simulated
        nodes = sorted({each.labels.get("instance", "") for each in found.now["targets"]} - {""}, key=in_order)
        problems = []
        if asked.node and asked.node not in nodes:
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
        step = max(SHORTEST_STEP, math.ceil((end - begin) / max(1, asked.width)))
        training = self._prometheus.query(queries.INSTANT["training"])
        trainers = sorted({each.labels.get("instance", "") for each in training}, key=in_order)
        leader = asked.node if asked.node in trainers or not trainers else trainers[0]
        where = f"instance={quoted(asked.node)}" if asked.node else ""
        node = f"instance={quoted(leader)}" if leader else ""

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
        _wait([*instant.values(), *charted, saved, begun, alerts])
        found = Readings(leader, trainers, alerts.result())
        found.now = {name: future.result() for name, future in instant.items()} | {"training": training}
        for name, asked_lines in ranges.items():
            found.charts[name] = [
                view.Line(each.name or trace.labels.get(each.label, ""), trace.points)
                for each, future in asked_lines
                for trace in sorted(future.result(), key=lambda trace: in_order(trace.labels.get(each.label, "")))
            ]
        times = {value for trace in saved.result() for value in trace.points.last if value}
        found.marks = [(each, "checkpoint", "checkpoint") for each in sorted(times)]
        for trace in begun.result():
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


def _wait(futures: Iterable[Future[Any]]) -> None:
    """For all of them; the first that failed keeps the others from being asked in vain."""
    failed: BaseException | None = None
    for future in futures:
        if failed:
            future.cancel()
        else:
            failed = future.exception()
    if failed:
        raise failed
