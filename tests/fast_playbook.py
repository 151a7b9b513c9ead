"""ansible-playbook for less: `python tests/fast_playbook.py ARGUMENT ...` does what `ansible-playbook` does.

Garbage is not collected, which takes an eighth of a run, as Python goes through all of the controller's objects again
and again, in each task's process of each host too. What is sent to a host for a module is kept from run to run, as long
as no source of it has changed: to find out what each of fifty modules imports takes a quarter of a run.
"""

from __future__ import annotations

import contextlib
import gc
import hashlib
import shutil
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
KEPT = ROOT / ".cache" / "ansiballz"
DAY = 24 * 3600


def sources() -> str:
    """What changes with each source that a module can consist of."""
    import ansible

    folders = [ROOT / "plugins" / kind for kind in ("modules", "module_utils")]
    files = sorted(path for folder in folders for path in folder.rglob("*.py"))
    told = [f"{sys.prefix} {sys.version} {ansible.__file__} {Path(ansible.__file__).stat().st_mtime_ns}"]
    told += [f"{path} {path.stat().st_mtime_ns} {path.stat().st_size}" for path in files]
    return hashlib.sha256("\n".join(told).encode()).hexdigest()[:16]


def keep_modules() -> None:
    """Have this run find what an earlier one with the same sources has built."""
    from ansible import constants

    folder = KEPT / sources()
    folder.mkdir(parents=True, exist_ok=True)
    for other in KEPT.iterdir():
        with contextlib.suppress(OSError):
            if other != folder and other.stat().st_mtime < time.time() - DAY:
                shutil.rmtree(other, ignore_errors=True)
    # Ansible's own place, which it removes with all that is in it; of a link it removes the link.
    Path(constants.DEFAULT_LOCAL_TMP, "ansiballz_cache").symlink_to(folder)


if __name__ == "__main__":
    gc.disable()
    sys.path.pop(0)  # the tests' folder
    sys.argv[0] = "ansible-playbook"
    keep_modules()
    from ansible.cli.playbook import main

    sys.exit(main())
