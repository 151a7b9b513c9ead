"""The site in a browser: nothing is asked of others, everybody can use it, and it fits a phone."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from browser import Browser, Tab

from website.repository import ROOT

AXE = ROOT / ".cache/axe/node_modules/axe-core/axe.min.js"

#: Wide tables of long names, and each kind of drawing.
SHOWN = [
    "reference/metrics.html",
    "reference/commands.html",
    "understand/architecture.html",
    "clouds/cost-calculator.html",
]
#: Names of the first column that are in two lines.
CUT = """[...document.querySelectorAll('article td:first-child code .pre')]
  .filter(each => new Set([...each.getClientRects()].map(part => Math.round(part.bottom / 4))).size > 1)
  .map(each => each.textContent)"""
#: Headings that are more than one level below the one before.
SKIPPED = """[...document.querySelectorAll('article :is(h1, h2, h3, h4, h5, h6)')].map(each => Number(each.tagName[1]))
  .filter((level, at, all) => at && level > all[at - 1] + 1).length"""

#: The first page, a long one, one of a module, one of the API and the search.
PAGES = [
    "index.html",
    "operate/health.html",
    "reference/collection/gaudi_train_module.html",
    "reference/api/gaudi3_scale.html",
    "search.html?q=checkpoint",
]
READY = "document.readyState === 'complete'"
FOUND = "document.querySelectorAll('#search-results li').length > 0"
SERIOUS = """axe.run({resultTypes: ['violations']}).then(found => found.violations
  .filter(each => ['serious', 'critical'].includes(each.impact))
  .map(each => `${each.id}: ${each.nodes.slice(0, 3).map(node => node.html.slice(0, 200)).join(' ')}`))"""


def words(path: Path) -> set[str]:
    """The words of a page's HTML."""
    return set(re.findall(r"[\w-]+", path.read_text(encoding="utf-8")))


def opened(chromium: Browser, address: str, **given: Any) -> Tab:
    tab = chromium.tab(address, **given)
    tab.wait(f"location.href !== 'about:blank' && {READY}")
    if "search" in address:
        tab.wait(FOUND)
    return tab


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True), (390, False), (1280, True)])
def test_everybody_can_use_a_page(chromium: Browser, served: str, page: str, width: int, dark: bool) -> None:
    tab = opened(chromium, f"{served}/{page}", width=width, dark=dark)
    assert tab.ask("document.documentElement.scrollWidth - innerWidth") <= 0, "it scrolls sideways"
    assert tab.ask("document.querySelectorAll('h1').length") == 1
    assert tab.ask("[...document.images].filter(each => !each.alt).length") == 0
    assert tab.complaints() == []
    assert [each for each in tab.requests() if not each.startswith((served, "data:"))] == []
    if not AXE.exists():
        pytest.skip("The pages are checked by axe-core, which npm brings: apt-get install npm")
    tab.ask(AXE.read_text() + ";0")
    assert tab.ask(SERIOUS) == []
    tab.close()


@pytest.mark.parametrize("page", SHOWN)
@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True), (1100, True), (1400, False)])
def test_nothing_is_cut_off(chromium: Browser, served: str, page: str, width: int, dark: bool) -> None:
    tab = opened(chromium, f"{served}/{page}", width=width, dark=dark)
    assert tab.ask("document.documentElement.scrollWidth - innerWidth") <= 0, "it scrolls sideways"
    assert tab.ask(CUT) == []
    assert tab.ask(SKIPPED) == 0
    dark_controls = tab.ask("getComputedStyle(document.body).colorScheme") == "dark"
    assert dark_controls == dark, "the browser's own controls have other colours than the page"
    tab.close()


def test_commands_alone_have_a_button_to_copy_them(chromium: Browser, site: Path, served: str) -> None:
    both = (path for path in sorted(site.rglob("*.html")) if {"highlight-sh", "highlight-yaml"} <= words(path))
    tab = opened(chromium, f"{served}/{next(both).relative_to(site)}")
    tab.wait("document.querySelectorAll('.highlight-sh button.copybtn').length > 0")
    commands = "document.querySelectorAll('.highlight-sh, .highlight-shell').length"
    assert tab.ask(f"document.querySelectorAll('.copybtn').length === {commands}")
    tab.close()


@pytest.mark.parametrize("page", ["index.html", "search.html?q=checkpoint", "clouds/cost-calculator.html"])
def test_it_works_from_files(chromium: Browser, site: Path, page: str) -> None:
    tab = opened(chromium, f"file://{site}/{page}")
    assert tab.complaints() == []
    assert all(each.startswith(("file:", "data:")) for each in tab.requests())
    tab.close()


def test_versions_are_chosen_where_there_are_several(chromium: Browser, site: Path, served: str) -> None:
    tab = opened(chromium, f"{served}/operate/health.html")
    assert tab.ask("document.querySelector('.versions').hidden")
    tab.close()
    versions = site / "versions.json"
    before = versions.read_text()
    versions.write_text(json.dumps(["9.9.9", *json.loads(before)]))
    try:
        tab = opened(chromium, f"{served}/operate/health.html")
        tab.wait("!document.querySelector('.versions').hidden")
        assert tab.ask("[...document.querySelectorAll('#versions option')].map(each => each.value)")[0] == "9.9.9"
        assert tab.ask("document.querySelector('#versions').value") == json.loads(before)[0]
        tab.close()
    finally:
        versions.write_text(before)
