#!/usr/bin/python
# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

from __future__ import annotations

DOCUMENTATION = r"""
module: trainer_install
short_description: "Internal to the collection: install the trainer on a node"
version_added: 0.1.0
author: gaudi3.scale contributors (@gaudi3)
description:
  - Makes a virtual environment which sees the system's Python packages (PyTorch comes with the node's image
    or the vendor's installer),
    checks what the trainer needs, and installs the trainer's wheel. The node needs no pip and no network for
    it.
  - Nothing is changed on a node on which the trainer could not run, because a requirement is missing or too
    old.
  - Each version is unpacked into a folder of its own, C(ROOT/trainer/HASH), and the environment is pointed to
    it when it has been
    imported once. A job that runs keeps the version with which it was started.
options:
  wheel:
    description: The trainer's wheel, on the controller (or on the node with O(remote_src=true)). It is
      brought over only when it is needed.
    type: path
    required: true
  remote_src:
    description: The wheel is on the node already.
    type: bool
    default: false
  root:
    description: Folder of the installation. The environment is C(venv) in it.
    type: path
    default: /opt/gaudi3-scale
  executable:
    description: Python with which the environment is made, in a O(container) the image's. It must have PyTorch.
    type: path
    default: /usr/bin/python3
  allow_missing:
    description:
      - O(executable), or the image of a O(container), will come later. In check mode it is then no error that it is not
        there.
    type: bool
    default: false
  dependencies:
    description:
      - With V(preinstalled) all that the trainer requires must be there, or the task fails.
      - With V(index) what is missing is installed into the environment from a package index, except for
        PyTorch. The node needs C(pip) for it.
      - The versions and the SHA-256 of their files are those of C(gaudi3_scale/requirements.txt) in the
        wheel, so that every node has the same, whenever it is set up. An index that has another file under
        the name is refused.
    type: str
    choices: [preinstalled, index]
    default: preinstalled
  index_url:
    description: Package index for O(dependencies=index). If omitted, pip uses what is configured on the node.
    type: str
  index_plain_http:
    description:
      - Allows an O(index_url) with C(http://) that is not on the node itself. Everyone on the way may then read the
        traffic, a password in the address included. The hashes of the pinned packages still decide which files are
        installed.
    type: bool
    default: false
    version_added: 0.1.0
  user:
    description:
      - User as whom jobs run. The task fails where it cannot reach O(executable) or its packages, such as below a
        closed home, or cannot import what is in O(imports).
      - If omitted, nothing is asked as another user.
    type: str
  imports:
    description: Modules that O(user) must be able to import before the version is made the current one.
    type: list
    elements: str
    default: []
  container:
    description:
      - The environment is for jobs in a container. It is made by the Python of the image, with what the trainer
        requires and the image lacks, and never with another PyTorch than the image's.
    type: dict
    suboptions:
      engine: {description: The engine., type: str, choices: [podman, docker], default: podman}
      image: {description: Name of the image., type: str, required: true}
      release:
        description: The driver's release, of which the image has to be. If omitted, nothing is asked.
        type: str
      requirements:
        description:
          - Packages beside PyTorch, each as C(name==version --hash=sha256:DIGEST), with the SHA-256 of every file that
            may be installed. What the image has of them stays as it is.
        type: list
        elements: str
        default: []
  sha256:
    description: SHA-256 of the wheel. Read from the wheel on the controller if omitted.
    type: str
  requirements:
    description: Requirements of the trainer. Read from the wheel on the controller if omitted.
    type: list
    elements: str
  requires_python:
    description: Versions of Python for the trainer. Read from the wheel on the controller if omitted.
    type: str
attributes:
  check_mode:
    description: Tells what would be installed. Requirements are checked in check mode too.
    support: full
  diff_mode:
    description: Shows which version of the trainer gives way to which.
    support: full
  platform:
    description: Linux.
    platforms: linux
    support: full
seealso:
  - module: gaudi3.scale.trainer_wheel
"""

EXAMPLES = r"""
- name: Install the trainer
  gaudi3.scale.trainer_install:
    wheel: "{{ trainer_wheel.path }}"

- name: Install it with what it requires, from an index of our own
  gaudi3.scale.trainer_install:
    wheel: "{{ trainer_wheel.path }}"
    dependencies: index
    index_url: https://pypi.example.org/simple
"""

RETURN = r"""
venv:
  description: The virtual environment.
  returned: success
  type: str
  sample: /opt/gaudi3-scale/venv
folder:
  description: Folder of the installed version.
  returned: success
  type: str
  sample: /opt/gaudi3-scale/trainer/9f86d081884c7d65
done:
  description: What was done (or in check mode, would be) - V(venv), V(dependencies) and V(trainer), as far as
    needed.
  returned: success
  type: list
  elements: str
  sample: [venv, trainer]
"""

import os
from collections.abc import Callable
from functools import partial
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.gaudi3.scale.plugins.module_utils._installed import alone
from ansible_collections.gaudi3.scale.plugins.module_utils._module_bodies.trainer import (
    ARGUMENT_SPEC,
    Plan,
    look,
    pip_environ,
)
from ansible_collections.gaudi3.scale.plugins.module_utils._pip import Pin
from ansible_collections.gaudi3.scale.plugins.module_utils._refusal import Refusal
from ansible_collections.gaudi3.scale.plugins.module_utils._trainer.env import TrainerEnv
from ansible_collections.gaudi3.scale.plugins.module_utils._trainer.pins import pins_for


def listed_pins(params: dict[str, Any], plan: Plan) -> dict[str, Pin]:
    """The trainer's own list where something of it is needed; Refusal where the list will not do."""
    if not plan.needed or params["container"] is not None:
        return {}
    return pins_for(params["wheel"] if "trainer" in plan.done else plan.env.folder(plan.release), plan.needed)


def act(module: AnsibleModule, plan: Plan) -> None:
    """Do it, the trainer last: jobs find the one before until then."""
    params, env, answer, needed = module.params, plan.env, plan.answer, list(plan.needed)
    listed = listed_pins(params, plan)
    if "venv" in plan.done:
        answer = env.make_venv(answer, plan.release)
    if needed:
        if not answer["pip"]:
            raise Refusal(without_pip(params))
        env.install_from_index(needed, pip_environ(params), listed)
    if "trainer" in plan.done:
        env.install(params["wheel"], answer["purelib"], plan.release, import_check(module, env))


def without_pip(params: dict[str, Any]) -> str:
    """What to do where packages are to come from an index and nothing can fetch them."""
    if params["container"] is None:
        return (
            f"{params['executable']} has no pip, which trainer_dependencies=index needs: add the distribution's "
            "package of pip to trainer_packages."
        )
    return (
        f"{params['executable']} of the image {params['container']['image']} has no pip: take an image that has it, or "
        "one that has all packages of trainer_container_requirements."
    )


def import_check(module: AnsibleModule, env: TrainerEnv) -> Callable[[], None]:
    """What is asked of a version before it is made the current one: that the job's user can import it."""
    user, names = module.params["user"], module.params["imports"]
    if user is None or not names:
        return lambda: None
    setpriv = module.get_bin_path("setpriv", required=True) if module.params["container"] is None else ""
    return partial(env.check_import, user, names, setpriv)


def main() -> None:
    """Look, decide, act, tell."""
    # The job's user reads all of this, whatever the umask of the one who installs.
    os.umask(0o022)
    module = AnsibleModule(argument_spec=ARGUMENT_SPEC, supports_check_mode=True)
    try:
        plan = look(module)
        result = plan.as_result()
        if "trainer" in plan.done and not module.check_mode and not module.params["remote_src"]:
            # Nothing has been done yet: the action plugin brings the wheel and comes again.
            result.update(changed=False, needs_wheel=True)
        elif plan.done and not module.check_mode:
            listed_pins(module.params, plan)
            with alone(module.params["root"]):
                # Another run may have come first.
                act(module, look(module))
    except (Refusal, ValueError) as error:
        module.fail_json(msg=str(error))
    module.exit_json(**result)


if __name__ == "__main__":
    main()
