"""Which commit of git a folder is of, without git: nodes may not have it."""

from __future__ import annotations

import re
from pathlib import Path

HASH = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")


def commit_of(folder: Path) -> str | None:
    """The commit that is checked out where this folder lies; None where that is no checkout, or has none yet.

    Whether files have changed since is not looked at.
    """
    try:
        here = folder.resolve()
        top = next((each for each in (here, *here.parents) if (each / ".git").exists()), None)
        return _head(top / ".git") if top is not None else None
    except (OSError, ValueError, RuntimeError):
        return None


def _head(git: Path) -> str | None:
    if git.is_file():  # a worktree, or a submodule: "gitdir: PATH"
        git = (git.parent / git.read_text(encoding="utf-8").partition(":")[2].strip()).resolve()
    head = (git / "HEAD").read_text(encoding="utf-8").strip()
    if not head.startswith("ref: "):
        return _checked(head)
    name = head.removeprefix("ref: ")
    shared = git / "commondir"
    common = (git / shared.read_text(encoding="utf-8").strip()).resolve() if shared.is_file() else git
    for place in (git, common):
        if (place / name).is_file():
            return _checked((place / name).read_text(encoding="utf-8").strip())
    packed = (common / "packed-refs").read_text(encoding="utf-8")
    return next(
        (_checked(line[: -len(name)].strip()) for line in packed.splitlines() if line.endswith(f" {name}")), None
    )


def _checked(text: str) -> str | None:
    return text if HASH.fullmatch(text) else None
