"""The sentences that the search knows: which ones a page quotes, and that their places are there."""

from __future__ import annotations

import re
from pathlib import Path

from website import messages

PAGE = """# Messages

### The job: what it needs

| Message | What to do |
|---|---|
| "is short" ... "and this part is longer" | Do "this". |
| "one of two" or "two of two", "three" | Do that. |
| no message | "Nothing" |
"""


def test_a_page_s_messages_have_the_place_of_their_section() -> None:
    place = "the-job-what-it-needs"
    expected = ["and this part is longer", "one of two", "two of two", "three"]
    assert messages.quoted(PAGE) == [(message, place) for message in expected]


def test_each_place_is_in_the_site(site: Path) -> None:
    places = {(page, anchor) for _sentence, page, anchor in messages.messages()}
    texts = {page: (site / f"{page}.html").read_text(encoding="utf-8") for page, _anchor in places}
    missing = [f"{page}#{anchor}" for page, anchor in places if anchor and not re.search(f'id="{anchor}"', texts[page])]
    assert missing == []
