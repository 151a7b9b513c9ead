# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Where secrets that are not handed over are kept on the controller: outside of the inventory."""

from __future__ import annotations

import os
from collections.abc import Sequence

from ..module_utils._refusal import Refusal
from ..module_utils._secrets_dir import misplaced, named_folder


def folder_for(directory: str, sources: Sequence[str], missing: Sequence[str]) -> str:
    """The folder that is set, or the one named after the inventory; ``Refusal`` where Ansible would read it as one."""
    if not directory:
        directory, fault = named_folder(sources, os.environ)
        if fault:
            raise Refusal(f"{fault}, or hand {', '.join(missing)} over in gaudi_secrets.")
    directory = os.path.expanduser(directory)
    fault = misplaced(directory, sources, os.environ)
    if fault:
        raise Refusal(fault)
    return directory
