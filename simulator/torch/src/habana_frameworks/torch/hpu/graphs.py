"""HPU graphs: what is captured runs again, operation by operation, at a replay.

Signatures, the checks, and what is copied at a replay: [bridge] 1.19, `hpu/graphs.py` and
`backend/habana_device/HPUGraph.cpp`.
"""

from __future__ import annotations

from collections import UserDict
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any

import torch

from gaudi3_hpu_simulator.passing import allow_graphs
from habana_frameworks.torch.hpu import streams
from habana_frameworks.torch.hpu.training_graphs import ModuleCacher, TensorPacker, make_graphed_callables

__all__ = [
    "CachedParams", "HPUGraph", "ModuleCacher", "TensorPacker", "copy_to", "graph", "input_hash",
    "is_current_stream_capturing", "make_graphed_callables", "wrap_in_hpu_graph", "wrap_in_hpu_graph_func",
]  # fmt: skip

_current: HPUGraph | None = None


class HPUGraph:
    """Operations from `capture_begin` to `capture_end`, which `replay` runs again into the same tensors."""

    def __init__(self) -> None:
        self._recording: Any = None
        self._capturing = False
        self._inputs: tuple[torch.Tensor, ...] = ()
        self._stream: Any = None

    def capture_begin(self, dry_run: bool = False) -> None:
        """Note the operations from now on. A dry run computes here all the same."""
        global _current
        allow_graphs()
        if _current is not None:
            raise RuntimeError("GRAPH:: graph Capture already in progress")
        from gaudi3_hpu_simulator.recording import Recording

        _current, self._capturing = self, True
        self._stream = streams.current_stream()
        self._recording = Recording()
        self._recording.__enter__()

    def capture_end(self) -> None:
        """Note no more."""
        global _current
        if not self._capturing:
            return
        self._recording.__exit__(None, None, None)
        _current, self._capturing = None, False
        if streams.current_stream() != self._stream:
            raise RuntimeError("GRAPH:: Capture must end on the same stream it began on.")

    def replay(self, asynchronous: bool = False) -> None:
        """Run the operations again; their results land in the tensors of the capture."""
        if self._capturing:
            raise RuntimeError("GRAPH:: Capture in progress")
        if self._recording is not None:
            self._recording.replay()

    def replayV2(self, static_tlist: list[torch.Tensor], tlist: list[torch.Tensor], asynchronous: bool = False) -> None:
        """Copy tensors into those of the capture, and replay."""
        copy_to(static_tlist, tlist)
        self.replay(asynchronous)

    def replayV3(self, tlistI: Iterable[torch.Tensor], asynchronous: bool = False) -> None:
        """Copy tensors into the marked inputs, and replay."""
        copy_to(list(self._inputs), list(tlistI))
        self.replay(asynchronous)

    def mark_user_inputs(self, static_tlist: Iterable[torch.Tensor]) -> None:
        """Say which tensors `replayV3` is to fill."""
        self._inputs = tuple(static_tlist)

    def mark_user_outputs(self, static_tlist: Iterable[torch.Tensor]) -> None:
        """Nothing to do: all tensors of the capture are kept."""

    def get_user_input_match_indices(self) -> list[int]:
        """Inputs that need no copy: none."""
        return []

    def clear_inputs(self) -> None:
        """Nothing to do: no inputs are held as outputs."""

    def reset(self) -> None:
        """Forget the operations and their tensors."""
        self._recording, self._inputs = None, ()


class graph:
    """Captures what runs inside a `with` into an HPUGraph."""

    default_capture_stream: Any = None

    def __init__(self, hpu_graph: HPUGraph, stream: Any = None, dry_run: bool = False) -> None:
        if stream is None:
            if graph.default_capture_stream is None:
                graph.default_capture_stream = streams.Stream()
            stream = graph.default_capture_stream
        self.capture_stream = stream
        self.stream_ctx = streams.stream(stream)
        self.hpu_graph = hpu_graph
        self.dry_run = dry_run

    def __enter__(self) -> None:
        self.stream_ctx.__enter__()
        try:
            self.hpu_graph.capture_begin(self.dry_run)
        except BaseException:
            self.stream_ctx.__exit__(None, None, None)
            raise

    def __exit__(self, *error: object) -> None:
        self.hpu_graph.capture_end()
        self.stream_ctx.__exit__(*error)


def is_current_stream_capturing() -> bool:
    """Whether a capture is in progress."""
    return _current is not None


class CachedParams:
    """A captured graph with the tensors that go in and come out."""

    def __init__(
        self,
        graph_inputs: Any,
        graph_outputs: Any,
        graph: HPUGraph,
        out_tinfo_list: Any = None,
        asynchronous: bool = False,
    ) -> None:
        self.graph_inputs, self.graph_outputs, self.graph = graph_inputs, graph_outputs, graph
        self.out_tinfo_list, self.asynchronous = out_tinfo_list, asynchronous


def input_hash(obj: Any) -> int:
    """What tells graphs apart: shapes and layouts of tensors, values of all else, and autocast."""
    autocast = torch.is_autocast_enabled("hpu")
    if isinstance(obj, dict):
        return input_hash(tuple(obj.items()))
    if isinstance(obj, torch.Tensor):
        return hash((obj.shape, obj.stride(), obj.storage_offset(), obj.dtype, autocast))
    if isinstance(obj, (list, tuple)) and not isinstance(obj, torch.Size):
        return hash((tuple(input_hash(part) for part in obj), autocast))
    if isinstance(obj, UserDict):
        return hash(tuple((name, tuple(value)) for name, value in obj.items()))
    return hash((obj, autocast))


def copy_to(dst: Any, src: Any) -> None:
    """Fill the tensors of a capture's arguments with those of another call."""
    assert type(dst) is type(src)
    if isinstance(dst, dict):
        for (name, part), (other, value) in zip(dst.items(), src.items(), strict=True):
            assert name == other
            copy_to(part, value)
    elif isinstance(dst, (list, tuple)) and not isinstance(dst, torch.Size):
        for part, value in zip(dst, src, strict=True):
            copy_to(part, value)
    elif isinstance(dst, torch.Tensor) and dst is not src:
        with torch.no_grad():
            dst.copy_(src, non_blocking=True)


def wrap_in_hpu_graph_func(
    func: Callable[..., Any],
    asynchronous: bool = False,
    disable_tensor_cache: bool = False,
    dry_run: bool = False,
    max_graphs: int | None = None,
) -> Callable[..., Any]:
    """A function that captures a graph for each kind of arguments at its first call, and replays it afterwards.

    A replay fills the tensors of the first call's arguments, and returns the first call's results with new values.
    `bypass_hpu_graphs=True` among the arguments runs the function itself, `warmup_mode=True` skips replays.
    """
    allow_graphs()
    cache: dict[int, CachedParams] = {}
    return _wrapped(func, cache, asynchronous, max_graphs)


def _wrapped(
    func: Callable[..., Any], cache: dict[int, CachedParams], asynchronous: bool, max_graphs: int | None
) -> Callable[..., Any]:
    @wraps(func)
    def forward(*args: Any, **kwargs: Any) -> Any:
        warmup = kwargs.pop("warmup_mode", False)
        if kwargs.pop("bypass_hpu_graphs", False):
            return func(*args, **kwargs)
        kind = input_hash((args, kwargs))
        kwargs.pop("cache_tensors_list", None)
        found = cache.get(kind)
        if found is None:
            if max_graphs is not None and len(cache) == max_graphs:
                return func(*args, **kwargs)
            captured = HPUGraph()
            captured.capture_begin()
            try:
                results = func(*args, **kwargs)
            finally:
                captured.capture_end()
            cache[kind] = CachedParams((args, kwargs), results, captured, None, asynchronous)
            return results
        if not warmup:
            copy_to(found.graph_inputs, (args, kwargs))
            found.graph.replay(found.asynchronous)
        return found.graph_outputs

    return forward


def wrap_in_hpu_graph(
    module: Any,
    asynchronous: bool = False,
    disable_tensor_cache: bool = False,
    dry_run: bool = False,
    max_graphs: int | None = None,
) -> Any:
    """The module with its forward as of `wrap_in_hpu_graph_func`, and with `clear_cache()` and `clear_inputs()`."""
    allow_graphs()
    cache: dict[int, CachedParams] = {}
    module.forward = _wrapped(module.forward, cache, asynchronous, max_graphs)
    module.clear_cache = cache.clear
    module.clear_inputs = lambda: None
    return module
