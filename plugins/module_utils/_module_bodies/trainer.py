# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""What trainer_install finds on a node, and what it would do there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Optional

from .._jobs.container import ENGINES, Container
from .._pip import index_environment
from .._pytorch.pins import pins
from .._refusal import Refusal
from .._trainer.container_env import ContainerEnv
from .._trainer.env import Release, TrainerEnv
from .._wheels import read_wheel, sha256_of

if TYPE_CHECKING:
    from ansible.module_utils.basic import AnsibleModule

ARGUMENT_SPEC: dict[str, dict[str, Any]] = {
    "wheel": {"type": "path", "required": True},
    "remote_src": {"type": "bool", "default": False},
    "root": {"type": "path", "default": "/opt/gaudi3-scale"},
    "executable": {"type": "path", "default": "/usr/bin/python3"},
    "allow_missing": {"type": "bool", "default": False},
    "dependencies": {"type": "str", "choices": ["preinstalled", "index"], "default": "preinstalled"},
    "index_url": {"type": "str", "no_log": True},
    "index_plain_http": {"type": "bool", "default": False},
    "user": {"type": "str"},
    "imports": {"type": "list", "elements": "str", "default": []},
    "container": {
        "type": "dict",
        "options": {
            "engine": {"type": "str", "choices": list(ENGINES), "default": "podman"},
            "image": {"type": "str", "required": True},
            "release": {"type": "str"},
            "requirements": {"type": "list", "elements": "str", "default": []},
        },
    },
    "sha256": {"type": "str"},
    "requirements": {"type": "list", "elements": "str"},
    "requires_python": {"type": "str"},
}


def release_of(params: dict[str, Any]) -> Release:
    """The wanted version, from the parameters or from a wheel on this node."""
    if params["sha256"] is not None and params["requirements"] is not None:
        return Release(params["sha256"], params["requires_python"] or "", tuple(params["requirements"]))
    about = read_wheel(params["wheel"])
    return Release(sha256_of(params["wheel"]), about.requires_python, about.requirements)


def pip_environ(params: dict[str, Any]) -> dict[str, str]:
    """What pip is given of the index; Refusal for one over plain HTTP to which nobody has consented."""
    return index_environment(params["index_url"], params["index_plain_http"], "trainer_pip_index_url")


def environment(module: AnsibleModule) -> TrainerEnv:
    """The environment on the node, or the one for a container."""
    params = module.params
    root, python, given = params["root"], params["executable"], params["container"]
    if given is None:
        return TrainerEnv(module.run_command, root, python)
    return ContainerEnv(module.run_command, root, python, Container.of(given), pins(given["requirements"]))


@dataclass(frozen=True)
class Plan:
    """What there is on the node, and what is to be done to it."""

    env: TrainerEnv
    release: Release
    answer: dict[str, Any]
    before: Optional[str]
    needed: tuple[str, ...]
    done: tuple[str, ...]

    def as_result(self) -> dict[str, Any]:
        """The module's result."""
        folder = self.env.folder(self.release)
        return {
            "changed": bool(self.done),
            "venv": self.env.venv,
            "folder": folder,
            "done": list(self.done),
            "diff": {"before": f"trainer: {self.before or 'absent'}\n", "after": f"trainer: {folder}\n"},
        }


def look(module: AnsibleModule) -> Plan:
    """Refuse what cannot be, and decide what is missing."""
    params, container = module.params, module.params["container"] or {}
    env, release = environment(module), release_of(params)
    if container or params["dependencies"] == "index":
        pip_environ(params)
    if module.check_mode and params["allow_missing"] and not env.has_python():
        return Plan(env, release, {}, None, (), ("venv", "trainer"))
    if container and not env.has_python():
        raise Refusal(f"The image {container['image']} is not on this node: pull it there.")
    answer = env.probe(release)
    if isinstance(env, ContainerEnv) and container["release"]:
        env.check_release(answer, container["release"])
    if params["user"] is not None:
        env.check_reach(answer, params["user"])
    needed = env.verify(answer, release, params["dependencies"] == "index")
    missing = {
        "venv": not env.has_venv(),
        "dependencies": bool(needed),
        "trainer": not env.installed(answer["purelib"], release),
    }
    before = None if missing["venv"] else env.current(answer["purelib"])
    return Plan(env, release, answer, before, tuple(needed), tuple(name for name, lacks in missing.items() if lacks))


def run(module: AnsibleModule) -> dict[str, Any]:
    """What would be done; nothing is."""
    try:
        result = look(module).as_result()
    except (Refusal, ValueError) as error:
        module.fail_json(msg=str(error))
    return result
