"""Every method and property of DeepSpeed's HPU_Accelerator, with arguments of the right kind."""

from __future__ import annotations

import inspect
import sys
from typing import Any

import torch
from deepspeed.accelerator import get_accelerator


def arguments(name: str, accelerator: Any) -> list[Any]:
    """What to call the method with."""
    given: dict[str, list[Any]] = {
        "set_device": [0],
        "set_rng_state": [torch.get_rng_state()],
        "manual_seed": [7],
        "manual_seed_all": [7],
        "default_generator": [0],
        "stream": [accelerator.current_stream()],
        "range_push": ["range"],
        "lazy_call": [lambda: None],
        "pin_memory": [torch.ones(3)],
        "is_pinned": [torch.ones(3)],
        "on_accelerator": [torch.ones(3, device="hpu")],
        "create_op_builder": ["FusedAdamBuilder"],
        "get_op_builder": ["FusedAdamBuilder"],
        "set_visible_devices_envs": [{}, [0]],
        "set_compile_backend": ["hpu_backend"],
    }
    return given.get(name, [])


def special(accelerator: Any) -> dict[str, Any]:
    """Methods that need one another."""

    def graph() -> None:
        made = accelerator.create_graph()
        value = torch.ones(3, device="hpu")
        with accelerator.capture_to_graph(made):
            value = value + 1
        accelerator.replay_graph(made)
        assert value.device.type == "hpu"

    def empty_pinned(name: str) -> Any:
        return lambda: getattr(accelerator, name)(torch.ones(3), (2,))

    return {
        "create_graph": graph,
        "capture_to_graph": graph,
        "replay_graph": graph,
        "_torch_empty_pinned": empty_pinned("_torch_empty_pinned"),
        "_torch_pin_memory": lambda: accelerator._torch_pin_memory(torch.ones(3)),
    }


def main() -> None:
    """Call all, then tell each that failed."""
    accelerator = get_accelerator()
    assert type(accelerator).__name__ == "HPU_Accelerator", type(accelerator)
    together, failed, called = special(accelerator), [], 0
    for name, member in inspect.getmembers(type(accelerator)):
        own = (name in vars(type(accelerator)) and name != "__init__" and callable(member)) or isinstance(
            member, property
        )
        if not own or name.startswith("__"):
            continue
        called += 1
        try:
            if name in together:
                together[name]()
            elif isinstance(member, property):
                made = getattr(accelerator, name)
                if name.endswith("Tensor"):
                    assert made([1]).device.type == "hpu"
            else:
                getattr(accelerator, name)(*arguments(name, accelerator))
        except Exception as error:
            if name in together and "no HPU graphs in eager mode" in str(error):
                continue  # the row in lazy mode calls these
            failed.append(f"{name}: {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}")
    print("\n".join(failed))
    print(f"{called} called, {len(failed)} failed")
    if failed:
        sys.exit(f"MethodError: {len(failed)} of {called} methods failed: {'; '.join(failed)}")


if __name__ == "__main__":
    main()
