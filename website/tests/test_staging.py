"""docs/ becomes the site's source: names, links, the sidebar, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from website import repository, staging

FILES = {
    "docs/README.md": "# Home\n\n- [Use](use/README.md): jobs\n- [Reference](reference/README.md): names\n",
    "docs/use/README.md": "# Use\n\n- [See it](watch.md): a page\n- [cost.md](cost.md): money\n"
    "- [Roles](../../roles/a/README.md): a\n",
    "docs/use/cost.md": "# Cost\n\n[script](../../plugins/x.py) [fence](watch.md#look) "
    "[folder](../../roles/a) [home](../README.md)\n",
    "docs/use/watch.md": "# Watch\n\n![picture](watch.png) [proof](../../proofs/a.md) [out](https://example.org/a.md)\n",
    "docs/use/watch.png": "",
    "docs/use/unlisted.md": "# Unlisted\n",
    "docs/reference/README.md": "# Reference\n\nNames.\n",
    "roles/a/README.md": "# a\n\n[back](../../docs/use/cost.md) [other](../b/README.md)\n",
    "roles/b/README.md": "# b\n",
    "plugins/x.py": "",
    "proofs/a.md": "# Proof\n",
}


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(repository, "ROOT", tmp_path)
    monkeypatch.setattr(repository, "galaxy", lambda: {"repository": "https://example.com/r"})
    files = frozenset(FILES)
    monkeypatch.setattr(repository, "tracked", lambda: files)
    return tmp_path


def test_pages_are_docs_and_the_markdown_that_they_lead_to(checkout: Path) -> None:
    names = {page.name for page in staging.Source({}).pages.values()}
    assert names == {
        "index", "use/index", "use/cost", "use/watch", "use/unlisted", "reference/index", "project/roles/a/index",
        "project/roles/b/index",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("source", "link", "expected"),
    [
        ("docs/use/cost.md", "watch.md#look", "watch.md#look"),
        ("docs/use/cost.md", "../README.md", "../index.md"),
        ("docs/use/cost.md", "../../roles/a", "../project/roles/a/index.md"),
        ("docs/use/cost.md", "../../plugins/x.py", "https://example.com/r/tree/main/plugins/x.py"),
        ("docs/use/cost.md", "../../proofs/a.md#b", "https://example.com/r/tree/main/proofs/a.md#b"),
        ("docs/use/cost.md", "https://example.com/r/tree/main/roles/b/README.md", "../project/roles/b/index.md"),
        ("docs/use/cost.md", "../reference/all.md#x", "../reference/all.md#x"),
        ("docs/use/cost.md", "../reference/a.json", "site:../reference/a.json"),
        ("docs/use/cost.md", "https://example.org/x", "https://example.org/x"),
        ("docs/use/cost.md", "cost.md#here", "#here"),
        ("docs/use/watch.md", "watch.png", "watch.png"),
        ("roles/a/README.md", "../../docs/use/cost.md", "../../../use/cost.md"),
    ],
)
def test_links_are_those_of_the_site(checkout: Path, source: str, link: str, expected: str) -> None:
    generated: dict[str, str | bytes] = {"reference/all.md": "# All\n", "reference/a.json": "{}"}
    assert staging.Source(generated).link(source, link) == expected


def test_the_sidebar_is_the_lists_order_and_then_what_they_forgot(checkout: Path) -> None:
    trees = staging.Source({}).trees([staging.Row("reference/all.md", "All", "all")])
    assert trees["docs/README.md"] == [("Use", "use/index"), ("Reference", "reference/index")]
    assert trees["docs/use/README.md"] == [
        ("See it", "use/watch"), ("", "use/cost"), ("Roles", "project/roles/a/index"), ("", "use/unlisted"),
    ]  # fmt: skip
    assert trees["docs/reference/README.md"] == [("All", "reference/all")]


def test_what_is_staged(checkout: Path) -> None:
    folder = checkout / "staged"
    generated: dict[str, str | bytes] = {
        "reference/all.md": "# All\n\n[cost](../use/cost.md)\n",
        "schemas/a.json": b"{}",
    }
    staging.stage(folder, generated, [("reference/all.md", "All", "every name")])
    index = (folder / "reference/index.md").read_text()
    assert "- [All](all.md): every name\n" in index and "All </reference/all>" in index
    assert (folder / "project/roles/b/index.md").read_text().startswith("---\norphan: true\n---\n# b")
    assert (folder / "use/watch.png").exists() and (checkout / "staged-files/schemas/a.json").read_bytes() == b"{}"
    assert "orphan" not in (folder / "reference/all.md").read_text()


def test_every_link_that_leads_nowhere_is_reported(checkout: Path) -> None:
    (checkout / "docs/use/cost.md").write_text("# Cost\n\n[a](none.md) [b](../nowhere/)\n")
    with pytest.raises(staging.StagingError, match=r"the link \.\./nowhere/ leads (.|\n)*the link none\.md leads"):
        staging.Source({})


def test_two_sources_for_one_page_are_refused(checkout: Path) -> None:
    with pytest.raises(staging.StagingError, match="Two sources for one page: use/cost"):
        staging.Source({"use/cost.md": "# Cost\n"})
