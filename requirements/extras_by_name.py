"""Write what each extra of the trainer brings to a node, beside what the trainer itself requires, for role pytorch.

    python requirements/extras_by_name.py

Run it with the tests' environment, after a change of extras.txt or of the trainer's extras: what a package requires is
asked of those that are installed there. The versions and hashes are those of extras.txt.
"""

from __future__ import annotations

import sys
import tomllib
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from pick import BLOCK

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "roles/pytorch/files/extras"
NEVER = {"torch"}
"""Only the vendor brings it."""
NO_JOB = {"migrate"}
"""Extras that no job uses: a person rewrites a program before it is on a node."""


def pins(name: str) -> dict[str, str]:
    """Lines of a list by package, each with its hashes."""
    text = (ROOT / "requirements" / name).read_text(encoding="utf-8")
    lines = (" ".join(match[0].replace("\\\n", " ").split()) for match in BLOCK.finditer(text))
    return {str(canonicalize_name(line.partition("==")[0])): line for line in lines}


def required(requirement: Requirement) -> set[tuple[str, frozenset[str]]]:
    """What a package with some of its extras asks for on a node."""
    found: set[tuple[str, frozenset[str]]] = set()
    for text in requires(requirement.name) or []:
        each = Requirement(text)
        wanted = ({"extra": extra} for extra in ("", *requirement.extras))
        if each.marker is None or any(each.marker.evaluate({"sys_platform": "linux", **how}) for how in wanted):
            found.add((str(canonicalize_name(each.name)), frozenset(each.extras)))
    return found


def closure(requirements: list[str]) -> set[str]:
    """Names of all packages that come with these requirements."""
    waiting = {(str(canonicalize_name(each.name)), frozenset(each.extras)) for each in map(Requirement, requirements)}
    seen: set[tuple[str, frozenset[str]]] = set()
    while waiting - seen:
        name, extras = (waiting - seen).pop()
        seen.add((name, extras))
        if name not in NEVER:
            waiting |= required(Requirement(f"{name}[{','.join(sorted(extras))}]"))
    return {name for name, _extras in seen} - NEVER


def lists() -> dict[str, str]:
    """The text of each extra's list; exits where extras.txt lacks something."""
    project = tomllib.loads((ROOT / "trainer/pyproject.toml").read_text(encoding="utf-8"))["project"]
    # The tests install extras.txt beside the other two, so that it leaves out what these have.
    ours, theirs = pins("trainer.txt"), {**pins("controller.txt"), **pins("dev.txt"), **pins("extras.txt")}
    made = {}
    for extra, requirements in project["optional-dependencies"].items():
        if extra in NO_JOB:
            continue
        try:
            names = closure(requirements) - set(ours)
        except PackageNotFoundError as error:
            sys.exit(f"{error.name} of the extra {extra} is not installed: run it with the tests' environment.")
        if lacking := sorted(names - set(theirs)):
            sys.exit(f"extras.txt has no {', '.join(lacking)}, which the extra {extra} brings: add it.")
        made[extra] = "".join(f"{theirs[name]}\n" for name in sorted(names))
    return made


def main() -> None:
    """Write all lists, and remove those of extras that are no more."""
    made = lists()
    FOLDER.mkdir(exist_ok=True)
    for path in FOLDER.glob("*.txt"):
        if path.stem not in made:
            path.unlink()
    for extra, text in made.items():
        (FOLDER / f"{extra}.txt").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
