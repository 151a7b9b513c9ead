"""Times one round of one row: a training step without its data, from the forward pass to the optimizer's step."""

from __future__ import annotations

import contextlib
import gc
import time
from pathlib import Path
from typing import Any

import torch

from gaudi3_benchmark.result import Round, Row, Settings
from gaudi3_benchmark.workloads import Workload, build
from gaudi3_scale.hpu.device import Device, is_out_of_memory
from gaudi3_scale.models.adamw import build_optimizer
from gaudi3_scale.precision import GaudiMixedPrecision, build_precision


def measure(row: Row, settings: Settings, device: Device) -> Row:
    """The row with one more round, or with why it has none.

    Out of memory is a result. Whatever else fails is in the row too, so that the others are measured.
    """
    outcome, words = "failed", ""
    try:
        return _round(row, settings, device)
    except Exception as error:
        short = is_out_of_memory(error)
        outcome = "out_of_memory" if short else "failed"
        words = f"{type(error).__name__}: {(str(error).strip() or 'no message').splitlines()[0][:300]}"
    finally:
        # What the failed step had allocated is held by the error's frames until here.
        gc.collect()
        if device.compile_backend(settings.mode) is not None:
            torch.compiler.reset()  # what other rows left counts towards the limit of recompilations
        if device.type != "cpu":
            empty = getattr(torch.get_device_module(device.torch_device()), "empty_cache", None)
            if empty is not None:
                empty()
    return row.model_copy(update={"outcome": outcome, "words": words, "rounds": ()})


def _round(row: Row, settings: Settings, device: Device) -> Row:
    reset_peak(device)
    work = build(row.case, settings.mode, device)
    precision = build_precision(row.case.precision, device)
    model = precision.convert_module(work.model)
    optimizer = build_optimizer(model, work.config.train)
    try:
        times = [_step(work, precision, optimizer, device) for _ in range(settings.warm_up + settings.repeats)]
    finally:
        precision.teardown()
    timed = Round(
        warm_up=tuple(times[: settings.warm_up]),
        seconds=tuple(times[settings.warm_up :]),
        peak_memory_bytes=peak_memory(device),
    )
    return row.model_copy(
        update={
            "outcome": "measured",
            "words": "",
            "unit": work.unit,
            "units_per_step": work.units_per_step,
            "parameters": work.parameters,
            "flops_per_step": work.flops_per_step,
            "rounds": (*row.rounds, timed),
        }
    )


def _step(work: Workload, precision: GaudiMixedPrecision, optimizer: Any, device: Device) -> float:
    """Seconds from when the device is idle to when it is idle again."""
    wait_for(device)
    began = time.perf_counter()
    with precision.forward_context():
        loss = work.loss()
    loss.backward()  # type: ignore[no-untyped-call]
    device.step_boundary()
    optimizer.step()
    optimizer.zero_grad()
    precision.drop_cache()
    device.step_boundary()
    wait_for(device)
    return time.perf_counter() - began


def wait_for(device: Device) -> None:
    """Until the device has done what it was given."""
    if device.type != "cpu":
        torch.get_device_module(device.torch_device()).synchronize()


def reset_peak(device: Device) -> None:
    """Forget the highest use of memory so far."""
    if device.type == "cpu":
        with contextlib.suppress(OSError):
            Path("/proc/self/clear_refs").write_text("5")  # VmHWM; see proc_pid_clear_refs(5)
        return
    torch.get_device_module(device.torch_device()).reset_peak_memory_stats(device.index)


def peak_memory(device: Device) -> int | None:
    """Bytes since `reset_peak`; on CPU of the whole process, and None where the kernel does not tell."""
    if device.type != "cpu":
        return int(torch.get_device_module(device.torch_device()).max_memory_allocated(device.index))
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return None
