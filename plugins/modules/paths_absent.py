#!/usr/bin/python
# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Files and folders that are to be gone."""

from __future__ import annotations

DOCUMENTATION = r"""
module: paths_absent
short_description: "Internal to the collection: remove files and folders"
version_added: 0.1.0
author:
  - gaudi3.scale contributors (@gaudi3)
description:
  - Removes files, links and folders with all that is in them, in one call. A link is removed, not what it leads to.
options:
  paths:
    description:
      - Absolute paths. Those that do not exist count for nothing.
      - A path of one name, such as C(/opt), is refused.
    type: list
    elements: path
    required: true
attributes:
  check_mode:
    description: Predicts what would be removed.
    support: full
  diff_mode:
    description: Shows the paths.
    support: full
"""

EXAMPLES = r"""
- name: Remove the program and its logs
  gaudi3.scale.paths_absent:
    paths: [/usr/local/lib/gaudi-hpu-exporter, /var/log/gaudi-hpu-exporter]
"""

RETURN = r"""
removed:
  description: The paths that were there.
  returned: success
  type: list
  elements: str
  sample: [/usr/local/lib/gaudi-hpu-exporter]
"""

import os
import shutil

from ansible.module_utils.basic import AnsibleModule


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={"paths": {"type": "list", "elements": "path", "required": True}}, supports_check_mode=True
    )
    paths = module.params["paths"]
    for path in paths:
        if not os.path.isabs(path) or len(os.path.normpath(path).strip("/").split("/")) < 2:
            module.fail_json(
                msg=f'"{path}" is not removed: give an absolute path of two names or more, such as /opt/gaudi3-scale.'
            )
    found = [path for path in paths if os.path.lexists(path)]
    for path in [] if module.check_mode else found:
        try:
            if os.path.isdir(path) and not os.path.islink(path):
                shutil.rmtree(path)
            else:
                os.unlink(path)
        except OSError as error:
            module.fail_json(msg=f"{path} cannot be removed ({error.strerror}): remove it by hand and run again.")
    before = "".join(f"{path}\n" for path in found)
    module.exit_json(changed=bool(found), removed=found, diff={"before": before, "after": ""})


if __name__ == "__main__":
    main()
