# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""A model out of the registry: fetched by the trainer's own command, which verifies every file."""

from __future__ import annotations

import json
import os
import re
import shutil
from typing import TYPE_CHECKING

from .._files import make_folder
from .._printable import printable
from .._refusal import Refusal

if TYPE_CHECKING:
    from ansible.module_utils.basic import AnsibleModule


PREFIX = "registry:"
_REFERENCE = re.compile(r"registry:([A-Za-z0-9][A-Za-z0-9._-]*)(?:@([A-Za-z0-9][A-Za-z0-9._-]*))?")


def fetched(module: AnsibleModule, model: str) -> str:
    """The folder of a model of the registry; empty where a dry run would have to fetch it first."""
    found = _REFERENCE.fullmatch(model)
    if not found:
        raise Refusal(
            f"serving_model is {printable(model)}: name a model of the registry as registry:NAME@ALIAS, such as "
            "registry:llm@champion."
        )
    place = os.path.join(module.params["root"], "fetched", found[1])
    if module.check_mode:
        return place if os.path.isdir(place) else ""
    make_folder(os.path.dirname(place), 0o700)
    code, said = _fetch(module, model[len(PREFIX) :], place)
    if code == 2 and os.path.isdir(place):
        # It holds another version, which the command does not replace. Releases have copies of their own.
        fresh = f"{place}.new"
        shutil.rmtree(fresh, ignore_errors=True)
        code, said = _fetch(module, model[len(PREFIX) :], fresh)
        if code == 0:
            shutil.rmtree(place)
            os.replace(fresh, place)
    if code != 0:
        raise Refusal(f"{printable(model)} cannot be fetched: {printable(said, 600).rstrip('.')}.")
    return place


def _fetch(module: AnsibleModule, reference: str, folder: str) -> tuple[int, str]:
    program = module.params["trainer"]
    if not os.path.exists(program):
        raise Refusal(
            f"There is no {printable(program)} on this host, which fetches models of the registry: run role trainer "
            "there first, or name its command as serving_trainer."
        )
    variables = {name: str(value) for name, value in module.params["registry_environment"].items()}
    argv = [program, "registry", "fetch", reference, folder, "--json"]
    code, output, errors = module.run_command(argv, environ_update=variables)
    if code == 0:
        try:
            json.loads(output.strip().splitlines()[-1])
        except (IndexError, ValueError):
            return 1, f"{program} printed no JSON"
    return code, (errors.strip() or output.strip()).splitlines()[-1] if (
        errors or output
    ).strip() else "nothing was said"
