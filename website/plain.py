"""Each page as Markdown beside its HTML, and for programs that read the site the list of all of them."""

from __future__ import annotations

import re
from pathlib import Path

from website import collection, html_text, markdown, repository
from website.staging import FILE, Source

FRONT = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)
TOCTREE = re.compile(r"\n```\{toctree\}\n.*?\n```\n", re.DOTALL)


def text_of(path: Path) -> str:
    """A page of the staged source, without what only Sphinx reads."""
    text = TOCTREE.sub("", FRONT.sub("", path.read_text(encoding="utf-8")))
    text = markdown.with_links(text, lambda link: link.removeprefix(FILE))
    return text.strip() + "\n"


def write(folder: Path, output: Path, source: Source) -> None:
    """Write the pages, `llms.txt` and `llms-full.txt` into the built site."""
    texts = {str(path.relative_to(folder).with_suffix("")): text_of(path) for path in sorted(folder.rglob("*.md"))}
    for path in sorted(folder.rglob("*.rst")):
        name = str(path.relative_to(folder).with_suffix(""))
        texts[name] = html_text.markdown((output / f"{name}.html").read_text(encoding="utf-8"))
    for name, text in texts.items():
        place = output / f"{name}.md"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")
    order = in_order(source, texts)
    lines = [f"# gaudi3.scale {repository.galaxy()['version']}", "", f"> {repository.galaxy()['description']}", ""]
    shelf = ""
    for name in order:
        head = name.split("/")[0] if "/" in name else "index"
        if head != shelf:
            shelf = head
            lines += ["", f"## {shelf.capitalize() if shelf != 'index' else 'Home'}", ""]
        about = markdown.plain(markdown.first_paragraph(texts[name]))
        lines.append(f"- [{markdown.title(texts[name])}]({name}.md)" + (f": {about}" if about else ""))
    lines += ["", "Every page of this site has its Markdown beside it: page.md for page.html.", ""]
    (output / "llms.txt").write_text("\n".join(lines), encoding="utf-8")
    whole = [f"<!-- {name}.md -->\n\n{texts[name]}" for name in order if not name.startswith(collection.FOLDER)]
    (output / "llms-full.txt").write_text("\n".join(whole), encoding="utf-8")


def in_order(source: Source, names: dict[str, str]) -> list[str]:
    """The pages in the sidebar's order, and then the others."""
    trees = {page.name: source.children(page.source) for page in source.pages.values() if page.name.endswith("index")}
    found: dict[str, None] = {}

    def visit(name: str) -> None:
        if name in names and name not in found:
            found[name] = None
            for _title, below in trees.get(name, []):
                visit(below)

    visit("index")
    return [*found, *(name for name in sorted(names) if name not in found)]
