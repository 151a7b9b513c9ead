"""Each picture of the documents has its maker, is shown, and is made from what its page shows."""

from __future__ import annotations

import io
import re
import subprocess
from base64 import b64encode
from pathlib import Path

import pytest
from PIL import Image

from tests.walks import pictures
from tests.walks.markdown import ROOT, blocks, logical_lines, pages

SUFFIXES = (".png", ".svg", ".gif", ".jpg", ".webp")


def tracked(folder: str) -> set[str]:
    """The pictures below a folder that git has."""
    listed = subprocess.run(["git", "ls-files", folder], cwd=ROOT, capture_output=True, text=True, check=True)
    return {name for name in listed.stdout.splitlines() if name.endswith(SUFFIXES)}


def test_each_picture_has_its_maker() -> None:
    assert tracked("docs") == set(pictures.PICTURES)


@pytest.mark.parametrize("name", pictures.PICTURES)
def test_a_picture_is_shown(name: str) -> None:
    shown = [
        (ROOT / page).parent.joinpath(link).resolve()
        for page, text in pages().items()
        for link in re.findall(r"!\[[^\]]+\]\(([^)\s]+)\)", text)
    ]
    assert (ROOT / name).resolve() in shown


@pytest.mark.parametrize("name", pictures.PICTURES)
def test_the_command_that_makes_a_picture_is_there(name: str) -> None:
    command = pictures.PICTURES[name].command
    if command.startswith("make "):
        assert f"\n{command.removeprefix('make ')}:" in (ROOT / "Makefile").read_text()
    elif command.startswith("python -m "):
        assert (ROOT / command.removeprefix("python -m ").replace(".", "/")).with_suffix(".py").is_file()


def test_the_plan_is_that_of_its_page() -> None:
    typed = [
        line
        for block in blocks((ROOT / "docs/use/plan.md").read_text())
        for line in logical_lines(block.code)
        if "gaudi3-train plan" in line
    ]
    wanted = pictures.PLAN.partition(" --html")[0].split()
    assert any(set(wanted) <= set(line.split()) for line in typed)


def test_a_picture_is_taken_out_of_a_report_and_stored_small(tmp_path: Path) -> None:
    content = io.BytesIO()
    Image.effect_noise((40, 30), 90).convert("RGB").save(content, "png")
    page = tmp_path / "page"
    encoded = b64encode(content.getvalue()).decode()
    shown = {"Other": "eA==", "A one": encoded}
    page.write_text("".join(f'<img alt="{text}" src="data:image/png;base64,{it}">' for text, it in shown.items()))
    pictures.in_report(f"cp {page} REPORT", "A ")(tmp_path / "one.png")
    with Image.open(tmp_path / "one.png") as made:
        assert made.size == (40, 30) and made.mode == "P"


def test_what_is_not_made_here_is_refused_with_its_command() -> None:
    with pytest.raises(SystemExit, match="make screenshots"):
        pictures.main(["docs/operate/prometheus-alerts.png"])
