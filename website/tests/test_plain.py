"""A staged page as Markdown, without what only Sphinx reads."""

from __future__ import annotations

from pathlib import Path

from website import plain, staging


def test_a_page_without_what_is_sphinxs(tmp_path: Path) -> None:
    path = tmp_path / "x.md"
    path.write_text("---\norphan: true\n---\n# X\n\n[a](site:a.json) [b](b.md)\n" + staging.toctree([("A", "a")]))
    assert plain.text_of(path) == "# X\n\n[a](a.json) [b](b.md)\n"
