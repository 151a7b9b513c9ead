"""The dashboards of the role grafana are what their catalogue makes, and Grafana's SDK knows all that is in them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models import dashboard as models

from tests.dashboards.catalogue import BOARDS
from tests.dashboards.grafana import FOLDER, files
from tests.dashboards.model import RUNBOOKS

ROOT = Path(__file__).resolve().parents[3]
RULE_FILE = (ROOT / "roles/prometheus/templates/gaudi3.rules.yml.j2").read_text(encoding="utf-8")
#: Each alert with the dashboard that it links to.
ALERTS = dict(re.findall(r'- alert: (\w+)\n(?:(?! +- alert).*\n)*? +\[\[- links\("[a-z-]+", "([a-z]+)"', RULE_FILE))
#: A dashboard before it was decoded, whose types the SDK chooses by plugins.
register_default_plugins()


def decoded_and_encoded(text: str) -> Any:
    """The dashboard as the SDK's model of it has it."""
    model = models.Dashboard.from_json(json.loads(text))
    return json.loads(JSONEncoder(sort_keys=True).encode(model))


def test_the_files_are_what_the_catalogue_makes() -> None:
    """After a change of the catalogue: python -m tests.dashboards."""
    assert {path: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.json")} == files()


@pytest.mark.parametrize("file", sorted(FOLDER.glob("*.json")), ids=lambda file: file.stem)
def test_the_schema_knows_every_key(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    assert decoded_and_encoded(text) == json.loads(text)


def test_an_unknown_key_is_noticed() -> None:
    text = (FOLDER / "gaudi3-fleet.json").read_text(encoding="utf-8")
    for key in ("gridPos", "legendFormat", "iconColor", "includeAll", "reduceOptions"):
        misspelt = text.replace(f'"{key}"', f'"{key}s"')
        assert misspelt != text
        assert decoded_and_encoded(misspelt) != json.loads(misspelt), key


def test_each_links_to_the_others_and_to_the_runbooks() -> None:
    for text in files().values():
        dashboard = json.loads(text)
        others, runbooks = dashboard["links"]
        assert others["type"] == "dashboards" and others["tags"] == dashboard["tags"]
        assert others["includeVars"] and others["keepTime"]
        assert runbooks["url"] == "${runbooks:raw}/README.md"
        assert [one["name"] for one in dashboard["annotations"]["list"]] == ["Restarts", "Checkpoints"]
        names = [one["name"] for one in dashboard["templating"]["list"]]
        assert names == ["datasource", "cluster", "instance", "job", "runbooks"]


def test_panels_link_to_runbooks_that_there_are() -> None:
    links = {
        link["url"]
        for text in files().values()
        for panel in json.loads(text)["panels"]
        for link in panel.get("links", [])
    }
    assert len(links) > 40
    for url in links:
        assert (ROOT / "docs" / "operate" / "runbooks" / url.removeprefix(f"{RUNBOOKS}/")).is_file(), url


def test_an_alert_links_to_a_dashboard_with_a_panel_on_it() -> None:
    shown = {
        (alert, board.name) for board in BOARDS for row in board.rows for one in row.panels for alert in one.alerts
    }
    assert len(ALERTS) == RULE_FILE.count("- alert: ")
    assert {alert for alert, _ in shown} <= set(ALERTS)
    assert {alert for alert, board in ALERTS.items() if (alert, board) not in shown} == set()
