#!/usr/bin/python
# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

from __future__ import annotations

DOCUMENTATION = r"""
module: gaudi_runtime_environment
short_description: "Internal to the collection: give units the environment of the vendor's profile files"
version_added: 0.1.0
author:
  - gaudi3.scale contributors (@gaudi3)
description:
  - Writes a file of environment variables with what the vendor's profile files
    (C(/etc/profile.d/habana*.sh)) set in a login shell. A unit of systemd reads no profile, and without
    E(GC_KERNEL_PATH) no graph can be compiled on a card.
  - A shell runs the files, also in check mode, with nothing but E(PATH) and E(HOME) in its environment, since they may
    hold conditions and refer to other variables. Files that others than root may change are refused.
  - E(HABANA_LOGS) is left out, as each unit has its own folder of logs.
options:
  path:
    description: The file to write.
    type: path
    default: /etc/gaudi3-scale/runtime.env
  profiles:
    description: Folder of the profile files.
    type: path
    default: /etc/profile.d
  required:
    description:
      - Whether to fail where E(GC_KERNEL_PATH) is not set or names no file.
      - In check mode this is a warning, since the run itself may install the packages that bring the files.
    type: bool
    default: true
attributes:
  check_mode:
    description: Tells what would be written, from the profile files that are there.
    support: full
  diff_mode:
    description: Shows the file's change.
    support: full
  platform:
    description: Linux.
    platforms: linux
    support: full
"""

EXAMPLES = r"""
- name: Write what the vendor's profile files set
  gaudi3.scale.gaudi_runtime_environment:
"""

RETURN = r"""
path:
  description: The file.
  returned: success
  type: str
  sample: /etc/gaudi3-scale/runtime.env
files:
  description: The profile files that were read.
  returned: success
  type: list
  elements: str
  sample: [/etc/profile.d/habanalabs.sh]
environment:
  description: What the file holds.
  returned: success
  type: dict
  sample: {GC_KERNEL_PATH: /usr/lib/habanalabs/libtpc_kernels.so}
"""

import os

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.gaudi3.scale.plugins.module_utils._files import ensure_file
from ansible_collections.gaudi3.scale.plugins.module_utils._jobs import runtime_environment as runtime
from ansible_collections.gaudi3.scale.plugins.module_utils._refusal import Refusal


def main() -> None:
    """Run the module."""
    os.umask(0o022)
    module = AnsibleModule(
        argument_spec={
            "path": {"type": "path", "default": runtime.PATH},
            "profiles": {"type": "path", "default": runtime.PROFILES},
            "required": {"type": "bool", "default": True},
        },
        supports_check_mode=True,
    )
    path = module.params["path"]
    files = runtime.profile_files(module.params["profiles"])
    try:
        environment = runtime.read(files)
    except Refusal as error:
        module.fail_json(msg=str(error))
    complaint = runtime.complaint(environment, files, os.path.isfile(environment.get(runtime.KERNELS, "")))
    if complaint and module.params["required"]:
        if not module.check_mode:
            module.fail_json(msg=complaint)
        module.warn(complaint)
    difference = ensure_file(module, path, runtime.file_text(environment))
    module.exit_json(
        changed=difference is not None,
        diff=[difference] if difference else [],
        path=path,
        files=files,
        environment=environment,
    )


if __name__ == "__main__":
    main()
