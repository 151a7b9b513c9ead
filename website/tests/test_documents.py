"""What a reader can rely on in each document: a title, a first paragraph that says what for, and where to go next."""

from __future__ import annotations

import re
import subprocess

import pytest

from website import markdown, repository

LONGEST = 45
"""Words of a first paragraph."""
# Of them came with new subjects: 1,000 with jobs on Kubernetes, 1,400 with programs for optimum-habana, 600 with the
# registry of models, 4,200 with serving (three pages, a proof, five runbooks, a role), 1,800 with Slurm (a page, a
# proof, a role), 1,100 with versions, 800 with preferences, 1,100 with the audit record, 900 with twins, 800 with
# switches, 500 with mirrors, 1,400 with teams, 1,700 with data on nodes (a page, a role), 1,700 with certificates,
# 1,200 with backups (a page, a role), 1,100 with plans of upgrades, 500 with the holes of a mirror, 600 with jobs that
# the role trainer submits to Slurm, 1,700 with a routed fabric's addresses and the proof of its linter, 900 with
# rehearsals of upgrades, 500 with alerts about backups, 1,300 with the record of documents that were executed, 500 with
# kernels that are held back, 600 with stores of backups and what else a mirror has, 1,000 with dnf5, EPEL, backups of
# two clusters, later releases of Slurm and how a site plans.
MOST_WORDS = 138_500
"""Of all Markdown files of the repository together."""
SHORT = {"README.md": 900, "trainer/README.md": 1500}
#: Pages that programs write, which end with their last row.
WRITTEN_BY_PROGRAMS = {
    "docs/operate/health-matrix.md",
    "docs/understand/contract.md",
    "docs/understand/hardware-status.md",
}


def documents() -> dict[str, str]:
    """The pages that people wrote, by file."""
    names = sorted(name for name in repository.tracked() if name.startswith("docs/") and name.endswith(".md"))
    return {name: (repository.ROOT / name).read_text(encoding="utf-8") for name in names}


def opening_fault(text: str) -> str:
    """What is wrong with how a page begins; empty for nothing."""
    if not text.startswith("# "):
        return "does not begin with a title"
    words = len(markdown.plain(markdown.first_paragraph(text)).split())
    if not words:
        return "has no paragraph below its title"
    return f"begins with a paragraph of {words} words" if words > LONGEST else ""


def ending_fault(text: str) -> str:
    """What is wrong with how a page ends; empty for nothing."""
    headings = list(re.finditer(r"^## (.+)$", re.sub(r"```.*?```", "", text, flags=re.DOTALL), re.MULTILINE))
    if not headings or headings[-1][1] != "Next":
        return "does not end with a section Next"
    count = len(markdown.links(text.rpartition("\n## Next\n")[2]))
    return "" if 1 <= count <= 3 else f"has {count} links in its section Next"


def test_each_page_begins_with_what_it_is_for() -> None:
    # A runbook's first section is what its alert means.
    pages = {name: text for name, text in documents().items() if "/runbooks/" not in name or "README" in name}
    found = {name: fault for name, text in pages.items() if (fault := opening_fault(text))}
    assert found == {}


def test_each_page_ends_with_where_to_go() -> None:
    written = {
        name: text
        for name, text in documents().items()
        if not name.endswith("/README.md") and "/runbooks/" not in name and name not in WRITTEN_BY_PROGRAMS
    }
    found = {name: fault for name, text in written.items() if (fault := ending_fault(text))}
    assert found == {}


def words(name: str) -> int:
    """The words of a file, as `wc -w` counts them."""
    return len((repository.ROOT / name).read_text(encoding="utf-8").split())


def test_all_documents_together_are_not_too_long() -> None:
    command = ["git", "ls-files", "*.md"]
    listed = subprocess.run(command, cwd=repository.ROOT, capture_output=True, text=True, check=True).stdout.split()
    assert sum(words(name) for name in listed) <= MOST_WORDS


@pytest.mark.parametrize("name", SHORT)
def test_a_first_page_is_short(name: str) -> None:
    assert words(name) < SHORT[name]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("# A\n\nFor you.\n", ""),
        ("A\n", "does not begin with a title"),
        ("# A\n\n```sh\nx\n```\n", "has no paragraph below its title"),
        ("# A\n\n" + "word " * 46, "begins with a paragraph of 46 words"),
    ],
)
def test_how_a_page_begins_is_checked(text: str, fault: str) -> None:
    assert opening_fault(text) == fault


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("# A\n\n## Next\n\n- [b](b.md)\n", ""),
        ("# A\n\n## Next\n\n- [b](b.md)\n\n## More\n", "does not end with a section Next"),
        ("# A\n\n## Next\n\nNothing.\n", "has 0 links in its section Next"),
        ("# A\n\nText.\n", "does not end with a section Next"),
    ],
)
def test_how_a_page_ends_is_checked(text: str, fault: str) -> None:
    assert ending_fault(text) == fault
