# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Folders of compiled graphs on a host that serves: made or taken from an archive, and removed with their releases."""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection
from typing import TYPE_CHECKING, Optional

from .._files import make_folder, write_file
from .._printable import printable
from .._serving import recipes
from .._serving.releases import Releases

if TYPE_CHECKING:
    from ansible.module_utils.basic import AnsibleModule


def prepare(module: AnsibleModule, key: Optional[recipes.Key], replicas: int, account: tuple[int, int]) -> None:
    """Have a folder for each replica that the service may write; one that is there stays as it is.

    It begins with what an archive has, if one is given. One that is refused costs the compiling, not the serving: it is
    said in a warning.
    """
    if key is None or module.check_mode:
        return
    for number in range(1, replicas + 1):
        top = recipes.top_of(module.params["root"], number)
        place = os.path.join(top, key.name)
        if os.path.isdir(place):
            continue
        make_folder(top, 0o755)
        if not _take(module, key, top):
            make_folder(os.path.join(place, recipes.RECIPES), 0o755)
            write_file(os.path.join(place, recipes.RECORD), key.record())
        # The folder itself is the last: whoever may write it finds nothing there that is still to be given away.
        for folder, _folders, files in os.walk(os.path.join(place, recipes.RECIPES), topdown=False):
            for each in (*(os.path.join(folder, name) for name in files), folder):
                os.chown(each, *account, follow_symlinks=False)


def prune(module: AnsibleModule, found: Releases, gone: Collection[str], replicas: int) -> list[str]:
    """Remove graphs of no release that stays."""
    kept = {found.facts(name).get("recipes") for name in {*found.names()} - {*gone}} - {"", None}
    removed = []
    for number in range(1, replicas + 1):
        top = recipes.top_of(module.params["root"], number)
        for name in sorted(os.listdir(top)) if os.path.isdir(top) else ():
            # What is hidden is the command's: locks, and drafts that it removes itself.
            if name not in kept and not name.startswith("."):
                removed.append(os.path.join(top, name))
    for path in removed if not module.check_mode else ():
        shutil.rmtree(path, ignore_errors=True)
    return removed


def _take(module: AnsibleModule, key: recipes.Key, top: str) -> bool:
    """Whether an archive was taken."""
    archive, secret = module.params["recipe_cache_from"], module.params["recipe_cache_key_file"]
    if not archive:
        return False
    argv = [module.params["trainer"], "recipe-cache", "use", archive, "--into", top, "--signing-key", secret]
    try:
        code, output, errors = module.run_command([*argv, *key.arguments()], handle_exceptions=False)
    except OSError as error:
        code, output, errors = 1, "", str(error)
    if code == 0 and os.path.isdir(os.path.join(top, key.name)):
        return True
    said = (errors.strip() or output.strip() or "nothing was said").splitlines()[-1]
    module.warn(f"{archive} is not used: {printable(said, 400).rstrip('.')}. The graphs are compiled.")
    return False
