# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Name the container image of a release on the controller, and say why one cannot be used with a driver."""

from __future__ import annotations

from ansible_collections.gaudi3.scale.plugins.module_utils._jobs import image as images
from ansible_collections.gaudi3.scale.plugins.plugin_utils.filters import filter_module

DOCUMENTATION = r"""
name: container_image
short_description: Name the vendor's container image of a release, or say what is wrong with an image
version_added: 0.1.0
author:
  - gaudi3.scale contributors (@gaudi3)
description:
  - An image that is given keeps its name. Its release is read from its tag or its path, where these tell it.
options:
  _input:
    description: The driver's release, for example V(1.23.0-695).
    type: str
    required: true
  image:
    description: An image to take in place of the vendor's. Empty for the vendor's.
    type: str
    default: ""
  system:
    description: The system in the vendor's image.
    type: str
    default: ubuntu24.04
  registry:
    description: The vendor's registry, or a mirror of it.
    type: str
    default: vault.habana.ai
  digest:
    description: Digest that the image must have, as C(sha256:) and 64 hexadecimal digits. Empty for none.
    type: str
    default: ""
"""

EXAMPLES = r"""
- name: Show the image of a release
  ansible.builtin.debug:
    msg: "{{ ('1.23.0-695' | gaudi3.scale.container_image).name }}"
"""

RETURN = r"""
_value:
  description: C(name), the image's, and C(problem), one sentence or nothing.
  type: dict
  sample:
    name: vault.habana.ai/gaudi-docker/1.23.0/ubuntu24.04/habanalabs/pytorch-installer-2.9.0:1.23.0-695
    problem: ""
"""


def container_image(
    release: str,
    image: str = "",
    system: str = images.SYSTEMS[0],
    registry: str = "vault.habana.ai",
    digest: str = "",
) -> dict[str, str]:
    """See DOCUMENTATION."""
    try:
        name = image or images.image_name(release, system, registry)
    except ValueError as error:
        return {"name": "", "problem": str(error)}
    pinned = f"{name}@{digest}" if digest and "@" not in name else name
    return {"name": pinned, "problem": images.release_problem(pinned, release)}


FilterModule = filter_module(container_image=container_image)
