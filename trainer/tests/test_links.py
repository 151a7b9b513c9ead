"""Folders in which others may write: a link that stands where a file is written or read leads nowhere."""

from __future__ import annotations

import ast
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import ROOT, SOURCE

from gaudi3_scale import files
from gaudi3_scale.checkpoint.target import DirectoryTarget

FOLDER, NAME = "step-00000001-aa", "__0_0.distcp"


def draft(target: Path, outside: Path) -> None:
    """Where a draft could lie."""
    (target / FOLDER).mkdir()
    (target / FOLDER / f"{NAME}.part").symlink_to(outside / "file")


def step(target: Path, outside: Path) -> None:
    (target / FOLDER).symlink_to(outside)


def final(target: Path, outside: Path) -> None:
    (target / FOLDER).mkdir()
    (target / FOLDER / NAME).symlink_to(outside / "file")


def hard(target: Path, outside: Path) -> None:
    (target / FOLDER).mkdir()
    (target / FOLDER / NAME).hardlink_to(outside / "file")


@pytest.fixture
def places(tmp_path: Path) -> tuple[Path, Path, Path]:
    """A target, a folder of somebody else's, and a file to be stored."""
    target, outside, source = tmp_path / "target", tmp_path / "outside", tmp_path / "source"
    target.mkdir()
    outside.mkdir()
    (outside / "file").write_text("theirs")
    (outside / NAME).write_text("theirs")
    source.write_text("ours")
    return target, outside, source


@pytest.mark.parametrize("link", [draft, step, final, hard])
def test_nothing_outside_of_a_target_is_overwritten_or_deleted(
    link: Callable[[Path, Path], None], places: tuple[Path, Path, Path]
) -> None:
    target, outside, source = places
    link(target, outside)
    there = DirectoryTarget(target)
    if link is step:
        with pytest.raises(OSError, match=r"Not a directory|Too many levels"):
            there.put(source, f"{FOLDER}/{NAME}")
        with pytest.raises(OSError, match=r"Not a directory|Too many levels"):
            there.delete([f"{FOLDER}/{NAME}"])
        assert there.sizes(FOLDER) == there.sizes() == {}
    else:
        there.put(source, f"{FOLDER}/{NAME}")
        assert (target / FOLDER / NAME).read_text() == "ours" and not (target / FOLDER / NAME).is_symlink()
        assert there.sizes(FOLDER) == there.sizes() == {f"{FOLDER}/{NAME}": 4}
    there.clean(FOLDER)
    assert sorted(path.name for path in outside.iterdir()) == [NAME, "file"]
    assert {path.read_text() for path in outside.iterdir()} == {"theirs"}


def test_a_link_out_of_a_target_is_not_read(places: tuple[Path, Path, Path], tmp_path: Path) -> None:
    target, outside, _ = places
    final(target, outside)
    (target / "linked").symlink_to(outside)
    os.mkfifo(target / FOLDER / "pipe")
    there = DirectoryTarget(target)
    assert there.sizes() == {}
    for name in (f"{FOLDER}/{NAME}", "linked/file", f"{FOLDER}/pipe"):
        with pytest.raises(OSError, match=r"Not a directory|Too many levels|not a regular file"):
            there.get(name, tmp_path / "got")


def test_no_writer_of_the_package_follows_a_link(tmp_path: Path) -> None:
    outside, link = tmp_path / "outside", tmp_path / "link"
    outside.write_text("theirs")
    link.symlink_to(outside)
    for write in (
        lambda: files.append_lines(link, "x"),
        lambda: files.overwrite(link, "x"),
        lambda: files.lock_file(link),
    ):
        with pytest.raises(OSError, match="Too many levels"):
            write()
    files.write_atomically(link, "ours")
    assert link.read_text() == "ours" and not link.is_symlink()
    link.unlink()
    link.symlink_to(outside)
    with files.create(link) as file:
        file.write(b"ours")
    assert outside.read_text() == "theirs"


WRITES = {"write_text", "write_bytes", "copyfile", "copy2", "copytree"}
KNOWN = {
    "batch_warmup/jobs.py": "in a folder that the measurement has just made for itself",
    "checkpoint/storage.py": "opened as a new file only",
    "data/tokenizer.py": "in a folder of the preparation, which is made under a name of its own",
    "gaudi3_benchmark/measure.py": "a file of the kernel's",
    "hangs/stacks.py": "in the launcher's own folder in memory",
    "job/export.py": "in a folder that was made for the export",
    "job/register.py": "in the command's own temporary folder",
    "job/verify_resume.py": "in the command's own temporary folder",
    "launch/torchrun.py": "in the launcher's own temporary folder",
    "migrate_command.py": "where its user says, as a shell's > does",
    "profiler.py": "over a file that was made new, under a name that nobody can tell",
    "recipe_cache/recipe_store.py": "in a folder that was made new, under a name that nobody can tell",
    "tuning/fit_runner.py": "the log of a trial in its folder",
}
"""Files that write without `gaudi3_scale.files`, and why no stranger's link is in the way."""


def writes(node: ast.Call) -> bool:
    """Is this a call that writes a file by its path?"""
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    modes = [each.value for each in node.args[:2] if isinstance(each, ast.Constant)]
    modes += [each.value.value for each in node.keywords if each.arg == "mode" and isinstance(each.value, ast.Constant)]
    opens = name == "open" and any(str(mode)[:1] in ("w", "a", "x") for mode in modes)
    return opens or (isinstance(node.func, ast.Attribute) and name in WRITES)


def test_every_place_that_writes_a_file_by_its_path_is_known() -> None:
    found = set()
    package, benchmark = SOURCE / "gaudi3_scale", ROOT / "benchmark-tool" / "src"
    for path in sorted([*package.rglob("*.py"), *benchmark.rglob("*.py")]):
        name = path.relative_to(package if package in path.parents else benchmark).as_posix()
        if name == "files.py":
            continue
        if any(isinstance(node, ast.Call) and writes(node) for node in ast.walk(ast.parse(path.read_text()))):
            found.add(name)
    assert found - KNOWN.keys() == set(), "write through gaudi3_scale.files, or say why no link is in the way"
    assert KNOWN.keys() - found == set()
