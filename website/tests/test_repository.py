"""What the site knows of the repository."""

from __future__ import annotations

from website import repository


def test_files_and_addresses() -> None:
    assert "docs/README.md" in repository.tracked()
    assert not [name for name in repository.tracked() if name.startswith((".cache/", "build/"))]
    assert repository.address("docs").endswith("/tree/main/docs")
    assert all(path.is_dir() for path in repository.PACKAGES)
