"""Dashboards as Grafana reads them, by its own foundation SDK (schema 11.6)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from grafana_foundation_sdk.builders import bargauge, common, dashboard, prometheus, stat, timeseries
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import common as kinds
from grafana_foundation_sdk.models import dashboard as models

from tests.dashboards.catalogue import BOARDS
from tests.dashboards.model import RUNBOOKS, Board, Panel, expand, runbook

FOLDER = Path(__file__).resolve().parents[2] / "roles" / "grafana" / "files" / "dashboards"
TAG = "gaudi3.scale"
SOURCE = models.DataSourceRef(type_val="prometheus", uid="${datasource}")
#: Names, labels, where their values are from, and what "All" stands for. Prometheus gives its own series no label
#: `cluster`; a store that several clusters write to has it from their external labels.
VARIABLES = (
    ("cluster", "Cluster", "up", ".*"),
    ("instance", "Instance", 'up{job="node", cluster=~"$cluster"}', ".+"),
    ("job", "Job", 'gaudi_training_step{cluster=~"$cluster"}', ".+"),
)
#: Marks in all panels.
ANNOTATIONS = (
    ("Restarts", "red", 'changes(gaudi_training_goodput_seconds_total{@training, part="restart_loss"}[1m]) > 0'),
    ("Checkpoints", "blue", "changes(gaudi_training_checkpoint_last_timestamp_seconds{@training}[1m]) > 0"),
)
HEIGHTS = {"stat": 4, "timeseries": 8, "bargauge": 8}


def variable(name: str, label: str, series: str, every: str) -> dashboard.QueryVariable:
    """A variable with all values of a label."""
    return (
        dashboard.QueryVariable(name)
        .label(label)
        .datasource(SOURCE)
        .query({"query": f"label_values({series}, {name})", "refId": name})
        .refresh(models.VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(models.VariableSort.NUMERICAL_ASC)
        .multi(True)
        .include_all(True)
        .all_value(every)
        .current(models.VariableOption(selected=True, text=["All"], value=["$__all"]))
    )


def runbooks() -> dashboard.QueryVariable:
    """Where the runbooks can be read, which the rules of the role prometheus carry."""
    return (
        dashboard.QueryVariable("runbooks")
        .label("Runbooks")
        .datasource(SOURCE)
        .query({"query": "label_values(cluster:gaudi_runbooks:info, url)", "refId": "runbooks"})
        .refresh(models.VariableRefresh.ON_TIME_RANGE_CHANGED)
        .hide(models.VariableHide.HIDE_VARIABLE)
    )


def thresholds(panel: Panel) -> dashboard.ThresholdsConfig:
    """Green, and where the panel has limits yellow and red."""
    steps = [models.Threshold(value=None, color="green")]
    if panel.limits:
        steps += [models.Threshold(value=one, color=c) for one, c in zip(panel.limits, ("yellow", "red"), strict=True)]
    return dashboard.ThresholdsConfig().mode(models.ThresholdsMode.ABSOLUTE).steps(steps)


def newest() -> common.ReduceDataOptions:
    """The newest value of each series."""
    return common.ReduceDataOptions().calcs(["lastNotNull"]).fields("").values(False)


def curves(panel: Panel) -> timeseries.Panel:
    """Lines over time."""
    made = (
        timeseries.Panel()
        .line_width(1)
        .fill_opacity(60 if panel.stacked else 5)
        .show_points(kinds.VisibilityMode.NEVER)
        .span_nulls(60000)
        .tooltip(common.VizTooltipOptions().mode(kinds.TooltipDisplayMode.MULTI).sort(kinds.SortOrder.DESCENDING))
        .legend(
            common.VizLegendOptions()
            .display_mode(kinds.LegendDisplayMode.LIST)
            .placement(kinds.LegendPlacement.BOTTOM)
            .show_legend(True)
        )
    )
    made = made if panel.unit == "none" else made.min(0)
    return made.stacking(common.StackingConfig().mode(kinds.StackingMode.NORMAL)) if panel.stacked else made


def number(panel: Panel) -> stat.Panel:
    """One number."""
    colour = kinds.BigValueColorMode.VALUE if panel.limits else kinds.BigValueColorMode.NONE
    return stat.Panel().color_mode(colour).graph_mode(kinds.BigValueGraphMode.NONE).reduce_options(newest())


def bars(panel: Panel) -> bargauge.Panel:
    """A bar for each series."""
    return (
        bargauge.Panel()
        .orientation(kinds.VizOrientation.HORIZONTAL)
        .display_mode(kinds.BarGaugeDisplayMode.BASIC)
        .reduce_options(newest())
        .min(0)
    )


MAKERS = {"timeseries": curves, "stat": number, "bargauge": bars}


def make_panel(panel: Panel, number_of_it: int, x: int, y: int) -> Any:
    """A panel at its place."""
    made: Any = MAKERS[panel.kind](panel)
    made = (
        made.id(number_of_it)
        .title(panel.title)
        .description(panel.description)
        .datasource(SOURCE)
        .unit(panel.unit)
        .thresholds(thresholds(panel))
        .grid_pos(models.GridPos(h=HEIGHTS[panel.kind], w=panel.width, x=x, y=y))
        .links(
            [
                dashboard.DashboardLink(f"Runbook of {alert}")
                .type(models.DashboardLinkType.LINK)
                .url(runbook(alert))
                .target_blank(True)
                for alert in panel.alerts
            ]
        )
    )
    if panel.highest is not None:
        made = made.max(panel.highest)
    for place, (legend, query) in enumerate(panel.queries.items()):
        asked = prometheus.Dataquery().expr(expand(query)).legend_format(legend).ref_id("ABC"[place])
        asked = asked.datasource(SOURCE)
        made = made.with_target(asked.range() if panel.kind == "timeseries" else asked.instant())
    return made


def make(board: Board) -> dict[str, Any]:
    """A dashboard."""
    made = (
        dashboard.Dashboard(board.title)
        .uid(f"gaudi3-{board.name}")
        .description(board.description)
        .tags([TAG])
        .readonly()
        .timezone("browser")
        .refresh("30s")
        .time("now-1h", "now")
        .tooltip(models.DashboardCursorSync.CROSSHAIR)
        .version(1)
        .with_variable(dashboard.DatasourceVariable("datasource").label("Data source").type("prometheus"))
        .link(
            dashboard.DashboardLink("Dashboards")
            .type(models.DashboardLinkType.DASHBOARDS)
            .tags([TAG])
            .include_vars(True)
            .keep_time(True)
        )
        .link(
            dashboard.DashboardLink("Runbooks")
            .type(models.DashboardLinkType.LINK)
            .url(f"{RUNBOOKS}/README.md")
            .icon("doc")
            .target_blank(True)
        )
    )
    for each in VARIABLES:
        made = made.with_variable(variable(*each))
    made = made.with_variable(runbooks())
    for name, colour, query in ANNOTATIONS:
        made = made.annotation(
            dashboard.AnnotationQuery()
            .name(name)
            .datasource(SOURCE)
            .icon_color(colour)
            .enable(True)
            .expr(expand(query))
        )
    identity, x, y = 0, 0, 0
    for row in board.rows:
        identity += 1
        made = made.with_row(dashboard.Row(row.title).id(identity).grid_pos(models.GridPos(h=1, w=24, x=0, y=y)))
        x, y, height = 0, y + 1, 0
        for panel in row.panels:
            if x + panel.width > 24:
                x, y, height = 0, y + height, 0
            identity += 1
            made = made.with_panel(make_panel(panel, identity, x, y))
            x, height = x + panel.width, max(height, HEIGHTS[panel.kind])
        y += height
    decoded: dict[str, Any] = json.loads(JSONEncoder(sort_keys=True).encode(made.build()))
    return decoded


def files() -> dict[Path, str]:
    """What each file of the role has to hold."""
    return {
        FOLDER / f"gaudi3-{board.name}.json": json.dumps(make(board), indent=1, sort_keys=True, ensure_ascii=False)
        + "\n"
        for board in BOARDS
    }
