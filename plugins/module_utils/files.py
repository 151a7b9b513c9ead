# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Whole files, written atomically or not at all."""

from __future__ import annotations

import os
import stat
import tempfile
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ansible.module_utils.basic import AnsibleModule


def ensure_file(module: AnsibleModule, path: str, content: str | None, mode: int = 0o644) -> dict[str, Any] | None:
    """Make a file have this content and mode (None: not exist); return its diff, or None where it was so.

    Missing folders above it are made with mode 0755. In check mode nothing is written, the same is returned.
    """
    before = _content(path)
    before_mode = None if before is None else stat.S_IMODE(os.stat(path).st_mode)
    if before == content and (content is None or before_mode == mode):
        return None
    if not module.check_mode:
        if content is None:
            os.unlink(path)
        else:
            os.makedirs(os.path.dirname(path), mode=0o755, exist_ok=True)
            _replace(module, path, content, mode)
    return {
        "before_header": path,
        "after_header": path,
        "before": _shown(before, before_mode),
        "after": _shown(content, mode),
    }


def _content(path: str) -> str | None:
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return file.read()
    except FileNotFoundError:
        return None


def _replace(module: AnsibleModule, path: str, content: str, mode: int) -> None:
    handle, temporary = tempfile.mkstemp(prefix=".", dir=os.path.dirname(path))
    try:
        with os.fdopen(handle, "w", encoding="utf-8", errors="surrogateescape") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        module.atomic_move(temporary, path)
        os.chmod(path, mode)
    finally:
        if os.path.exists(temporary):
            os.unlink(temporary)


def _shown(content: str | None, mode: int | None) -> str:
    return "" if content is None else f"# mode {mode or 0:04o}\n{content}"
