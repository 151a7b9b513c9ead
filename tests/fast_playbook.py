"""ansible-playbook for less: `python tests/fast_playbook.py ARGUMENT ...` does what `ansible-playbook` does.

Garbage is not collected, which takes an eighth of a run, as Python goes through all of the controller's objects again
and again, in each task's process of each host too. What is sent to a host for a module is kept from run to run, as long
as no source of it has changed: to find out what each of fifty modules imports takes a quarter of a run.
"""

from __future__ import annotations

import contextlib
import gc
import hashlib
import os
import shutil
import sys
import time
from pathlib import Path
from typing import Any

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


def kept() -> Path:
    """The folder of what runs with the same sources have built."""
    folder = KEPT / sources()
    folder.mkdir(parents=True, exist_ok=True)
    for other in KEPT.iterdir():
        with contextlib.suppress(OSError):
            if other != folder and other.stat().st_mtime < time.time() - DAY:
                shutil.rmtree(other, ignore_errors=True)
    return folder


def use(folder: Path) -> None:
    """Have this run find what is in ``folder``."""
    from ansible import constants

    # Ansible's own place, which it removes with all that is in it; of a link it removes the link.
    Path(constants.DEFAULT_LOCAL_TMP, "ansiballz_cache").symlink_to(folder)


def read_configuration() -> None:
    """Take the settings from the environment and the file that it names, in a process that had others."""
    from ansible import constants
    from ansible.plugins import loader

    config, home = constants.config, constants.ANSIBLE_HOME
    config._config_file = os.environ["ANSIBLE_CONFIG"]
    config._parsers.clear()
    if kept := getattr(config, "_get_ini_config_value", None):  # since ansible-core 2.19
        kept.cache_clear()
    config._parse_config_file()
    for name in config.get_configuration_definitions():
        constants.set_constant(name, config.get_config_value(name, variables=vars(constants)))
    for found in vars(loader).values():
        if isinstance(found, loader.PluginLoader):
            found.config = [folder.replace(home, constants.ANSIBLE_HOME) for folder in found.config]
    loader.callback_loader.config = constants.DEFAULT_CALLBACK_PLUGIN_PATH


def load_filters() -> None:
    """Load filters and tests before tasks are run, as the callback of the collection does for who uses it."""
    from ansible.executor.task_queue_manager import TaskQueueManager

    usual = TaskQueueManager.run

    def run(self: Any, play: Any) -> Any:
        # Found once Ansible knows where collections are.
        with contextlib.suppress(ImportError):
            from ansible_collections.gaudi3.scale.plugins.plugin_utils import forks

            forks.load_filters()
        return usual(self, play)

    TaskQueueManager.run = run  # type: ignore[method-assign]


if __name__ == "__main__":
    gc.disable()
    sys.path.pop(0)  # the tests' folder
    sys.argv[0] = "ansible-playbook"
    use(kept())
    load_filters()
    from ansible.cli.playbook import main

    sys.exit(main())
