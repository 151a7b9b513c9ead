"""The site's source: docs/ as pages, what they link to, and what is generated, in one folder for Sphinx.

GitHub shows the same files, so that they have relative links and nothing of Sphinx. Here a shelf's README becomes its
index and its list the sidebar; a link out of docs/ leads to a page of the site where that is Markdown, and otherwise to
the repository.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from website import markdown, repository

#: Evidence and lists for those who work on the project: links lead to the repository.
OUTSIDE = ("proofs/", "findings/", "requirements/", "README.md", "simulator/tests/", "terraform/modules/")
#: The scheme of links to files of the site that are no pages; `conf.py` has it too.
FILE = "site:"


class StagingError(Exception):
    """The source cannot be made: a link leads nowhere, or two pages want one name."""


@dataclass(frozen=True)
class Page:
    """A page of Markdown that a person wrote."""

    source: str
    """Its path in the repository."""
    text: str

    @property
    def name(self) -> str:
        return page_name(self.source)


@dataclass(frozen=True)
class Row:
    """A generated page in the list of the shelf that its path begins with."""

    path: str
    title: str
    what: str

    @property
    def shelf(self) -> str:
        return self.path.split("/")[0]

    @property
    def name(self) -> str:
        return str(Path(self.path).with_suffix(""))

    @property
    def is_page(self) -> bool:
        return self.path.endswith((".md", ".rst"))

    def bullet(self) -> str:
        """Its line in the list."""
        inner = self.path.removeprefix(f"{self.shelf}/")
        return f"- [{self.title}]({inner if self.is_page else FILE + inner}): {self.what}\n"


def page_name(source: str) -> str:
    """The page of a file of the repository, without an ending."""
    path = source.removeprefix("docs/") if source.startswith("docs/") else f"project/{source}"
    stem = path.removesuffix(".md")
    return stem.removesuffix("README") + "index" if posixpath.basename(stem) == "README" else stem


def resolved(source: str, link: str) -> tuple[str, str] | None:
    """The path in the repository that a link of a file means, and its anchor; None for another address."""
    path, _sign, anchor = link.partition("#")
    own = repository.address("") + "/"
    if path.startswith(own):
        path = path.removeprefix(own)
    elif ":" in path:
        return None
    elif not path:
        return source, anchor
    else:
        path = posixpath.normpath(posixpath.join(posixpath.dirname(source), path))
    return path.rstrip("/"), anchor


class Source:
    """All pages, and how they hang together."""

    def __init__(self, generated: Mapping[str, str | bytes], files: Iterable[str] | None = None) -> None:
        self.files = frozenset(repository.tracked() if files is None else files)
        self.generated = dict(generated)
        self.pages: dict[str, Page] = {}
        self.faults: set[str] = set()
        waiting = sorted(name for name in self.files if name.startswith("docs/") and name.endswith(".md"))
        while waiting:
            source = waiting.pop(0)
            if source not in self.pages:
                self.pages[source] = Page(source, (repository.ROOT / source).read_text(encoding="utf-8"))
                linked = (self.target(source, each)[0] for each in markdown.links(self.pages[source].text))
                waiting += [each for each in linked if each in self.files and self.is_page(each)]
        names = [page.name for page in self.pages.values()] + [name.removesuffix(".md") for name in self.generated]
        if twice := {name for name in names if names.count(name) > 1}:
            self.faults.add(f"Two sources for one page: {', '.join(sorted(twice))}.")
        if self.faults:
            raise StagingError("\n".join(sorted(self.faults)))

    def is_page(self, path: str) -> bool:
        """Whether a file of the repository is a page of the site."""
        return path.endswith(".md") and (path.startswith("docs/") or not path.startswith(OUTSIDE))

    def target(self, source: str, link: str) -> tuple[str, str]:
        """The file that a link of a page means and its anchor; a folder is its README; empty for another address."""
        found = resolved(source, link)
        if found is None:
            return "", ""
        path, anchor = found
        if f"{path}/README.md" in self.files:
            path = f"{path}/README.md"
        elif not (
            path in self.files
            or path.removeprefix("docs/") in self.generated
            or any(name.startswith(f"{path}/") for name in self.files)
        ):
            self.faults.add(f"{source}: the link {link} leads to no file of the repository.")
            return "", ""
        return path, anchor

    def link(self, source: str, link: str) -> str:
        """A link of a page as it is on the site."""
        path, anchor = self.target(source, link)
        here = posixpath.dirname(page_name(source))
        end = f"#{anchor}" if anchor else ""
        if path == source:
            return end
        if not path:
            return link
        if path == "README.md" and not anchor:
            path = "docs/README.md"
        if path.removeprefix("docs/") in self.generated:
            name = posixpath.relpath(path.removeprefix("docs/"), here or ".")
            return name + end if name.endswith(".md") else FILE + name + end
        if path in self.files and self.is_page(path):
            return posixpath.relpath(page_name(path), here or ".") + ".md" + end
        if path in self.files and Path(path).suffix in (".png", ".svg", ".gif", ".jpg") and path.startswith("docs/"):
            return posixpath.relpath(path.removeprefix("docs/"), here or ".")
        return repository.address(path) + end

    def relinked(self, source: str, text: str) -> str:
        """The text of a page with its links as they are on the site."""
        return markdown.with_links(text, lambda link: self.link(source, link))

    def titled(self, source: str, text: str, titles: Mapping[str, str]) -> str:
        """The text of a page, whose links to other pages have titles for names of files."""

        def title(link: str) -> str:
            path = self.target(source, link)[0]
            page = self.pages.get("docs/README.md" if path == "README.md" else path)
            return (titles.get(page.name) or markdown.title(page.text).partition(":")[0]) if page else ""

        return markdown.with_titles(text, title)

    def children(self, source: str, shelf: Iterable[Row] = ()) -> list[tuple[str, str]]:
        """The sidebar below an index: (title, page) in its list's order, and then its folder's other pages."""
        found: list[tuple[str, str]] = []
        for title, link in markdown.BULLET.findall(self.pages[source].text):
            path = self.target(source, link)[0]
            if path in self.pages and path != source:
                found.append(("" if title.endswith(".md") else markdown.plain(title), page_name(path)))
        folder = posixpath.dirname(source)
        found += [(row.title, row.name) for row in shelf if row.is_page and f"docs/{row.shelf}" == folder]
        beside = (each for each in self.pages if each.startswith(f"{folder}/") and source != "docs/README.md")
        listed = {name for _title, name in found}
        for each in sorted(beside):
            name, inner = page_name(each), each.removeprefix(f"{folder}/")
            if each != source and name not in listed and (inner.count("/") == inner.endswith("/README.md")):
                found.append(("", name))
        return found

    def trees(self, shelf: Iterable[Row] = ()) -> dict[str, list[tuple[str, str]]]:
        """The sidebar below each index of docs/; a page is where it comes first."""
        seen = {"index"}
        found: dict[str, list[tuple[str, str]]] = {}
        order = ["docs/README.md"]
        while order:
            source = order.pop(0)
            rows: dict[str, str] = {}
            for title, name in self.children(source, shelf):
                if name not in seen:
                    rows.setdefault(name, title)
            found[source] = [(title, name) for name, title in rows.items()]
            seen |= rows.keys()
            below = [each for each in self.pages if page_name(each) in rows]
            order += [each for each in below if each.startswith("docs/") and each.endswith("/README.md")]
        return found


def toctree(rows: Iterable[tuple[str, str]]) -> str:
    """A sidebar's part, which the page itself does not show."""
    entries = [f"{title} </{name}>" if title else f"/{name}" for title, name in rows]
    return "\n".join(["", "```{toctree}", ":hidden:", "", *entries, "```", ""]) if entries else ""


def stage(folder: Path, generated: Mapping[str, str | bytes], shelf: Iterable[tuple[str, str, str]] = ()) -> Source:
    """Write the source into an empty folder, and what is copied as it is into `folder`-files."""
    source = Source(generated)
    rows = [Row(*row) for row in shelf]
    trees = source.trees(rows)
    titles = {name: title for below in trees.values() for title, name in below}
    in_tree = {"index", *titles}
    files = folder.with_name(folder.name + "-files")
    for path, page in source.pages.items():
        text = source.titled(path, markdown.NOT_RUN.sub("", page.text), titles)
        text = source.relinked(path, text)
        listed = [row for row in rows if path == f"docs/{row.shelf}/README.md"]
        text += "\n" * bool(listed) + "".join(row.bullet() for row in listed)
        write(folder / f"{page.name}.md", text + toctree(trees.get(path, [])), page.name not in in_tree)
    for name, content in source.generated.items():
        place = (folder if name.endswith(".md") else files) / name
        if isinstance(content, bytes):
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content)
        elif name.endswith(".md"):
            text = source.relinked(f"docs/{name}", content)
            write(place, text, name.removesuffix(".md") not in in_tree)
        else:
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(content, encoding="utf-8")
    if source.faults:
        raise StagingError("\n".join(sorted(source.faults)))
    for name in source.files:
        if name.startswith("docs/") and Path(name).suffix in (".png", ".svg", ".gif", ".jpg"):
            place = folder / name.removeprefix("docs/")
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes((repository.ROOT / name).read_bytes())
    return source


def write(place: Path, text: str, orphan: bool) -> None:
    """A page with what Sphinx has to know of it."""
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(("---\norphan: true\n---\n" if orphan else "") + text, encoding="utf-8")
