#!/usr/bin/python
# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Build and install the library through which Gaudi's collectives reach libfabric."""

from __future__ import annotations

DOCUMENTATION = r"""
module: gaudi_ofi_wrapper
short_description: "Internal to the collection: build the wrapper between Gaudi's collectives and libfabric"
version_added: 0.1.0
author:
  - gaudi3.scale contributors (@gaudi3)
description:
  - Builds C(libhccl_ofi_wrapper.so) from its public source (HabanaAI/hccl_ofi_wrapper), installs it, and tells
    the dynamic linker about its folder.
  - Collectives between hosts need it where they go over host NICs.
  - The source must have the wanted digests. The library is loaded once to see that it and libfabric fit.
  - It is built again when its source changes or it is missing.
notes:
  - Needs a C++ compiler and the header files of libfabric.
options:
  source:
    description:
      - Folder with the source.
    type: path
    required: true
  sha256:
    description:
      - SHA-256 of each source file, by its name.
    type: dict
    required: true
  path:
    description:
      - Where the library goes.
    type: path
    default: /usr/lib/habanalabs/libhccl_ofi_wrapper.so
  compiler:
    description:
      - The C++ compiler.
    type: path
    default: g++
  linker_configuration:
    description:
      - File that names the library's folder to the dynamic linker.
    type: path
    default: /etc/ld.so.conf.d/gaudi3-scale.conf
attributes:
  check_mode:
    description: Predicts the change and makes none.
    support: full
  diff_mode:
    description: Shows the source that the library was and will be built from.
    support: full
"""

EXAMPLES = r"""
- name: Build the wrapper
  gaudi3.scale.gaudi_ofi_wrapper:
    source: /usr/local/src/hccl_ofi_wrapper
    sha256:
      hccl_ofi_wrapper.cpp: abfc5ab9ba161c740ac870714947627d425aaae480de8c85d4567b4e8d74a112
      hccl_ofi_wrapper.h: 68d810b95a4123bfb5fa80fb1c4fcaf74090242bf929ded5885af7f578559d07
      hccl_ofi_wrapper_interface.h: 41397bc67e98e2b7f945164d233dc58362db3abcfa2ab13c9af440bcd616b402
"""

RETURN = r"""
path:
  description: The library.
  returned: success
  type: str
  sample: /usr/lib/habanalabs/libhccl_ofi_wrapper.so
built:
  description: Whether it was built now, or would be.
  returned: success
  type: bool
  sample: true
"""

import os
import sys
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.gaudi3.scale.plugins.module_utils._cards.pci import read
from ansible_collections.gaudi3.scale.plugins.module_utils._fabric import ofi_wrapper
from ansible_collections.gaudi3.scale.plugins.module_utils._files import ensure_file, make_folder
from ansible_collections.gaudi3.scale.plugins.module_utils._refusal import Refusal


def last_line(*texts: str) -> str:
    """What a program said last."""
    lines = [line for text in texts for line in text.splitlines() if line.strip()]
    return repr(lines[-1].strip()) if lines else "nothing"


def build(module: AnsibleModule) -> None:
    """Compile, load for a try, and only then put the library into its place."""
    compiler = module.get_bin_path(module.params["compiler"])
    if compiler is None:
        module.fail_json(msg=f"{module.params['compiler']} is not on this host: install a C++ compiler.")
    new = os.path.join(module.tmpdir, ofi_wrapper.LIBRARY)
    code, output, error = module.run_command(ofi_wrapper.compile_argv(compiler, module.params["source"], new))
    if code != 0:
        module.fail_json(
            msg=f"The wrapper cannot be built ({last_line(output, error)}): see that libfabric's header files are "
            "installed.",
            stderr=error,
        )
    code, output, error = module.run_command([sys.executable, "-c", ofi_wrapper.check_program(), new])
    if code != 0:
        module.fail_json(
            msg=f"The built wrapper cannot be used ({last_line(output, error)}): see that libfabric fits it."
        )
    make_folder(os.path.dirname(module.params["path"]))
    module.atomic_move(new, module.params["path"])
    os.chmod(module.params["path"], 0o755)


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "source": {"type": "path", "required": True},
            "sha256": {"type": "dict", "required": True},
            "path": {"type": "path", "default": f"/usr/lib/habanalabs/{ofi_wrapper.LIBRARY}"},
            "compiler": {"type": "path", "default": "g++"},
            "linker_configuration": {"type": "path", "default": "/etc/ld.so.conf.d/gaudi3-scale.conf"},
        },
        supports_check_mode=True,
    )
    source, path = module.params["source"], module.params["path"]
    digest = "(its source is not there yet)"
    try:
        if os.path.isdir(source) or not module.check_mode:
            digest = ofi_wrapper.checked(source, module.params["sha256"])
    except Refusal as error:
        module.fail_json(msg=str(error))
    stamp = path + ".source"
    before = read(stamp) if os.path.exists(path) else None
    built = before != digest
    diffs: list[dict[str, Any]] = []
    if built:
        if not module.check_mode:
            build(module)
            ensure_file(module, stamp, digest + "\n")
        diffs.append(
            {"before_header": path, "after_header": path, "before": f"{before or ''}\n", "after": f"{digest}\n"}
        )
    linker = ensure_file(module, module.params["linker_configuration"], os.path.dirname(path) + "\n")
    if linker:
        diffs.append(linker)
    ldconfig = module.get_bin_path("ldconfig")
    if diffs and ldconfig and not module.check_mode:
        module.run_command([ldconfig], check_rc=True)
    module.exit_json(changed=bool(diffs), path=path, built=built, diff=diffs)


if __name__ == "__main__":
    main()
