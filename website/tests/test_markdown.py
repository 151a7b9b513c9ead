"""Links are found and changed outside of code, and a page's title and first paragraph are read."""

from __future__ import annotations

import pytest

from website import markdown

TEXT = """# A [title](x.md) with `code`

<!-- not run: needs a cloud -->
What it is for,
in two lines.

```sh
echo "[no](link.md)"
```

See [one](one.md#here), `[none](none.md)` and ![two](two.png).
<!-- [three](three.md) -->
"""


def test_links_are_those_outside_of_code_and_comments() -> None:
    assert markdown.links(TEXT) == ["x.md", "one.md#here", "two.png"]


def test_links_are_changed_and_nothing_else() -> None:
    changed = markdown.with_links(TEXT, str.upper)
    assert changed == TEXT.replace("x.md", "X.MD").replace("one.md#here", "ONE.MD#HERE").replace("two.png", "TWO.PNG")


def test_names_of_files_become_titles_outside_of_code() -> None:
    text = "See [one.md](one.md#here), [a/two.md](a/two.md), [three](three.md) and `[one.md](one.md)`."
    changed = markdown.with_titles(text, {"one.md#here": "One", "a/two.md": ""}.__getitem__)
    assert changed == text.replace("[one.md](one.md#here)", "[One](one.md#here)")


def test_a_pages_title_and_first_paragraph() -> None:
    assert markdown.title(TEXT) == "A title with code"
    assert markdown.first_paragraph(TEXT) == "What it is for, in two lines."


@pytest.mark.parametrize("first", ["- a list", "| a | table |", "```sh\nx\n```", "## Another", "    code", "1. first"])
def test_what_is_no_paragraph_is_none(first: str) -> None:
    assert markdown.first_paragraph(f"# Title\n\n{first}\n") == ""


def test_the_anchor_of_a_heading_is_made_of_its_text_alone() -> None:
    assert markdown.anchor("A `job_name` of [yours](a/b.md), *first*: 50 %") == "a-job_name-of-yours-first-50-"
