"""The commit of a checkout, read without git, equals what git says."""

from __future__ import annotations

import subprocess
from pathlib import Path

from gaudi3_scale.git_commit import commit_of


def git(folder: Path, *arguments: str) -> str:
    """What git prints."""
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main"]
    return subprocess.run(
        ["git", *identity, *arguments], cwd=folder, check=True, capture_output=True, text=True
    ).stdout.strip()


def test_it_is_what_git_says(tmp_path: Path) -> None:
    checkout = tmp_path / "checkout"
    (checkout / "below").mkdir(parents=True)
    assert commit_of(checkout) is None
    git(checkout, "init")
    assert commit_of(checkout) is None  # there is no commit yet
    git(checkout, "commit", "--allow-empty", "-m", "one")
    head = git(checkout, "rev-parse", "HEAD")
    assert commit_of(checkout) == commit_of(checkout / "below") == head
    git(checkout, "worktree", "add", "-b", "other", str(tmp_path / "tree"))
    git(tmp_path / "tree", "commit", "--allow-empty", "-m", "two")
    assert commit_of(tmp_path / "tree") == git(tmp_path / "tree", "rev-parse", "HEAD") != head
    git(checkout, "pack-refs", "--all")
    assert commit_of(checkout) == head
    assert commit_of(tmp_path / "tree") == git(tmp_path / "tree", "rev-parse", "HEAD")
    git(checkout, "checkout", "--detach")
    assert commit_of(checkout) == head
    (checkout / ".git" / "HEAD").write_text("nonsense")
    assert commit_of(checkout) is None
