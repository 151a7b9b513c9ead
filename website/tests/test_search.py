"""What users type finds the page that answers it, by the site's own search in a browser."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from browser import Browser, Tab

from website import messages

QUERIES = yaml.safe_load((Path(__file__).parent / "queries.yml").read_text())
FIRST = 3
MOST_WRONG = 3


def asked(tab: Tab, query: str) -> list[str]:
    """The first pages that the search finds."""
    found: list[str] = tab.ask(f"Search._performSearch({json.dumps(query)}).reverse().map(each => each[0])")
    return found[:FIRST]


@pytest.fixture(scope="module")
def search(chromium: Browser, served: str) -> Tab:
    tab = chromium.tab(f"{served}/search.html")
    tab.wait("document.readyState === 'complete' && typeof Search === 'object' && Search.hasIndex()")
    return tab


def expected(rows: list[dict[str, Any]]) -> list[tuple[str, list[str]]]:
    """The queries, and the pages of which each has to find one."""
    return [(row["query"], row["pages"]) for row in rows]


def test_there_are_sixty_queries() -> None:
    queries = [row["query"] for rows in QUERIES.values() for row in rows]
    assert len(queries) == len(set(queries)) >= 60


def test_most_queries_find_their_page_among_the_first(search: Tab) -> None:
    rows = expected([row for rows in QUERIES.values() for row in rows])
    wrong = {query: (pages, found) for query, pages in rows if not set(found := asked(search, query)) & set(pages)}
    assert len(wrong) <= MOST_WRONG, wrong


def test_the_five_tasks_are_found_by_one_search(search: Tab) -> None:
    wrong = [query for query, pages in expected(QUERIES["tasks"]) if not set(asked(search, query)) & set(pages)]
    assert wrong == []


def test_messages_lead_to_the_place_that_explains_them(search: Tab) -> None:
    """Within the line of a terminal; a few have too few words of their own."""
    rows = messages.messages()
    lines = [f"fatal: [gaudi-1]: FAILED! => {sentence} gaudi-2" for sentence, _page, _anchor in rows]
    found = search.ask(
        f"{json.dumps(lines)}.map(each => Search._performSearch(each).slice(-3).map(row => row[0] + row[2]))"
    )
    places = [f"{page}#{anchor}".rstrip("#") for _sentence, page, anchor in rows]
    wrong = [line for line, place, pages in zip(lines, places, found, strict=True) if place not in pages]
    assert len(rows) > 100
    assert len(wrong) <= len(rows) / 10, wrong


@pytest.mark.parametrize(
    ("query", "page", "anchor"),
    [
        ("take a node out for repair", "operate/add-remove-nodes", ""),
        ("what would 70B cost on 64 cards", "use/cost", ""),
        ("remove everything", "operate/add-remove-nodes", "#remove-everything"),
    ],
)
def test_a_heading_that_shares_a_frequent_word_alone_is_not_the_answer(
    search: Tab, query: str, page: str, anchor: str
) -> None:
    found = search.ask(f"Search._performSearch({json.dumps(query)}).filter(each => each[0] === {json.dumps(page)})")
    assert [each[2] for each in found] == [anchor]


def linked(site: Path, page: str) -> set[str]:
    """The pages that a page's own text links to."""
    text = (site / f"{page}.html").read_text().partition("<article")[2].partition("</article>")[0]
    links = re.findall(r'href="([^":#?]+)\.html', text)
    return {str((site / page).parent.joinpath(link).resolve().relative_to(site.resolve())) for link in links}


def test_the_five_tasks_are_two_clicks_from_the_first_page(site: Path) -> None:
    first = linked(site, "index")
    reached = first | {page for each in first for page in linked(site, each)}
    wrong = [query for query, pages in expected(QUERIES["tasks"]) if not reached & set(pages)]
    assert wrong == []


def test_every_page_that_a_query_expects_is_there(site: Path) -> None:
    pages = {page for rows in QUERIES.values() for row in rows for page in row["pages"]}
    assert sorted(page for page in pages if not (site / f"{page}.html").exists()) == []
