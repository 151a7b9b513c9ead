"""docs/operate/air-gap.md has every address that a role downloads from, with its default."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml

from .documents import ROOT

PAGE = "docs/operate/air-gap.md"
#: How the variables end that name a place of downloads, or that let one be without TLS.
MIRRORS = re.compile(r"_(url|image|registry|archive|plain_http|repository)$")
#: Addresses by which people and services reach what a role has set up, and where backups are kept.
OWN = {
    "alertmanager_external_url", "backup_repository", "grafana_external_url", "grafana_prometheus_url",
    "prometheus_dashboard_url", "prometheus_external_url", "prometheus_runbook_url", "watch_prometheus_url",
}  # fmt: skip


def options() -> dict[str, dict[str, Any]]:
    """Every variable of the roles' main entry points."""
    found: dict[str, dict[str, Any]] = {}
    for path in sorted((ROOT / "roles").glob("*/meta/argument_specs.yml")):
        found |= yaml.safe_load(path.read_text())["argument_specs"].get("main", {}).get("options", {})
    return found


def missing(page: str, variables: dict[str, dict[str, Any]]) -> list[str]:
    """Variables of downloads that a page's table does not have, and defaults that differ from the page's."""
    rows = [line for line in page.splitlines() if line.startswith("|")]
    wrong = []
    for name, option in variables.items():
        default = option.get("default")
        outside = isinstance(default, str) and bool(re.match(r"https?://|vault\.habana\.ai", default))
        if name in OWN or not (MIRRORS.search(name) or outside):
            continue
        lines = [row for row in rows if f"`{name}`" in row]
        if not lines:
            wrong.append(f"{name} is in no row")
        elif outside and not any(f"`{default}`" in row for row in lines):
            wrong.append(f"{name} has the default {default}")
    return wrong


def test_every_address_of_downloads_is_in_the_table() -> None:
    assert missing((ROOT / PAGE).read_text(), options()) == []


def test_every_variable_of_the_page_exists() -> None:
    known = {*options(), "grafana_enabled"}
    roles = "|".join(path.name for path in (ROOT / "roles").iterdir())
    code = re.findall(rf"`((?:{roles})_\w+)", (ROOT / PAGE).read_text())
    assert len(code) > 15
    assert [name for name in code if name not in known] == []


@pytest.mark.parametrize(
    ("name", "default", "said"),
    [
        ("new_repository_url", None, "is in no row"),
        ("new_source", "https://example.org", "is in no row"),
        ("synapseai_key_url", "https://elsewhere", "has the default https://elsewhere"),
    ],
)
def test_an_address_that_the_table_lacks_is_found(name: str, default: str | None, said: str) -> None:
    assert missing((ROOT / PAGE).read_text(), {name: {"default": default}}) == [f"{name} {said}"]
