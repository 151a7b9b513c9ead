# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""When this machine was last found to be in its repository, for people and for the alert of a backup that is old."""

from __future__ import annotations

import json

from .._files import write_file
from .saving import Saved

#: In the folder of the copies.
STATUS = "status.json"


def write_status(path: str, saved: Saved, now: int) -> None:
    """Note a run that ended well. A content that had not changed counts as well: it is in the repository."""
    about = {"finished": now, "snapshot": saved.snapshot, "bytes": saved.now.size, "files": len(saved.now.entries)}
    write_file(path, json.dumps(about, sort_keys=True) + "\n", 0o600)


def page(saved: Saved, now: int) -> str:
    """For node_exporter's collector of text files."""
    return (
        "# HELP gaudi_backup_finished_timestamp_seconds When the last backup of this machine ended well.\n"
        "# TYPE gaudi_backup_finished_timestamp_seconds gauge\n"
        f"gaudi_backup_finished_timestamp_seconds {now}\n"
        "# HELP gaudi_backup_bytes Bytes of all files in that backup.\n"
        "# TYPE gaudi_backup_bytes gauge\n"
        f"gaudi_backup_bytes {saved.now.size}\n"
    )
