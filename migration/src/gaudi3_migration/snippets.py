"""Lines of Python that take the place of optimum-habana's helpers, by the name that the program has for them."""

from __future__ import annotations

SNIPPETS = {
    "to_gb_rounded": """
def {name}(size):
    return round(size / 2**30, 2)
""",
    "get_hpu_memory_stats": """
def {name}(device=None):
    import torch

    stats = torch.hpu.memory_stats(device)
    keys = {{"memory_allocated": "InUse", "max_memory_allocated": "MaxInUse", "total_memory_available": "Limit"}}
    return {{f"{{key}} (GB)": round(stats[name] / 2**30, 2) for key, name in keys.items()}}
""",
    "warn0": """
def {name}(message, *args, state=None, **kwargs):
    import warnings

    from accelerate import PartialState

    if (state or PartialState()).is_main_process:
        kwargs.setdefault("stacklevel", 2)
        warnings.warn(message, *args, **kwargs)
""",
    "_is_peft_model": """
def {name}(model):
    import importlib.util

    if importlib.util.find_spec("peft") is None:
        return False
    import peft

    return isinstance(model, (peft.PeftModel, peft.PeftMixedModel))
""",
    "HabanaGenerationTime": """
class {name}:
    def __init__(self, iteration_times=None):
        self.iteration_times = [] if iteration_times is None else iteration_times
        self.start_time = self.last_duration = None

    def start(self):
        import time

        self.start_time = time.perf_counter()

    def is_running(self):
        return self.start_time is not None

    def step(self):
        if self.start_time is None:
            raise ValueError("start() comes before step()")
        before = self.start_time
        self.start()
        self.last_duration = self.start_time - before
        self.iteration_times.append(self.last_duration)

    def total_time(self):
        return sum(self.iteration_times)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *error):
        self.step()
""",
    "HabanaProfile": """
class {name}:
    def __init__(
        self, warmup=0, active=0, record_shapes=True, with_stack=False, name="", output_dir="./hpu_profile", wait=0
    ):
        import os

        import torch

        self.profiler = active > 0 and torch.profiler.profile(
            schedule=torch.profiler.schedule(wait=wait, warmup=warmup, active=active, repeat=1),
            on_trace_ready=torch.profiler.tensorboard_trace_handler(os.path.join(output_dir, name)),
            record_shapes=record_shapes,
            with_stack=with_stack,
        )

    def start(self):
        if self.profiler:
            self.profiler.start()

    def stop(self):
        if self.profiler:
            self.profiler.stop()

    def step(self):
        if self.profiler:
            self.profiler.step()

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *error):
        self.stop()
""",
}
"""By the name in optimum-habana."""
