"""The built site: its size, that it stands alone, its links, and its pages as Markdown."""

from __future__ import annotations

import re
import zipfile
from html import unescape
from pathlib import Path
from urllib.parse import unquote

from website import build, repository

LIMIT = 30_000_000


def pages(site: Path) -> dict[Path, str]:
    found = {path: path.read_text(encoding="utf-8") for path in site.rglob("*.html")}
    assert len(found) > 100
    return found


def test_it_is_small_enough_to_carry(site: Path) -> None:
    assert sum(path.stat().st_size for path in site.rglob("*") if path.is_file()) < LIMIT


def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    loaded = re.compile(r"<(?:script|img|iframe|source)[^>]* src=\"(?:https?:)?//|<link[^>]* href=\"(?:https?:)?//")
    assert [str(path) for path, text in pages(site).items() if loaded.search(text)] == []
    styles = "".join(path.read_text() for path in site.rglob("*.css"))
    assert not re.search(r"url\([\"']?(?:https?:)?//|@import", styles)


def test_links_between_pages_lead_somewhere(site: Path) -> None:
    texts = pages(site)
    names = {path: set(re.findall(r"\bid=\"([^\"]+)\"", text)) for path, text in texts.items()}
    wrong = set()
    for path, text in texts.items():
        for link in set(re.findall(r"<a [^>]*href=\"([^\"]*)\"", text)):
            target, _sign, anchor = unescape(link).partition("#")
            if re.match(r"[a-z]+:", target):
                continue
            there = (path.parent / unquote(target)).resolve() if target else path
            if not there.is_file() or (anchor and there in names and unquote(anchor) not in names[there]):
                wrong.add(f"{path.relative_to(site)}: {link}")
    assert wrong == set()


def test_links_have_titles_and_no_names_of_files(site: Path) -> None:
    """Within the pages themselves; a reader of the site knows no files."""
    wrong = {
        f"{path.relative_to(site)}: {text}"
        for path, page in pages(site).items()
        for text in re.findall(r"<a [^>]*href=\"[^\":]*\.html[^\"]*\"[^>]*>(?:<[^>]+>)*([\w./-]+\.md)<", page)
    }
    assert wrong == set()


def test_each_page_is_there_as_markdown(site: Path) -> None:
    without = [path for path in pages(site) if not path.with_suffix(".md").exists()]
    assert {path.name for path in without} <= {"search.html"}
    assert all(path.read_text().strip() for path in site.rglob("*.md"))


def test_programs_find_every_page(site: Path) -> None:
    index = (site / "llms.txt").read_text()
    assert re.match(r"# gaudi3\.scale \d", index)
    listed = set(re.findall(r"\]\(([^)]+)\)", index))
    assert listed == {str(path.relative_to(site)) for path in site.rglob("*.md")}
    assert "use/cost.md" in (site / "llms-full.txt").read_text()


def test_a_release_carries_all_of_it_in_one_file(site: Path, tmp_path: Path) -> None:
    first, second = tmp_path / "a.zip", tmp_path / "b.zip"
    build.pack(site, first)
    build.pack(site, second)
    assert first.read_bytes() == second.read_bytes()
    with zipfile.ZipFile(first) as archive:
        names = archive.namelist()
    assert len(names) == sum(path.is_file() for path in site.rglob("*"))
    assert f"{repository.galaxy()['version']}/index.html" in names


def test_the_build_needs_no_path_of_this_machine(site: Path) -> None:
    root = str(Path(__file__).resolve().parents[2])
    assert [str(path) for path, text in pages(site).items() if root in text] == []
