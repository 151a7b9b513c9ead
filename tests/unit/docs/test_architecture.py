"""docs/understand/architecture.md: the picture is its table's, and its rooms are those that are there."""

from __future__ import annotations

import re
import subprocess

import pytest

from tests.suite import architecture

from ..programs.test_imports import FLOORS
from .documents import ROOT

PAGE = architecture.PAGE.read_text()


def rows(heading: str) -> list[list[str]]:
    """The cells of the table in a section, without its two first lines."""
    section = PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")][2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_the_picture_is_drawn_from_the_table() -> None:
    assert architecture.PICTURE.read_text() == architecture.draw(PAGE), "run python -m tests.suite.architecture"


def test_every_word_of_the_table_is_in_the_picture() -> None:
    drawn = " ".join(re.findall(r">([^<]+)</text>", architecture.draw(PAGE)))
    for part in architecture.parts(PAGE):
        for text in (part.name, part.where, part.hands_on, *part.does.split()):
            assert text.replace("'", "&#x27;") in drawn
        assert (ROOT / part.where).exists()


def test_a_table_that_does_not_fit_is_refused() -> None:
    with pytest.raises(ValueError, match="takes 5 lines"):
        architecture.draw(PAGE.replace("Lists the nodes and has your choices", "Lists the nodes and more " * 5))
    with pytest.raises(ValueError, match="has no table"):
        architecture.draw("# Nothing")


def test_the_rooms_of_the_trainer_are_on_their_floors() -> None:
    listed = [(int(floor), room.strip("`")) for floor, room, _ in rows("Floors of the trainer")]
    assert listed == [(number, room) for number, rooms in enumerate(FLOORS) for room in rooms]


def test_the_families_are_those_of_module_utils() -> None:
    there = {path.stem for path in (ROOT / "plugins/module_utils").iterdir() if not path.name.startswith("__")}
    assert [family.strip("`") for family, _ in rows("Families of module_utils")] == sorted(there)


def test_every_folder_has_its_row() -> None:
    """All folders at the project's top, but those of one file and of what this page is part of."""
    said = {name for folders, _ in rows("Which room does what") for name in re.findall(r"`([\w/-]+)`", folders)}
    assert [name for name in said if not (ROOT / name).is_dir()] == []
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True).stdout.split()
    there = {name.split("/")[0] for name in listed if "/" in name and not name.startswith(".")}
    assert there - {name.split("/")[0] for name in said} == {"docs", "meta", "changelogs", "requirements"}
