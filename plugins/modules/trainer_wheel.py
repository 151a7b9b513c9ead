#!/usr/bin/python
# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

from __future__ import annotations

DOCUMENTATION = r"""
module: trainer_wheel
short_description: "Internal to the collection: build the trainer's wheel on the controller"
version_added: 0.1.0
author: gaudi3.scale contributors (@gaudi3)
description:
  - Builds the wheel of the trainer from its sources, into a cache whose entries are named after the sources'
    SHA-256, so that unchanged
    sources are built once. The sources are read only.
  - Meant for the controller (C(delegate_to=localhost), C(run_once=true)). It needs the Python package
    C(hatchling) there and no network.
  - The cache is no part of any host's state. Filling it is no change, and happens in check mode too, so that
    what follows can be predicted.
options:
  source:
    description: >-
      Folder of the trainer's sources, with its C(pyproject.toml). The folders C(benchmark-tool), C(doctor) and
      C(watch), which lie beside it in a checkout and in the collection, are parts of the wheel.
    type: path
    required: true
  wheel:
    description: A wheel which is built already. It is returned as it is, and O(source) is not looked at.
    type: path
  cache_dir:
    description: Folder of the cache.
    type: path
    default: ~/.cache/gaudi3-scale/wheels
  executable:
    description: Python with C(hatchling), with which to build. In a play this is C(ansible_playbook_python).
    type: path
    default: python3
attributes:
  check_mode:
    description: Builds too, as only the cache is written.
    support: full
  diff_mode:
    description: There is nothing to compare.
    support: none
  platform:
    description: The controller.
    platforms: posix
    support: full
seealso:
  - module: gaudi3.scale.trainer_install
"""

EXAMPLES = r"""
- name: Build the trainer
  gaudi3.scale.trainer_wheel:
    source: "{{ role_path }}/../../trainer"
    executable: "{{ ansible_playbook_python }}"
  delegate_to: localhost
  run_once: true
  register: trainer_wheel
"""

RETURN = r"""
path:
  description: The wheel.
  returned: success
  type: str
  sample: /home/me/.cache/gaudi3-scale/wheels/1f2e3d4c5b6a7988/gaudi3_scale-0.1.0-py3-none-any.whl
version:
  description: Version of the trainer.
  returned: success
  type: str
  sample: 0.1.0
sha256:
  description: SHA-256 of the wheel.
  returned: success
  type: str
  sample: 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
requirements:
  description: What the trainer requires.
  returned: success
  type: list
  elements: str
  sample: ["numpy>=1.26"]
requires_python:
  description: Versions of Python for the trainer.
  returned: success
  type: str
  sample: ">=3.10"
built:
  description: Whether it was built now. False when it was in the cache or given.
  returned: success
  type: bool
  sample: false
"""

import os
import shutil
import tempfile
import zipfile
import zlib
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.gaudi3.scale.plugins.module_utils._files import make_folder, sync_tree
from ansible_collections.gaudi3.scale.plugins.module_utils._refusal import Refusal
from ansible_collections.gaudi3.scale.plugins.module_utils._wheels import (
    read_wheel,
    sha256_of,
    source_digest,
    source_files,
    source_folders,
)

SPEC: dict[str, dict[str, Any]] = {
    "source": {"type": "path", "required": True},
    "wheel": {"type": "path"},
    "cache_dir": {"type": "path", "default": "~/.cache/gaudi3-scale/wheels"},
    "executable": {"type": "path", "default": "python3"},
}

BUILD = "import sys; from hatchling.build import build_wheel; build_wheel(sys.argv[1])"


def cached(folder: str) -> str:
    """The wheel in a folder of the cache, or nothing; one that lost content, as in a power cut, is none."""
    names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    wheel = next((os.path.join(folder, name) for name in names if name.endswith(".whl")), "")
    try:
        if wheel:
            with zipfile.ZipFile(wheel) as archive:
                return wheel if archive.testzip() is None else ""
    except (OSError, zipfile.BadZipFile, zlib.error):
        pass
    return ""


def build(module: AnsibleModule, source: str, target: str) -> str:
    """Build a wheel from a copy of the sources, as they may lie in a place which cannot be written to."""
    parent = os.path.dirname(target)
    make_folder(parent)
    python = module.get_bin_path(module.params["executable"], required=True)
    draft = tempfile.mkdtemp(dir=parent, prefix=".build-")
    try:
        for place, folder in source_folders(source).items():
            for name in source_files(folder):
                copy = os.path.join(draft, place, name)
                make_folder(os.path.dirname(copy))
                shutil.copyfile(os.path.join(folder, name), copy)
        out = os.path.join(draft, "out")
        make_folder(out)
        rc, _out, err = module.run_command(
            [python, "-c", BUILD, out],
            cwd=os.path.join(draft, "trainer"),
            # A fixed date makes equal sources equal wheels.
            environ_update={"SOURCE_DATE_EPOCH": "1580601600", "PYTHONDONTWRITEBYTECODE": "1"},
        )
        if rc != 0 and "No module named 'hatchling'" in err:
            raise Refusal(
                f"The trainer's wheel cannot be built, as {python} on the controller has no package hatchling: "
                "install it there (pip install hatchling), or set trainer_wheel to a wheel that is built already."
            )
        if rc != 0 or not cached(out):
            last = (err.strip().splitlines() or ["no output"])[-1]
            raise Refusal(f"The trainer's wheel cannot be built from {source}: {last}")
        sync_tree(out)
        if os.path.isdir(target) and not cached(target):
            shutil.rmtree(target)
        try:
            os.rename(out, target)
        except OSError:
            # Another run was quicker; its wheel is the same.
            if not cached(target):
                raise
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return cached(target)


def main() -> None:
    """Find or build the wheel."""
    module = AnsibleModule(argument_spec=SPEC, supports_check_mode=True)
    source, wheel = module.params["source"], module.params["wheel"]
    built = False
    try:
        if not wheel:
            if not os.path.isfile(os.path.join(source, "pyproject.toml")):
                raise Refusal(
                    f"{source} on the controller has no pyproject.toml: set trainer_source to the folder of the "
                    "trainer's sources, or trainer_wheel to a wheel that is built already."
                )
            target = os.path.join(module.params["cache_dir"], source_digest(source)[:16])
            wheel = cached(target)
            if not wheel:
                wheel, built = build(module, source, target), True
        about = read_wheel(wheel)
        digest = sha256_of(wheel)
    except Refusal as error:
        module.fail_json(msg=str(error))
    except OSError as error:
        module.fail_json(msg=f"The trainer's wheel cannot be built: {error}")
    module.exit_json(
        changed=False,
        path=wheel,
        version=about.version,
        sha256=digest,
        requirements=list(about.requirements),
        requires_python=about.requires_python,
        built=built,
    )


if __name__ == "__main__":
    main()
