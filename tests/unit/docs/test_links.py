"""Links of the documents lead to files and headings that exist."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
import yaml

from website.markdown import anchor

from .documents import ROOT, texts

#: Where a link to the project's own site lies in a checkout.
GALAXY = yaml.safe_load((ROOT / "galaxy.yml").read_text())
SITE = f"{GALAXY['repository']}/tree/main/"
LINK = re.compile(r"\]\(([^)\s]+)\)")


def anchors(markdown: str) -> set[str]:
    """Names of the headings."""
    return {anchor(heading) for heading in re.findall(r"^#+ (.+)$", markdown, re.M)}


def fault(folder: Path, link: str) -> str:
    """What is wrong with a link of a document in a folder; empty where it leads somewhere, or elsewhere."""
    path, _sign, place = link.partition("#")
    if path.startswith(SITE):
        target = ROOT / path.removeprefix(SITE)
    elif ":" in path:
        return ""
    else:
        target = folder / path
    if path and not target.exists():
        return f"{link} leads to no file"
    if place and target.suffix == ".md" and place not in anchors(target.read_text()):
        return f"{link} leads to no heading"
    return ""


def test_links_lead_to_files_and_headings_that_exist() -> None:
    given = [(name, link) for name, text in texts().items() for link in LINK.findall(text)]
    assert len(given) > 80, "the test does not find the links"
    wrong = [f"{name}: {said}" for name, link in given if (said := fault((ROOT / name).parent, link))]
    assert wrong == []


@pytest.mark.parametrize("link", ["docs/nowhere.md", "docs/clouds/terraform.md#nowhere", SITE + "nowhere/README.md"])
def test_a_link_that_leads_nowhere_is_found(link: str) -> None:
    assert fault(ROOT, link)


def test_the_projects_address_is_galaxy_ymls_alone() -> None:
    """The documents link below it; nothing that runs or is written on a machine has it."""
    address = GALAXY["repository"]
    assert all(GALAXY[key].startswith(address) for key in ("documentation", "homepage", "issues"))
    files = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    # An address of the same owner with another repository would be a second one.
    owner = address.rpartition("/")[0]
    for name in files:
        path = ROOT / name
        if (
            path.is_symlink()
            or not path.is_file()
            or path.suffix in (".md", ".py", ".whl", ".png")
            or name in ("galaxy.yml", "CITATION.cff")  # the latter is compared with it in test_readme.py
        ):
            continue
        assert owner not in path.read_text(encoding="utf-8", errors="replace"), name
    links = [link for text in texts().values() for link in LINK.findall(text) if link.startswith(owner)]
    assert links and all(link.startswith(SITE) for link in links)
