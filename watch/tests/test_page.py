"""The page in a browser: panels draw, faults show, nothing of a text is executed, and everybody can use it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import browser
import fleet
import pytest
from browser import DRAWN, Browser, Tab
from conftest import BEGAN, metric, status, write_lines

from gaudi3_watch import view
from gaudi3_watch.cluster import ClusterSource
from gaudi3_watch.downsample import Points
from gaudi3_watch.folder import FolderSource
from gaudi3_watch.prometheus import Prometheus, Sample, Trace

ROOT = Path(__file__).resolve().parents[2]
AXE = ROOT / ".cache/axe/node_modules/axe-core/axe.min.js"
SECTIONS = ["training", "goodput", "cards", "nodes", "cost", "fleet"]
HOSTILE = "<img src=/x onerror=hacked=1><script>hacked=1</script>"


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    if browser.program() is None:
        pytest.skip(browser.MISSING)
    with browser.started() as found:
        yield found


@pytest.fixture
def show(chromium: Browser) -> Iterator[Callable[..., Tab]]:
    """Opens an address, and at the end of the test asks whether anything was wrong with the page."""
    tabs: list[Tab] = []

    def opened(address: str, **given: Any) -> Tab:
        tabs.append(chromium.tab(address, **given))
        tabs[-1].wait("document.querySelectorAll('section').length === 6")
        return tabs[-1]

    yield opened
    for tab in tabs:
        assert tab.complaints() == []
        assert tab.ask("typeof hacked") == "undefined"
        tab.close()


class Made(Prometheus):
    """Answers as a Prometheus that has the end of the made cluster; of queries only the first metric counts."""

    def __init__(self) -> None:
        super().__init__("http://made")
        self._now: dict[str, list[Sample]] = {}
        for name, given, value in fleet.samples(1):
            labels = dict(each.split("=", 1) for each in given.strip("{}").replace('"', "").split(","))
            self._now.setdefault(name, []).append(Sample(labels, value))

    def query(self, query: str) -> list[Sample]:
        chosen = [name for name in self._now if name in query]
        found = self._now[max(chosen, key=len)] if chosen else []
        if "== 0" in query:
            found = [Sample(each.labels, 1) for each in found if not each.value]
        return found

    def query_range(self, query: str, begin: float, end: float, step: float) -> list[Trace]:
        times = [begin + number * (end - begin) / 50 for number in range(51)]
        return [
            Trace(each.labels, Points(times, [each.value] * 51, [each.value] * 51, [each.value] * 51))
            for each in self.query(query)[:8]
        ]

    def alerts(self) -> list[dict[str, Any]]:
        return [
            {
                "state": "firing",
                "labels": {"alertname": "NodeDown", "severity": "critical", "instance": HOSTILE},
                "annotations": {"summary": HOSTILE},
            }
        ]


def faults_for_people(tab: Tab) -> list[str]:
    """What a checker of accessibility calls serious."""
    if not AXE.exists():
        pytest.skip("axe-core is missing: run make prepare, which needs npm")
    tab.ask(AXE.read_text() + ";1")
    found = tab.ask("axe.run(document, {resultTypes: ['violations']}).then(found => found.violations)")
    return [
        f"{each['id']}: {each['nodes'][0]['html'][:200]}" for each in found if each["impact"] in ("serious", "critical")
    ]


def test_a_jobs_panels_draw_and_everybody_can_read_them(
    job: Path, serve: Callable[..., str], show: Callable[..., Tab]
) -> None:
    address = serve(FolderSource(job))
    tab = show(address)
    assert tab.wait(f"{DRAWN}.length === 5 && {DRAWN}") == ["loss", "speed", "step", "gradient", "parts"]
    assert tab.ask("[...document.querySelectorAll('section')].map(each => each.dataset.section)") == SECTIONS
    assert tab.ask("document.querySelectorAll('section .empty').length") >= 3
    assert "training loss: 3.5 nats per token at the end" in tab.ask(
        "document.querySelector('[data-chart=loss] .plot').getAttribute('aria-label')"
    )
    assert faults_for_people(tab) == []
    tab.ask("document.getElementById('theme').click()")
    assert tab.ask("document.documentElement.dataset.theme") == "dark"
    assert faults_for_people(tab) == []
    assert all(each.startswith(address) for each in tab.requests())


def test_a_phone_shows_it_in_its_width_and_in_the_systems_colours(
    job: Path, serve: Callable[..., str], show: Callable[..., Tab]
) -> None:
    tab = show(serve(FolderSource(job)), width=360, height=740, dark=True)
    tab.wait(f"{DRAWN}.length === 5")
    assert tab.ask("document.documentElement.dataset.theme") == "dark"
    assert tab.ask("document.documentElement.scrollWidth") == 360


WORDS_IN_LINES = """[...document.querySelectorAll('tbody th, .mark')].filter(
  cell => !/[ /_-]/.test(cell.textContent)).map(cell => {
  const range = document.createRange();
  range.selectNodeContents(cell);
  return [cell.textContent, new Set([...range.getClientRects()].map(each => each.top)).size];
})"""


def test_a_phone_breaks_no_word_of_a_table(
    tmp_path: Path, job: Path, serve: Callable[..., str], show: Callable[..., Tab]
) -> None:
    (tmp_path / "another").mkdir()
    (tmp_path / "another/status.json").write_text(json.dumps(status(state="interrupted", interruption="SIGTERM")))
    tab = show(f"{serve(FolderSource(tmp_path))}/#job=job", width=390, height=800)
    lines = dict(tab.ask(WORDS_IN_LINES))
    assert {"another", "interrupted", "processes", "precision", "checkpoints"} <= lines.keys()
    assert {word for word, count in lines.items() if count > 1} == set()
    assert tab.ask("document.documentElement.scrollWidth") == 390


def test_a_chart_is_read_by_keys_and_as_a_table(job: Path, serve: Callable[..., str], show: Callable[..., Tab]) -> None:
    tab = show(serve(FolderSource(job)))
    tab.wait(f"{DRAWN}.length === 5")
    tab.ask("document.querySelector('[data-chart=loss] .plot').focus()")
    tab.press("ArrowLeft")
    tab.press("ArrowLeft")
    tab.wait("document.querySelector('[data-chart=loss] .legend').textContent.includes('training loss 3.7')")
    tab.ask("document.querySelector('[data-chart=loss] summary').click()")
    tab.wait("document.querySelectorAll('[data-chart=loss] tbody tr').length >= 10")
    assert tab.ask("document.querySelector('[data-chart=loss] tbody td').textContent") == "3.5"


def test_a_link_to_a_span_survives_a_reload(job: Path, serve: Callable[..., str], show: Callable[..., Tab]) -> None:
    tab = show(serve(FolderSource(job)) + f"/#t={BEGAN + 200:.0f}..{BEGAN + 600:.0f}&section=cost")
    tab.wait(f"{DRAWN}.length === 5")
    tab.wait("document.activeElement.id === 'title-cost'")
    tab.ask("document.getElementById('in').click()")
    tab.wait("location.hash.includes('t=2023-11-14T22:18:20Z..2023-11-14T22:21:40Z')")
    tab.wait("document.getElementById('span').textContent.includes(':18:20 to 14 Nov')")
    tab.call("Page.reload")
    tab.wait(
        "document.getElementById('span') && document.getElementById('span').textContent.includes(':18:20 to 14 Nov')"
    )
    tab.ask("[...document.querySelectorAll('#spans button')].find(each => each.textContent === '15 min').click()")
    tab.wait("location.hash.startsWith('#t=-15min..now')")
    tab.wait("document.querySelector('#spans [aria-pressed=true]').textContent === '15 min'")


def test_what_is_new_is_shown_without_a_reload_and_an_end_is_said(
    job: Path, serve: Callable[..., str], show: Callable[..., Tab]
) -> None:
    tab = show(serve(FolderSource(job)))
    tab.wait("document.getElementById('live').textContent === 'Live'")
    with (job / "metrics.jsonl").open("a") as file:
        file.write(json.dumps(metric(110, loss=1.25)) + "\n")
    tab.wait("document.querySelector('[data-chart=loss] .legend').textContent.includes('1.25')")
    (job / "status.json").write_text(json.dumps(status(state="finished", step=400)))
    tab.wait("document.getElementById('live').textContent === 'Ended'")
    assert tab.ask("document.getElementById('state').textContent") == "finished"


def test_nothing_of_a_jobs_texts_is_executed(
    tmp_path: Path, serve: Callable[..., str], show: Callable[..., Tab]
) -> None:
    folders = [tmp_path / "jobs" / name for name in (HOSTILE.replace("/", "_"), "b")]
    for folder in folders:
        folder.mkdir(parents=True)
        (folder / "status.json").write_text(
            json.dumps(
                status(state="failed", error=HOSTILE, precision=HOSTILE, hardware_name=HOSTILE, checkpoint=HOSTILE)
            )
        )
        write_lines(folder / "metrics.jsonl", [metric(1), HOSTILE, metric(2)])
    (tmp_path / "health").mkdir()
    (tmp_path / "health" / "a<b>.report.json").write_text(
        json.dumps({"verdicts": [HOSTILE], "drains": True, "remedy": HOSTILE})
    )
    tab = show(serve(FolderSource(tmp_path / "jobs", tmp_path / "health")) + "/#node=" + "%3Cb%3E")
    tab.wait("document.querySelectorAll('#problems li code').length === 1")
    assert tab.ask("document.querySelector('#problems code').textContent") == HOSTILE
    assert HOSTILE in tab.ask("document.getElementById('said').textContent")
    assert tab.ask("document.querySelectorAll('main img, main script, main b b, option img').length") == 0
    assert tab.ask("document.getElementById('job').options.length") == 2


def test_a_clusters_faults_show_and_a_node_is_a_link(serve: Callable[..., str], show: Callable[..., Tab]) -> None:
    tab = show(serve(ClusterSource(Made(), clock=lambda: fleet.NOW)))
    tab.wait(f"{DRAWN}.length >= 9")
    assert tab.ask(
        "[...document.querySelectorAll('[data-section=cards] .mark.bad')].map(each => each.textContent)"
    ) == ["2", "1 of 1"]
    assert "NodeDown" in tab.ask("document.querySelector('[data-section=fleet] .mark.bad').textContent")
    assert tab.ask("document.getElementById('simulated').hidden") is False
    assert faults_for_people(tab) == []
    tab.ask(
        "[...document.querySelectorAll('[data-section=cards] a')].find(each => each.textContent === 'gaudi-2').click()"
    )
    tab.wait("location.hash === '#node=gaudi-2&section=cards'")
    tab.wait("document.getElementById('node').value === 'gaudi-2'")


def test_nothing_of_a_hosts_name_is_executed(serve: Callable[..., str], show: Callable[..., Tab]) -> None:
    """It stands in the list of nodes, in tables, and in the address of the page, from where it is shown again."""
    made = Made()
    for samples in made._now.values():
        samples += [Sample({**each.labels, "instance": HOSTILE}, each.value) for each in samples[:1]]
    tab = show(serve(ClusterSource(made, clock=lambda: fleet.NOW)))
    tab.wait(f"{DRAWN}.length >= 9")
    choice = f"[...document.getElementById('node').options].find(each => each.textContent === {json.dumps(HOSTILE)})"
    tab.ask(f"{choice}.selected = true; document.getElementById('node').dispatchEvent(new Event('change'))")
    tab.wait("location.hash.includes('node=%3Cimg') && document.getElementById('node').value.startsWith('<img')")
    tab.wait(f"document.querySelector('main').textContent.includes({json.dumps(HOSTILE)})")
    assert tab.ask("document.querySelectorAll('main img, main script, option img').length") == 0


def test_a_server_that_goes_away_is_said_to(job: Path, serve: Callable[..., str], show: Callable[..., Tab]) -> None:
    class Broken(FolderSource):
        broken = False

        def page(self, asked: view.Asked) -> view.View:
            if self.broken:
                raise RuntimeError
            return super().page(asked)

    source = Broken(job)
    tab = show(serve(source))
    tab.wait(f"{DRAWN}.length === 5")
    tab.ask("window.fetch = () => Promise.reject(new TypeError('gone')); document.getElementById('in').click()")
    tab.wait("document.getElementById('live').textContent.includes('does not answer')")
    assert tab.ask(f"{DRAWN}.length") == 5
