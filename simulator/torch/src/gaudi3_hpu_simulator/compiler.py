"""torch.compile on the simulated device: graphs are captured and run uncompiled, code generation is refused."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

from gaudi3_hpu_simulator.errors import refuse

INSTEAD = "use backend='hpu_backend', which captures the graph and runs it uncompiled"


@cache
def register() -> None:
    """Tell Dynamo and Inductor about the device."""
    from torch._dynamo import list_backends, register_backend
    from torch._dynamo.device_interface import register_interface_for_device
    from torch._inductor.codegen.common import register_backend_for_device, register_device_op_overrides
    from torch._inductor.codegen.cpu_device_op_overrides import CpuDeviceOpOverrides
    from torch._inductor.codegen.wrapper import PythonWrapperCodegen

    from gaudi3_hpu_simulator.interface import HpuInterface

    class RefusedCode(PythonWrapperCodegen):
        """Inductor's first question about a device: how to write its code."""

        @classmethod
        def create(cls, *arguments: Any, **options: Any) -> Any:
            return _refuse_inductor()

    register_interface_for_device("hpu", HpuInterface)
    for index in range(HpuInterface.device_count()):
        register_interface_for_device(f"hpu:{index}", HpuInterface)
    register_device_op_overrides("hpu", CpuDeviceOpOverrides())
    register_backend_for_device("hpu", _refuse_inductor, RefusedCode)
    if "hpu_backend" not in list_backends(exclude_tags=()):  # it is, where the distribution's metadata are found
        register_backend(hpu_backend, "hpu_backend")


def hpu_backend(graph: Any, inputs: Any, **arguments: Any) -> Any:
    """In place of Gaudi's graph compiler: the captured graph, through autograd's capture, operation by operation."""
    from torch._dynamo.backends.registry import lookup_backend

    from gaudi3_hpu_simulator.passing import run_uncompiled
    from gaudi3_hpu_simulator.strictness import is_on
    from habana_frameworks.torch import mode

    register()
    if mode.LAZY and is_on("compile-eager-only"):
        raise refuse("torch.compile in lazy mode, which Gaudi does not have either", "set PT_HPU_LAZY_MODE=0")
    run_uncompiled("graph compiler (hpu_backend)", "hpu_backend runs as aot_eager, nothing was compiled")
    config: Any = import_module("habana_frameworks.torch.dynamo.compile_backend.config")
    with config.patch(arguments.get("options") or {}):  # an option that does not exist is an error, as on a Gaudi
        return lookup_backend("aot_eager")(graph, inputs)


def _refuse_inductor(*arguments: Any, **options: Any) -> Any:
    raise refuse("code generation (inductor), which Gaudi does not support either", INSTEAD)
