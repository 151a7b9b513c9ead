"""Releases that are known to do harm: one table, in no list of pins and in no range."""

from __future__ import annotations

import re
import subprocess
import tomllib
from dataclasses import asdict
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from ansible_collections.gaudi3.scale.plugins.module_utils._known_bad import KNOWN_BAD, known_bad
from gaudi3_doctor import known_bad as trainers

ROOT = Path(__file__).resolve().parents[3]


def tracked(*patterns: str) -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "-z", *patterns], cwd=ROOT, capture_output=True, text=True, check=True)
    return [ROOT / name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()]


def requirements(text: str) -> list[Requirement]:
    """What a text asks for of the packages in the table, in whatever form: a list, a range, a command, a message."""
    names = "|".join(re.escape(bad.package).replace("\\-", "[-_.]") for bad in KNOWN_BAD)
    found = []
    for match in re.finditer(rf"(?<![\w./-])(?:{names})\s*(?:[=<>!~]=?=?\s*[\w.*+!]+\s*,?\s*)+", text, re.IGNORECASE):
        try:
            found.append(Requirement(match[0].strip().rstrip(",")))
        except InvalidRequirement:
            continue
    return found


def test_collection_and_trainer_have_one_table() -> None:
    assert [asdict(bad) for bad in KNOWN_BAD] == [asdict(bad) for bad in trainers.KNOWN_BAD]
    for bad in KNOWN_BAD:
        assert canonicalize_name(bad.package) == bad.package
        assert re.fullmatch(r"\d{4}-\d\d-\d\d", bad.date) and bad.source and not bad.reason.endswith(".")
        instead = Requirement(bad.instead)
        assert instead.name == bad.package and not [each for each in bad.versions if each in instead.specifier]


def test_another_spelling_of_a_version_is_known_to_both() -> None:
    for bad in KNOWN_BAD:
        for version in bad.versions:
            for same in (f"{version}.0", f"v{version}", f"0!{version}", f"{version}+cpu", f"{version}.0.0"):
                assert known_bad({bad.package: same}) == [bad] and trainers.complaint({bad.package: same}), same
            for other in (f"{version}.post1", f"{version}rc1", f"1!{version}", f"{version}0"):
                assert not known_bad({bad.package: other}) and not trainers.complaint({bad.package: other}), other


def test_no_list_of_pins_and_no_range_admits_them() -> None:
    lists = tracked("*.txt", "*.in", "*.toml", "Makefile", "*.md", "*.yml", "*.cfg")
    seen: dict[str, list[str]] = {}
    for path in lists:
        for wanted in requirements(path.read_text(encoding="utf-8", errors="replace")):
            (bad,) = [each for each in KNOWN_BAD if each.package == canonicalize_name(wanted.name)]
            seen.setdefault(path.relative_to(ROOT).as_posix(), []).append(str(wanted))
            admitted = [version for version in bad.versions if version in wanted.specifier]
            assert not admitted, f"{path}: {wanted} admits {', '.join(admitted)}"
    assert {"requirements/trainer.in", "trainer/pyproject.toml", "roles/pytorch/files/requirements.txt"} <= set(seen)
    project = tomllib.loads((ROOT / "trainer/pyproject.toml").read_text())["project"]
    (wanted,) = [each for each in map(Requirement, project["dependencies"]) if each.name == "lightning"]
    assert "2.6.1" in wanted.specifier and "2.6.6" in wanted.specifier
