"""Pointers of Git LFS, which stand in a folder for the files that were not downloaded."""

from __future__ import annotations

_FIRST_LINE = b"version https://git-lfs.github.com/spec/"
HEAD_BYTES = len(_FIRST_LINE)


def is_pointer(head: bytes) -> bool:
    """Whether a file that begins with these bytes, at least `HEAD_BYTES` of it, is a pointer."""
    return head.startswith(_FIRST_LINE)
