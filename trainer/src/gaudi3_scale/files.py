"""Writing so that a reader, or a restart after a kill, sees the old content or the new one, never a part."""

from __future__ import annotations

import os
from pathlib import Path


def write_atomically(path: Path, text: str, durable: bool = True) -> None:
    """Replace a file's content; durable also waits until it would survive a power cut."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("w", encoding="utf-8") as file:
            file.write(text)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    if durable:
        sync_directory(path.parent)


def sync_directory(path: Path) -> None:
    """Make renames and new names within a directory durable."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
