"""torch.compile on the simulated device: graph capture works, code generation is refused."""

from __future__ import annotations

from functools import cache
from typing import Any

from gaudi3_hpu_simulator.errors import refuse

INSTEAD = "use backend='eager' or 'aot_eager', which capture the graph and run it uncompiled"


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
    if "hpu_backend" not in list_backends(exclude_tags=()):
        register_backend(hpu_backend, "hpu_backend")


def hpu_backend(graph: Any, inputs: Any, **options: Any) -> Any:
    """Gaudi's graph compiler."""
    raise refuse("graph compiler (hpu_backend)", INSTEAD)


def _refuse_inductor(*arguments: Any, **options: Any) -> Any:
    raise refuse("code generation (inductor), which Gaudi does not support either", INSTEAD)
