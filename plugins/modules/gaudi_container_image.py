#!/usr/bin/python
# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

from __future__ import annotations

DOCUMENTATION = r"""
module: gaudi_container_image
short_description: "Internal to the collection: have the container image of a training job on a node"
version_added: 0.1.0
author: gaudi3.scale contributors (@gaudi3)
description:
  - Pulls an image with the node's container engine, unless it is there already.
  - In check mode its registry is asked instead, for the image's description and its first file, so that a registry, or
    the host that it sends downloads to, is refused before anything is changed.
options:
  engine:
    description: The engine, C(/usr/bin/podman) or C(/usr/bin/docker).
    type: str
    choices: [podman, docker]
    default: podman
  engine_later:
    description: The engine is installed afterwards. That it is missing is then no error in check mode.
    type: bool
    default: false
  image:
    description: Name of the image, with a tag, a digest or both. One with a digest is never another than it says.
    type: str
    required: true
  runtime:
    description: A runtime that the engine must know, such as V(habana). Only docker is asked, and not in check mode.
    type: str
  plain_http:
    description: The registry is a mirror without TLS. Docker needs that in its daemon's own configuration.
    type: bool
    default: false
  mirror:
    description:
      - Address of a sealed mirror, as C(gaudi_mirror) names it. An image that it has comes from there, each part
        compared with the mirror's lock, and the registry is not asked. An image of the vendor's registry that it lacks
        is refused.
    type: str
    default: ""
  mirror_lock_sha256:
    description: SHA-256 that the mirror's lock must have. Empty for any.
    type: str
    default: ""
  image_variable:
    description: The variable that names the image, for sentences.
    type: str
    default: trainer_container_image
  engine_variable:
    description: The variable that names the engine, for sentences.
    type: str
    default: trainer_container_engine
  timeout:
    description: Seconds to wait for an answer of the registry in check mode, or of the mirror.
    type: int
    default: 60
attributes:
  check_mode:
    description: Pulls nothing, and refuses an image that is not available.
    support: full
  diff_mode:
    description: Shows which image comes.
    support: full
  platform:
    description: Linux.
    platforms: linux
    support: full
notes:
  - A registry that asks for a password is refused in check mode unless the image is on the node. Pull it there
    beforehand.
  - An image under a tag is not compared with what its registry has under that tag by now.
  - Docker takes an image of a mirror by its tag alone, as it learns digests from registries.
seealso:
  - module: gaudi3.scale.gaudi_train
"""

EXAMPLES = r"""
- name: Have the vendor's image of the driver's release
  gaudi3.scale.gaudi_container_image:
    image: vault.habana.ai/gaudi-docker/1.23.0/ubuntu24.04/habanalabs/pytorch-installer-2.9.0:1.23.0-695
"""

RETURN = r"""
image:
  description: The image as the engine knows it.
  returned: success
  type: str
  sample: vault.habana.ai/gaudi-docker/1.23.0/ubuntu24.04/habanalabs/pytorch-installer-2.9.0:1.23.0-695
id:
  description: Its content. Empty where it is not on the node, as in check mode.
  returned: success
  type: str
  sample: 5d1c7a8e0f0a4f4b8c5b6a0f3f1a2b9c8d7e6f5a4b3c2d1e0f9a8b7c6d5e4f3a
"""

import os
from collections.abc import Mapping
from typing import IO, Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.gaudi3.scale.plugins.module_utils._host.reach import Answer, Unreachable
from ansible_collections.gaudi3.scale.plugins.module_utils._jobs import image as container_image
from ansible_collections.gaudi3.scale.plugins.module_utils._jobs.container import ENGINES, Container
from ansible_collections.gaudi3.scale.plugins.module_utils._jobs.mirrored_image import Mirrored, Open, find, take
from ansible_collections.gaudi3.scale.plugins.module_utils._mirror import mirror_address, sealed_at
from ansible_collections.gaudi3.scale.plugins.module_utils._printable import printable
from ansible_collections.gaudi3.scale.plugins.module_utils._refusal import Refusal
from ansible_collections.gaudi3.scale.plugins.module_utils._trainer.container_env import image_id


def ask_with(timeout: int) -> container_image.AskWith:
    """What asks a registry, following it nowhere."""

    def ask(url: str, headers: Mapping[str, str]) -> Answer:
        from urllib.error import HTTPError

        from ansible.module_utils.urls import open_url

        try:
            with open_url(url, timeout=timeout, headers=dict(headers), follow_redirects="none") as found:
                # A manifest has some kilobytes.
                body = found.read(1 << 20)
                return Answer(found.status, {key.lower(): value for key, value in found.headers.items()}, body)
        except HTTPError as error:
            return Answer(error.code, {key.lower(): value for key, value in error.headers.items()})

    return ask


def opener(timeout: int) -> Open:
    """What gives the files of a mirror."""

    def open_at(url: str) -> IO[bytes]:
        from ansible.module_utils.urls import open_url

        found: IO[bytes] = open_url(url, timeout=timeout)
        return found

    return open_at


def in_mirror(params: Mapping[str, Any], name: str) -> Mirrored | None:
    """What the mirror has of an image; None where its own registry is asked."""
    mirror = mirror_address(params["mirror"])
    if not mirror:
        return None
    sealed = sealed_at(mirror, params["mirror_lock_sha256"], params["timeout"])
    return find(opener(params["timeout"]), sealed, mirror, name)


def main() -> None:
    """Look, then pull."""
    module = AnsibleModule(
        argument_spec={
            "engine": {"type": "str", "choices": list(ENGINES), "default": "podman"},
            "engine_later": {"type": "bool", "default": False},
            "image": {"type": "str", "required": True},
            "runtime": {"type": "str"},
            "plain_http": {"type": "bool", "default": False},
            "mirror": {"type": "str", "default": ""},
            "mirror_lock_sha256": {"type": "str", "default": "", "no_log": False},
            "image_variable": {"type": "str", "default": "trainer_container_image"},
            "engine_variable": {"type": "str", "default": "trainer_container_engine"},
            "timeout": {"type": "int", "default": 60},
        },
        supports_check_mode=True,
    )
    params = module.params
    name = params["image"]
    try:
        container = Container(params["engine"], name)
        there = os.access(container.program, os.X_OK)
        if not there and not (params["engine_later"] and module.check_mode):
            module.fail_json(
                msg=f"{container.program} is not on this node: install {container.engine}, or set "
                f"{params['engine_variable']} to {' or '.join(each for each in ENGINES if each != container.engine)}."
            )
        found = image_id(module.run_command, container) if there else ""
        diff = {"before": "" if not found else f"{name}\n", "after": f"{name}\n"}
        result = {"changed": not found, "image": container.reference, "id": found, "diff": diff}
        if there and params["runtime"] and container.engine == "docker" and not module.check_mode:
            _rc, told, _err = module.run_command([container.program, "info", "--format", "{{json .Runtimes}}"])
            if f'"{params["runtime"]}"' not in told:
                module.fail_json(
                    msg=f"Docker on this node knows no runtime {params['runtime']}, which gives containers the cards: "
                    "set synapseai_container_runtime to true and name it in /etc/docker/daemon.json."
                )
        if found:
            module.exit_json(**result)
        mirrored = in_mirror(params, name)
        if module.check_mode and mirrored:
            module.exit_json(**result)
        if module.check_mode:
            advice = f"pull the image on this node beforehand, or name another one in {params['image_variable']}"
            container_image.reach(ask_with(params["timeout"]), name, advice, params["plain_http"])
            module.exit_json(**result)
        if mirrored:
            take(module.run_command, opener(params["timeout"]), mirrored, container)
            module.exit_json(**{**result, "id": image_id(module.run_command, container)})
        tls = ["--tls-verify=false"] if params["plain_http"] and container.engine == "podman" else []
        rc, out, err = module.run_command([container.program, "pull", "--quiet", *tls, container.reference])
        if rc != 0:
            last = (err.strip().splitlines() or out.strip().splitlines() or [f"exit status {rc}"])[-1]
            module.fail_json(msg=f"{container.engine} cannot pull {name} on this node: {printable(last)}")
        result["id"] = image_id(module.run_command, container)
    except (Refusal, Unreachable, ValueError) as error:
        module.fail_json(msg=str(error))
    module.exit_json(**result)


if __name__ == "__main__":
    main()
