"""The sections of a cluster, from what its Prometheus answered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from gaudi3_watch import view
from gaudi3_watch.causes import LABELS, PARTS
from gaudi3_watch.node_reports import in_order
from gaudi3_watch.prometheus import Sample
from gaudi3_watch.view import Cell, Level, Line, View, duration, number

HOT = 90.0
"""Celsius from which a temperature is marked; the alert HpuTemperatureHigh knows the card's own threshold."""
SEVERITIES: dict[str, Level] = {"critical": "bad", "warning": "warn"}
NO_TRAINING = view.empty(
    "No node serves metrics of a training at this moment.",
    "Start a job with metrics.enabled, or choose a span of time in which one ran.",
)


@dataclass
class Readings:
    """The answers, by the names of `queries`."""

    leader: str
    """The node whose training is shown."""
    trainers: list[str]
    alerts: list[dict[str, Any]]
    hardware: set[str] = field(default_factory=set)
    """Of the trainings in the span of time, as they call it."""
    problems: list[str] = field(default_factory=list)
    """What was asked in vain, a sentence each."""
    now: dict[str, list[Sample]] = field(default_factory=dict)
    charts: dict[str, list[Line]] = field(default_factory=dict)
    marks: list[tuple[float, str, str]] = field(default_factory=list)

    @property
    def is_simulated(self) -> bool:
        """Whether a job that is shown said that its device is the simulated one."""
        return any("simulat" in each for each in self.hardware)

    def of(self, name: str, **labels: str) -> float | None:
        """The value of the first series with these labels."""
        found = self.now.get(name, [])
        return next((e.value for e in found if all(e.labels.get(key) == value for key, value in labels.items())), None)

    def by(self, name: str, *labels: str) -> dict[tuple[str, ...], float]:
        """Values by the values of some labels."""
        return {tuple(each.labels.get(label, "") for label in labels): each.value for each in self.now.get(name, [])}

    @property
    def firing(self) -> list[dict[str, Any]]:
        """The alerts that fire, without the one that always does."""
        found = [each for each in self.alerts if each.get("state") == "firing"]
        return [each for each in found if _label(each, "alertname") != "Watchdog"]


def state(found: Readings) -> View:
    """The cluster in a word."""
    serious = [each for each in found.firing if _label(each, "severity") == "critical"]
    level: Level = "bad" if serious else "warn" if found.firing else "good"
    name = f"{len(found.firing)} alert{'s' if len(found.firing) != 1 else ''}" if found.firing else "in order"
    jobs = (
        f"{len(found.trainers)} nodes train"
        if len(found.trainers) > 1
        else "1 node trains"
        if found.trainers
        else "No job runs"
    )
    return {"name": name, "level": level, "text": f"{jobs}.", "ended": False, "updated": None}


def training(found: Readings, simulated: bool) -> View:
    """Loss and speed of the job that the chosen node takes part in."""
    if not found.trainers and not any(found.charts[name] for name in ("loss", "speed")):
        return view.section("training", "Training", none=NO_TRAINING)
    where = "on the simulator" if simulated else "on this cluster"
    node = {"instance": found.leader}
    step, steps = found.of("step", **node), found.of("max_steps", **node)
    share = step / steps if step is not None and steps else None
    hardware = next(
        (e.labels.get("hardware", "") for e in found.now["training"] if e.labels.get("instance") == found.leader), ""
    )
    tiles = [
        view.tile("Step", number(step, 15), f"of {number(steps, 15)}", share=share),
        view.tile("Loss", number(found.of("loss", **node))),
        view.tile("Tokens per second", number(found.of("speed", **node)), where),
        view.tile("Processes", number(found.of("world_size", **node), 15), view.text(hardware, 40)),
    ]
    mfu = found.of("mfu", **node)
    if mfu is not None and not simulated:
        tiles.append(view.tile("MFU", f"{number(100 * mfu, 3)} %", where))
    skipped = found.of("skipped", **node)
    if skipped:
        tiles.append(view.tile("Skipped steps", number(skipped, 15), "loss or gradients were not finite", "warn"))
    span = f"As {view.text(found.leader)} says." if found.leader else ""
    charts = [
        view.chart("loss", "Loss", "nats per token", found.charts["loss"], span=span),
        view.chart("speed", f"Tokens per second, {where}", "tokens/s", found.charts["speed"], span=span),
        view.chart("step", f"Time of a step, {where}", "s", found.charts["step"], span=span),
        view.chart("gradient", "Gradient norm", "", found.charts["gradient"], span=span),
    ]
    return view.section("training", "Training", tiles, charts)


def time_spent(found: Readings, marks: Sequence[View]) -> View:
    """Goodput by cause."""
    seconds = {
        key[1]: value for key, value in found.by("goodput", "instance", "part").items() if key[0] == found.leader
    }
    whole = sum(seconds.values())
    if not whole and not found.charts["parts"]:
        return view.section("goodput", "Where the time goes", none=NO_TRAINING)
    tiles = []
    if whole:
        ratio = seconds.get("compute", 0.0) / whole
        tiles = [
            view.tile(
                "Goodput", f"{number(100 * ratio, 3)} %", "of the time went into steps that were kept", share=ratio
            ),
            view.tile("Since the first start", duration(whole)),
        ]
    rows = [
        [
            LABELS.get(part, view.text(part, 40)),
            duration(each),
            f"{number(100 * each / whole, 3)} %",
            PARTS.get(part, ""),
        ]
        for part, each in sorted(seconds.items(), key=lambda pair: -pair[1])
        if whole
    ]
    order = {part: index for index, part in enumerate(PARTS)}
    lines = sorted(found.charts["parts"], key=lambda line: order.get(line.name, 99))
    named = [Line(LABELS.get(line.name, line.name), line.points) for line in lines]
    charts = [view.chart("parts", "Share of the time since the first start", "%", named, NO_TRAINING, kind="stack")]
    causes = view.table("causes", "By cause", ("cause", "time", "share", "what it is"), rows, (1, 2), NO_TRAINING)
    return view.section("goodput", "Where the time goes", tiles, charts, [causes, view.happened(marks)])


def cards(found: Readings, node: str) -> View:
    """Each card with its readings, and its ports."""
    temperatures, power = found.by("temperature", "instance", "id"), found.by("power", "instance", "id")
    use, memory = found.by("utilization", "instance", "id"), found.by("memory", "instance", "id")
    errors, ports = found.by("uncorrected", "instance", "id"), found.by("ports", "instance", "id")
    down = found.by("ports_down", "instance", "id")
    known = {*temperatures, *power, *use, *memory, *ports}
    if not known and not found.charts["temperature"]:
        why = view.empty(
            f"Prometheus has no readings of cards{f' of {view.text(node)}' if node else ''}.",
            "See whether the role hpu_exporter runs on the nodes: gaudi3.scale.monitoring installs it.",
        )
        return view.section("cards", "Cards and ports", none=why)
    rows: list[Sequence[Cell]] = []
    faults = {key for found_ in (errors, down) for key, count in found_.items() if count}
    for key in sorted(known, key=lambda pair: (pair not in faults, in_order(pair[0]), in_order(pair[1]))):
        hot, bad, gone = temperatures.get(key), errors.get(key, 0), down.get(key, 0)
        rows.append(
            [
                view.cell(key[0], node=key[0]),
                view.text(key[1], 40),
                view.cell(f"{number(hot, 3)}", "warn" if hot is not None and hot >= HOT else ""),
                number(power.get(key), 4),
                number(use.get(key), 3),
                number(memory.get(key), 3),
                view.cell(f"{bad:g}", "bad" if bad else ""),
                view.cell(f"{gone:g} of {ports.get(key, 0):g}", "bad" if gone else ""),
            ]
        )
    faulty = sum(1 for value in errors.values() if value)
    tiles = [
        view.tile("Cards", f"{len(known):,}"),
        view.tile("Hottest", f"{number(max(temperatures.values(), default=None), 3)} \N{DEGREE SIGN}C"),
        view.tile("Power", f"{number(sum(power.values()) / 1000, 4)} kW"),
        view.tile(
            "Ports down", f"{sum(down.values()):,.0f}", f"of {sum(ports.values()):,.0f}", "bad" if down else "good"
        ),
        view.tile("Cards with uncorrected errors", f"{faulty:,}", level="bad" if faulty else "good"),
    ]
    of = f" of {view.text(node, 60)}" if node else ""
    named = {
        name: [Line(f"card {line.name}" if node and name != "ports" else line.name, line.points) for line in lines]
        for name, lines in found.charts.items()
    }
    charts = [
        view.chart("temperature", f"Temperature{of}", "\N{DEGREE SIGN}C", named["temperature"]),
        view.chart("power", f"Power{of}", "W" if node else "kW", named["power"]),
        view.chart("utilization", f"Utilization{of}", "%", named["utilization"]),
        view.chart("ports", f"Ports down{of}", "ports", named["ports"]),
    ]
    columns = ("node", "card", "\N{DEGREE SIGN}C", "W", "use %", "memory %", "uncorrected errors", "ports down")
    listed = view.table("cards", "Every card now, those with a fault first", columns, rows, range(2, 8))
    return view.section("cards", "Cards and ports", tiles, charts, [listed])


def nodes(found: Readings, now: float, reports: View | None) -> View:
    """What each node says of its own health; the controller's reports beside it."""
    drains, out = found.by("drains", "instance"), found.by("out", "instance")
    errors, examined = found.by("check_errors", "instance"), found.by("examined", "instance")
    verdicts: dict[str, list[str]] = {}
    for (node, kind, severity), count in found.by("verdicts", "instance", "kind", "severity").items():
        verdicts.setdefault(node, []).append(f"{count:g} {view.text(kind, 40)} ({view.text(severity, 20)})")
    rows: list[Sequence[Cell]] = []
    for (node,) in sorted({*drains, *out, *examined}, key=lambda key: (not drains.get(key), in_order(key[0]))):
        key = (node,)
        unfit, said = drains.get(key, 0) > 0, ", ".join(verdicts.get(node, []))
        rows.append(
            [
                view.cell(node, node=node),
                view.cell(said or "healthy", "bad" if unfit else "warn" if said else "good"),
                view.cell("out of service" if out.get(key) else "in service", "bad" if out.get(key) else "good"),
                number(errors.get(key, 0), 15),
                f"{duration(max(0.0, now - examined[key]))} ago" if key in examined else "never",
            ]
        )
    why = view.empty(
        "No node serves gaudi_health_ metrics.", "Run gaudi3.scale.health_timer, so that each node examines itself."
    )
    if not rows:
        return reports or view.section("nodes", "Nodes", none=why)
    unfit_count = sum(1 for value in drains.values() if value)
    tiles = [
        view.tile("Examined", f"{len(examined):,}"),
        view.tile("Not fit for work", f"{unfit_count:,}", level="bad" if unfit_count else "good"),
        view.tile("Out of service", f"{sum(1 for value in out.values() if value):,}"),
    ]
    own = view.table(
        "health",
        "As each node examines itself",
        ("node", "verdicts", "service", "failed readings", "examined"),
        rows,
        (3,),
    )
    if reports is None:
        passports = view.table(
            "passports",
            "Passports",
            ("node",),
            (),
            none=view.empty(
                "Passports lie on the controller, and Prometheus has none.",
                "Give the folder of the health reports with --health.",
            ),
        )
        return view.section("nodes", "Nodes", tiles, (), [own, passports])
    return view.section("nodes", "Nodes", tiles, (), [own, *reports["tables"]])


def cost(found: Readings, simulated: bool) -> View:
    """Money of all jobs that serve it."""
    spent = found.by("spent", "instance", "currency")
    if not spent and not found.charts["spent"]:
        why = view.empty(
            "No job serves a cost.",
            "Set cost.node_price_per_hour, price_source and price_date in the job's configuration.",
        )
        return view.section("cost", "Cost", none=why)
    tiles, rows = [], []
    note = "of a simulated job" if simulated else ""
    for (node, currency), money in sorted(spent.items(), key=lambda pair: in_order(pair[0][0])):
        budget, left = found.of("budget", instance=node), found.of("left", instance=node)
        payer: Mapping[str, str] = next((e.labels for e in found.now["payer"] if e.labels.get("instance") == node), {})
        share = money / budget if budget else None
        level: Level = "" if share is None else "bad" if share >= 1 else "warn" if share >= 0.8 else "good"
        rows.append(
            [
                view.cell(node, node=node),
                f"{number(money, 6)} {view.text(currency, 12)}",
                number(budget, 6),
                view.cell(number(left, 6), level),
                number(found.of("price", instance=node), 6),
                number(found.of("per_million", instance=node)),
                view.text(f"{payer.get('team', '')} {payer.get('project', '')}".strip(), 80),
                view.text(f"{payer.get('price_source', '')} {payer.get('price_date', '')}".strip(), 120),
            ]
        )
        tiles.append(
            view.tile(
                f"Spent, {view.text(node, 40)}",
                f"{number(money, 6)} {view.text(currency, 12)}",
                f"of a budget of {number(budget, 6)}" if budget else note,
                level,
                share,
            )
        )
    lines = [Line(line.name, line.points) for line in found.charts["spent"]]
    columns = (
        "first node",
        "spent",
        "budget",
        "left",
        "price per hour",
        "per million tokens",
        "team, project",
        "price from",
    )
    return view.section(
        "cost",
        "Cost",
        tiles[:8],
        [view.chart("spent", "Money spent", "", lines)],
        [view.table("jobs", "By job", columns, rows, range(1, 6))],
    )


def fleet(found: Readings, now: float) -> View:
    """Alerts, and what Prometheus reaches."""
    alerts = sorted(found.firing, key=lambda each: (_label(each, "severity") != "critical", _label(each, "alertname")))
    rows: list[Sequence[Cell]] = [
        [
            view.cell(_label(each, "alertname"), SEVERITIES.get(_label(each, "severity"), "")),
            _label(each, "severity"),
            view.cell(_label(each, "instance"), node=_label(each, "instance")) if _label(each, "instance") else "",
            _since(each, now),
            _annotation(each, "summary") or _annotation(each, "description"),
        ]
        for each in alerts
    ]
    by_job: dict[str, list[float]] = {}
    for each in found.now["targets"]:
        by_job.setdefault(each.labels.get("job", ""), []).append(each.value)
    gone = sorted(
        (
            (e.labels.get("job", ""), e.labels.get("instance", ""))
            for e in found.now["targets"]
            if not e.value and e.labels.get("job") != "training"
        ),
        key=lambda pair: in_order(pair[1]),
    )
    targets = [[view.text(job), f"{sum(values):,.0f}", f"{len(values):,}"] for job, values in sorted(by_job.items())]
    tiles = [
        view.tile("Alerts", f"{len(alerts):,}", level=state(found)["level"]),
        view.tile("Nodes that train", f"{len(found.trainers):,}"),
        view.tile("Silent targets", f"{len(gone):,}", "without those of jobs, which end", "bad" if gone else "good"),
    ]
    none = view.empty("No alert fires.", "Nothing has to be done.")
    tables = [
        view.table("alerts", "Alerts that fire", ("alert", "severity", "node", "for", "what it says"), rows, none=none),
        view.table("targets", "Targets of Prometheus", ("kind", "answer", "of"), targets, (1, 2)),
    ]
    hung = sorted(found.now.get("hangs", []), key=lambda each: -each.value)
    if hung:
        columns = ("job", "state", "found", "who held up the others")
        said = [
            [
                *(view.text(each.labels.get(name, ""), 100) for name in ("name", "state")),
                view.moment(each.value),
                view.text(each.labels.get("sentence", ""), view.SENTENCE),
            ]
            for each in hung
        ]
        tables.insert(1, view.table("hangs", "Jobs that hung, by their own words", columns, said))
    if gone:
        listed = [[view.text(job), view.cell(node, "bad", node)] for job, node in gone]
        tables.insert(1, view.table("silent", "Targets that do not answer", ("kind", "target"), listed))
    return view.section("fleet", "Fleet", tiles, (), tables)


def _label(alert: Mapping[str, Any], name: str) -> str:
    labels = alert.get("labels")
    return view.text(labels.get(name, ""), 100) if isinstance(labels, dict) else ""


def _annotation(alert: Mapping[str, Any], name: str) -> str:
    annotations = alert.get("annotations")
    return view.text(annotations.get(name, ""), view.SENTENCE) if isinstance(annotations, dict) else ""


def _since(alert: Mapping[str, Any], now: float) -> str:
    """For how long, from a time as Go writes it, whose fraction Python does not read."""
    try:
        began = datetime.fromisoformat(str(alert.get("activeAt"))[:19] + "+00:00").timestamp()
    except ValueError:
        return ""
    return duration(max(0.0, now - began))
