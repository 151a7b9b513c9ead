"""Profiling of a few steps, with torch's profiler and what it can see of the device.

In a loop of one's own:

    with GaudiProfiler(schedule_wait=1, schedule_warmup=1, schedule_active=3) as profiler:
        for batch in batches:
            train(batch)
            profiler.step()
    profiler.export_chrome_trace("trace.json")
    profiler.print_summary()

or `Trainer(profiler=GaudiProfiler(dirpath="profile"))`, where a step is a micro-batch.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from lightning.pytorch.profilers import Profiler
from torch.profiler import ProfilerActivity, profile, record_function, schedule, supported_activities

from gaudi3_scale.errors import ConfigError, TrainerError
from gaudi3_scale.files import create

ACTIVITIES = ("cpu", "hpu", "cuda", "memory")
SYNAPSE_TRACE = "HABANA_PROFILE"
"""Unset or `profile_api_light`: torch's profiler records the device; `1` or `true`: Synapse traces on its own."""


class GaudiProfiler(Profiler):
    """Records `schedule_active` steps, after `schedule_wait` without and `schedule_warmup` with a running profiler.

    Args:
        activities: any of `cpu`, `hpu`, `cuda` (operations and kernels of each) and `memory` (what each operation
            allocates). What this torch cannot record is left out, and `not_recorded` says why.
        schedule_wait: steps before the profiler is started.
        schedule_warmup: steps that are recorded and thrown away, as the first ones carry the profiler's own start.
        schedule_active: steps that are kept.
        dirpath: as Lightning's profiler, writes `<filename>-<rank>.json` there when the run ends; None = no file.
        filename: its beginning.
    """

    _running = False  # also where __init__ refused: Lightning's __del__ calls teardown
    _profile: profile | None = None

    def __init__(
        self,
        activities: Sequence[str] = ("hpu", "cpu", "memory"),
        schedule_wait: int = 1,
        schedule_warmup: int = 1,
        schedule_active: int = 3,
        dirpath: str | Path | None = None,
        filename: str = "trace",
    ) -> None:
        super().__init__(dirpath=dirpath, filename=filename)
        unknown = [each for each in activities if each not in ACTIVITIES]
        if unknown or not activities:
            raise ConfigError(f"activities is {list(activities)}: give any of {', '.join(ACTIVITIES)}.")
        if schedule_wait < 0 or schedule_warmup < 0 or schedule_active < 1:
            raise ConfigError(
                f"The schedule is wait {schedule_wait}, warmup {schedule_warmup}, active {schedule_active}: the first "
                "two must be at least 0, the last at least 1."
            )
        self.activities = tuple(activities)
        self.not_recorded: dict[str, str] = {}
        """Activity and why it cannot be recorded here."""
        self._before, self._active = schedule_wait + schedule_warmup, schedule_active
        self._schedule = schedule(wait=schedule_wait, warmup=schedule_warmup, active=schedule_active, repeat=1)
        self._traces = dirpath is not None
        self._steps = 0
        self._exported: Path | None = None
        self._regions: dict[str, Any] = {}

    @property
    def recorded_steps(self) -> int:
        """Steps that are in the trace."""
        return max(0, min(self._steps - self._before, self._active))

    def __enter__(self) -> GaudiProfiler:
        self._profile = profile(
            activities=self._kinds(), schedule=self._schedule, profile_memory="memory" in self.activities
        )
        self._profile.__enter__()  # type: ignore[no-untyped-call]
        self._running = True
        self._steps, self._exported = 0, None
        return self

    def __exit__(self, *error: Any) -> None:
        if self._running and self._profile is not None:
            self._running = False
            self._profile.__exit__(*error)  # type: ignore[no-untyped-call]

    def step(self) -> None:
        """Say that a step has ended."""
        if not self._running or self._profile is None:
            raise TrainerError("The profiler is not running: call step() within `with GaudiProfiler() as profiler`.")
        self._steps += 1
        if self._steps == self._before + self._active and "memory" in self.activities:
            self._profile.add_metadata_json("memory", json.dumps(device_memory()))
        self._profile.step()
        if self._before <= self._steps < self._before + self._active:
            self._profile.add_metadata_json("device", json.dumps(device_name()))

    def export_chrome_trace(self, path: str | Path) -> None:
        """Write the recorded steps for chrome://tracing or Perfetto; `.gz` compresses; metadata has the device."""
        recorded, path = self._recorded(), Path(path)
        temporary = path.with_name(f".{secrets.token_hex(8)}.{path.name}")
        try:
            create(temporary).close()
            if self._exported is None:
                recorded.export_chrome_trace(str(temporary))
            else:  # torch writes a trace once
                shutil.copyfile(self._exported, temporary)
            temporary.replace(path)
        except OSError as error:
            raise TrainerError(
                f"The trace cannot be written to {path} ({error.strerror}): give another path."
            ) from None
        finally:
            temporary.unlink(missing_ok=True)
        self._exported = path

    def print_summary(self, rows: int = 15) -> None:
        """Print what took the time of the recorded steps, dearest first."""
        print(self.summary(rows))

    def summary(self, rows: int = 15) -> str:
        """The same as text. As the profiler of a Trainer's run, this ends the recording and writes the trace."""
        if self._steps == 0 and self._profile is None:
            return ""
        self.__exit__(None, None, None)
        recorded = self._recorded()
        averages = recorded.key_averages()
        events: Any = recorded.profiler
        kernels = {each.device_type().name for each in events.kineto_results.events() if each.name() != "[memory]"}
        on_device = kernels > {"CPU"}
        order = "self_device_time_total" if on_device else "self_cpu_time_total"
        lines = [f"{self.recorded_steps} step(s) recorded on {device_name()}"]
        lines += [f"{activity} is not recorded: {reason}" for activity, reason in self.not_recorded.items()]
        if not on_device and any(kind is not ProfilerActivity.CPU for kind in self._kinds()):
            lines.append("no kernel of the device was recorded: all times are the host's")
        if "memory" in self.activities and (memory := device_memory()):
            lines.append(", ".join(f"{name} {value:,} bytes" for name, value in memory.items()))
        if self._traces and self.dirpath is not None and self._exported is None:
            path = Path(self.dirpath) / f"{self.filename}-{self.local_rank}.json"
            path.parent.mkdir(parents=True, exist_ok=True)
            self.export_chrome_trace(path)
            lines.append(f"trace in {path}")
        return "\n".join([*lines, averages.table(sort_by=order, row_limit=rows)])

    def setup(self, stage: str, local_rank: int | None = None, log_dir: str | None = None) -> None:
        super().setup(stage, local_rank, log_dir)
        if not self._running:
            self.__enter__()

    def start(self, action_name: str) -> None:
        """Called by Lightning around what it does, which the trace shows by name."""
        if self._running:
            region = record_function(action_name)
            region.__enter__()  # type: ignore[no-untyped-call]
            self._regions[action_name] = region

    def stop(self, action_name: str) -> None:
        """The end of it; that of a training batch ends a step."""
        region = self._regions.pop(action_name, None)
        if region is not None:
            region.__exit__(None, None, None)
        if self._running and action_name == "run_training_batch":
            self.step()

    def teardown(self, stage: str | None) -> None:
        self.__exit__(None, None, None)
        super().teardown(stage)

    def _recorded(self) -> profile:
        if self._profile is None or self.recorded_steps == 0:
            raise TrainerError(
                f"No step was recorded: {self._steps} step(s) were made, and recording begins after {self._before} of "
                "wait and warmup; call step() after each step, or lower schedule_wait."
            )
        if self._running:
            self.__exit__(None, None, None)
        return self._profile

    def _kinds(self) -> list[ProfilerActivity]:
        """What of the wanted can be recorded; the rest goes to `not_recorded`."""
        supported = {kind.name: kind for kind in supported_activities()}  # type: ignore[no-untyped-call]
        kinds: list[ProfilerActivity] = []
        for name in self.activities:
            if name.upper() in supported:
                kinds.append(supported[name.upper()])
            elif name != "memory":
                self.not_recorded[name] = f"this torch ({torch.__version__}) has no profiler for {name}"
        if not kinds:
            raise ConfigError(
                f"Nothing of activities {list(self.activities)} can be recorded here "
                f"({'; '.join(self.not_recorded.values()) or 'memory alone is none'}): add cpu."
            )
        tracing = os.environ.get(SYNAPSE_TRACE, "profile_api_light")
        if "hpu" in self.activities and "hpu" not in self.not_recorded and tracing != "profile_api_light":
            raise ConfigError(
                f"{SYNAPSE_TRACE} is {tracing!r}, with which Synapse traces the device itself and torch's profiler "
                "cannot: unset it, or leave hpu out of activities."
            )
        return kinds


def device_name() -> str:
    """The device's own name and version for itself; cpu where there is no accelerator.

    Also says whose the times are: a device that is not hardware has no version of Intel's.
    """
    device = torch.accelerator.current_accelerator(check_available=True)
    if device is None:
        return "cpu"
    module = torch.get_device_module(device)
    return f"{device.type} ({module.get_device_name()}, {module.get_device_capability()})"


def device_memory() -> dict[str, int]:
    """Bytes by the accelerator's own count since the process began; empty on CPU, which keeps none."""
    device = torch.accelerator.current_accelerator(check_available=True)
    if device is None:
        return {}
    module = torch.get_device_module(device)
    return {"allocated": int(module.memory_allocated()), "peak": int(module.max_memory_allocated())}
