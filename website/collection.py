"""The collection's pages: modules, roles and other plugins, by antsibull-docs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from website.repository import ROOT

NAME = "gaudi3.scale"
FOLDER = "reference/collection"
#: How the sentence begins of what only the collection's own playbooks use.
INTERNAL = "Internal to the collection"
#: A reference to a label, and the place of one.
REFERENCE = re.compile(r":ref:`[^`]*?<?([a-z][\w.\-]+)>?`")
PLACE = re.compile(r"^ *\.\. _([^:\n]+):$", re.MULTILINE)
ELSEWHERE = """---
orphan: true
---
# Terms of Ansible's own documentation

The pages of modules and roles refer to these parts of Ansible's documentation, which is at
<https://docs.ansible.com/projects/ansible/latest/>.
"""


def write(folder: Path) -> None:
    """Write the pages into a folder of the site's source. Nothing is asked of Galaxy or of the network."""
    folder.mkdir(parents=True)
    # antsibull-docs refuses a folder that others may write to.
    folder.chmod(0o755)
    programs = Path(sys.executable).parent
    # fmt: off
    command: list[str | Path] = [
        programs / "antsibull-docs", "collection", "--use-current", "--squash-hierarchy", "--fail-on-error",
        "--no-add-antsibull-docs-version", "--cleanup", "everything", "--dest-dir", folder, NAME,
    ]
    # fmt: on
    environment = os.environ | {
        "ANSIBLE_COLLECTIONS_PATH": str(ROOT / "collections"),
        "PATH": f"{programs}:{os.environ['PATH']}",
    }
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"antsibull-docs failed:\n{done.stdout}{done.stderr}")
    texts = {path.stem: mended(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.rst"))}
    shown = public(texts)
    texts["index"] = index(texts["index"], shown)
    for name, text in texts.items():
        if name in shown or name == "index":
            text = re.sub(r"^:orphan:\n", "", text, flags=re.MULTILINE)
        (folder / f"{name}.rst").write_text(text, encoding="utf-8")
    (folder / "ansible.md").write_text(ELSEWHERE + labels(folder), encoding="utf-8")


def labels(folder: Path) -> str:
    """A heading for each label of Ansible's own documentation, which is no part of this site, that a page refers to."""
    texts = [path.read_text(encoding="utf-8") for path in folder.glob("*.rst")]
    places = {label for text in texts for label in PLACE.findall(text)}
    wanted = {label for text in texts for label in REFERENCE.findall(text)} - places
    titles = {label: re.sub(r"^ansible_collections\.", "", label) for label in wanted}
    return "".join(f"\n({label})=\n\n## {titles[label].replace('_', ' ').capitalize()}\n" for label in sorted(wanted))


def mended(text: str) -> str:
    """A page without its own table of contents, which the theme has, and without the note on Galaxy."""
    text = re.sub(r"^\.\. contents::\n(?: +.*\n)*\n", "", text, flags=re.MULTILINE)
    title = re.search(r"^gaudi3\.scale\.(\S+) (\w+)( -- .+)?\n\++\n", text, re.MULTILINE)
    if title is None:
        return text
    # The long name and the sentence do not fit into a sidebar or the list of what was found.
    heading = f"{title[1]} ({title[2]})"
    sentence = f"\n{title[3].removeprefix(' -- ')}.\n" if title[3] else ""
    text = text.replace(title[0], f"{heading}\n{'+' * len(heading)}\n{sentence}", 1)
    return re.sub(r"^\.\. Collection note\n\n\.\. note::\n(?:(?: +.*)?\n)+", "", text, flags=re.MULTILINE)


def public(texts: Mapping[str, str]) -> list[str]:
    """The pages of the sidebar: what playbooks of one's own use. The first page lists the others, too."""
    kinds = ("role", "module", "inventory", "callback")
    names = [name for kind in kinds for name in sorted(texts) if name.endswith(f"_{kind}")]
    return [name for name in names if f"\n{INTERNAL}" not in texts[name]] + ["environment_variables"]


def index(text: str, shown: Iterable[str]) -> str:
    """The collection's first page, with its sidebar."""
    text = re.sub(r"^Gaudi3\.Scale\n=+$", "Modules and roles\n=================", text, count=1, flags=re.MULTILINE)
    text = re.sub(r"^\.\. toctree::\n(?: +.*\n)*(?:\n +.*\n)*", "", text, flags=re.MULTILINE)
    rows = "".join(f"   {name}\n" for name in shown)
    return f"{text}\n.. toctree::\n   :hidden:\n\n{rows}"
