# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Back this machine up once, remove what retention no longer keeps, and check the repository. Run by a timer."""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

from engine._backup import saving
from engine._backup.kinds import items
from engine._backup.repository import Repository
from engine._backup.status import STATUS, page, write_status
from engine._files import write_file
from engine._refusal import Refusal

METRICS = "gaudi-backup.prom"


def main() -> None:
    """Back up, forget, check; the unit fails with one sentence where one of them does."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--settings", required=True, help="file that role backup has written")
    parser.add_argument("--folder", default="/var/lib/gaudi3-backup", help="folder of the copies and restic's cache")
    parser.add_argument("--root", default="/", help="folder below which the machine's files lie")
    asked = parser.parse_args()
    told = json.loads(Path(asked.settings).read_text(encoding="utf-8"))
    cache = f"{asked.folder}/cache"
    more = (told["ssh_key"], told["ssh_known_hosts"], told["cluster"])
    repository = Repository(told["repository"], told["password"], told["environment"], "restic", cache, *more)
    try:
        wanted = items(told["kinds"], {}, told["paths"])
        saved = saving.save(
            repository, wanted, asked.folder, asked.root, told["host"], told["kinds"], dry=False, shows=False
        )
        repository.forget(told["host"], told["keep"])
        repository.examine(told["check_share"])
    except (Refusal, OSError) as error:
        sys.exit(f"{error}")
    # After the check: what cannot be read is no backup.
    now = int(time.time())
    write_status(f"{asked.folder}/{STATUS}", saved, now)
    if told["metrics"] and Path(told["metrics"]).is_dir():
        write_file(f"{told['metrics']}/{METRICS}", page(saved, now))
    new = "new" if saved.changed else "as before"
    print(f"snapshot {saved.snapshot} ({new}): {saved.now.size} bytes of {', '.join(sorted(saved.now.items))}")


if __name__ == "__main__":
    main()
