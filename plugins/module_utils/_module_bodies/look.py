# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""What several modules would do on one node, asked in one task: each as in check mode, and none changes anything."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NoReturn, cast

from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

from . import (
    account,
    claim,
    contents,
    driver,
    fabric,
    files,
    firewall,
    interpreter,
    kernel_holds,
    kernel_settings,
    listener,
    mirror,
    package,
    packages,
    ports,
    pytorch,
    reachable,
    service,
    service_page,
    train_node,
    trainer,
)

if TYPE_CHECKING:
    from ansible.module_utils.basic import AnsibleModule


@dataclass(frozen=True)
class Task:
    """What a module takes and does."""

    arguments: Mapping[str, Mapping[str, Any]]
    run: Callable[[Any], dict[str, Any]]
    required_if: Sequence[tuple[Any, ...]] = field(default=())


#: What can be asked: modules of this collection by their names, and questions that no module of it answers.
TASKS = {
    "gaudi_claim": Task(claim.ARGUMENT_SPEC, claim.run),
    "gaudi_driver": Task(driver.ARGUMENT_SPEC, driver.run, driver.REQUIRED_IF),
    "gaudi_fabric": Task(fabric.ARGUMENT_SPEC, fabric.run),
    "gaudi_firewall": Task(firewall.ARGUMENT_SPEC, firewall.run),
    "gaudi_ports": Task(ports.ARGUMENT_SPEC, ports.run),
    "gaudi_pytorch": Task(pytorch.ARGUMENT_SPEC, pytorch.run),
    "gaudi_service": Task(service.ARGUMENT_SPEC, service.run),
    "gaudi_train_node_info": Task(train_node.ARGUMENT_SPEC, train_node.run),
    "kernel_holds": Task(kernel_holds.ARGUMENT_SPEC, kernel_holds.run),
    "kernel_settings": Task(kernel_settings.ARGUMENT_SPEC, kernel_settings.run),
    "trainer_install": Task(trainer.ARGUMENT_SPEC, trainer.run),
    "synapseai_packages": Task(packages.ARGUMENT_SPEC, packages.run),
    "account": Task(account.ARGUMENT_SPEC, account.run),
    "contents": Task(contents.ARGUMENT_SPEC, contents.run),
    "package": Task(package.ARGUMENT_SPEC, package.run),
    "service_page": Task(service_page.ARGUMENT_SPEC, service_page.run),
    "addresses": Task(reachable.NAME, reachable.addresses),
    "files": Task(files.ARGUMENT_SPEC, files.run),
    "interpreter": Task(interpreter.ARGUMENT_SPEC, interpreter.run),
    "listener": Task(listener.ARGUMENT_SPEC, listener.run),
    "mirror": Task(mirror.ARGUMENT_SPEC, mirror.run),
    "page": Task(reachable.PAGE, reachable.page),
    "port": Task(reachable.PORT, reachable.port),
}


class Ended(Exception):
    """A part has failed; its result."""

    def __init__(self, result: dict[str, Any]) -> None:
        super().__init__(result["msg"])
        self.result = result


class Part:
    """What one of the modules takes for its AnsibleModule: arguments of its own, and an end that is not the task's."""

    check_mode = True

    def __init__(self, module: AnsibleModule, params: dict[str, Any]) -> None:
        self._module = module
        self.params = params
        self.run_command_environ_update: dict[str, str] = {}

    def __getattr__(self, name: str) -> Any:
        """The rest is the task's: warnings, temporary folder, journal."""
        return getattr(self._module, name)

    def fail_json(self, msg: str, exception: Any = None, **result: Any) -> NoReturn:
        """End this part alone."""
        raise Ended({**result, "msg": msg, "failed": True})

    # Both end what calls them by fail_json where they have to, which is to be this one.

    def get_bin_path(self, *given: Any, **options: Any) -> Any:
        """As of an AnsibleModule."""
        return type(self._module).get_bin_path(cast("AnsibleModule", self), *given, **options)

    def run_command(self, *given: Any, **options: Any) -> Any:
        """As of an AnsibleModule, with this part's environment."""
        return type(self._module).run_command(cast("AnsibleModule", self), *given, **options)


def ask(module: AnsibleModule, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """What one module answers; where it fails, the same as it would return alone."""
    task = TASKS[name]
    checked = ArgumentSpecValidator(task.arguments, required_if=task.required_if).validate(dict(arguments))
    module.no_log_values.update(checked._no_log_values)
    if checked.error_messages:
        return {"failed": True, "msg": checked.errors.msg}
    try:
        return task.run(Part(module, checked.validated_parameters))
    except Ended as end:
        return end.result
    except Exception as error:  # as a module ends that meets what it does not expect
        return {"failed": True, "msg": f"{type(error).__name__}: {error}", "exception": traceback.format_exc()}


def look(module: AnsibleModule, parts: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """What all parts answer, by their names, and every failure that is not to be tolerated, each reported once."""
    found: dict[str, dict[str, Any]] = {}
    failures: dict[str, None] = {}
    for part in parts:
        answer = found[part["name"]] = ask(module, part["module"], part["arguments"])
        if answer.get("failed") and not part["tolerated"]:
            failures[answer["msg"]] = None
    return {"changed": False, "found": found, **({"failed": True, "msg": "\n".join(failures)} if failures else {})}
