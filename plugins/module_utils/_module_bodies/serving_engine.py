# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""What gaudi_serving_engine does: vLLM's build for a CPU, installed or found whole."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._mirror import below, mirror_address, sealed_at
from .._pip import index_environment
from .._refusal import Refusal
from .._serving import environment

if TYPE_CHECKING:
    from ansible.module_utils.basic import AnsibleModule


ARGUMENT_SPEC: dict[str, dict[str, Any]] = {
    "requirements": {"type": "list", "elements": "str", "required": True},
    "root": {"type": "path", "default": "/opt/gaudi3-serving"},
    "python": {"type": "path", "default": "/usr/bin/python3"},
    "index_url": {"type": "str", "default": "", "no_log": True},
    "index_plain_http": {"type": "bool", "default": False},
    "torch_index_url": {"type": "str", "default": "https://download.pytorch.org/whl/cpu", "no_log": True},
    "mirror": {"type": "str", "default": ""},
    "mirror_lock_sha256": {"type": "str", "default": "", "no_log": False},
    "timeout": {"type": "int", "default": 15},
}


def run(module: AnsibleModule) -> dict[str, Any]:
    """Judge, then install what is missing."""
    options = module.params
    lines = options["requirements"]
    try:
        place = environment.place_of(options["root"], lines)
        result = {"program": f"{place}/bin/vllm", "changed": not environment.is_whole(place, lines)}
        if result["changed"]:
            environ = index_environment(options["index_url"], options["index_plain_http"], "serving_pip_index_url")
            if options["torch_index_url"]:
                environ["PIP_EXTRA_INDEX_URL"] = options["torch_index_url"]
            python = environment.refuse(module.run_command, options["python"], place)
            mirror = mirror_address(options["mirror"])
            # Another index that is asked besides may have what the mirror lacks.
            if below(mirror, options["index_url"]) and below(
                mirror, options["torch_index_url"] or options["index_url"]
            ):
                sealed = sealed_at(mirror, options["mirror_lock_sha256"], options["timeout"])
                environment.refuse_mirror(sealed, mirror, lines, python)
            if not module.check_mode:
                environment.make(module.run_command, options["python"], place, lines, environ)
    except (Refusal, OSError) as error:
        module.fail_json(msg=str(error))
    return result
