"""HPU graphs: in lazy mode a replay computes what its capture computed, from new inputs, into the same tensors."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

import pytest
import torch
from torch import nn

Run = Callable[..., subprocess.CompletedProcess[str]]
NOTE = "gaudi3-hpu-simulator: HPU graphs run their operations again at each replay, nothing was recorded on a card"
LAZY = {"PT_HPU_LAZY_MODE": "1"}

CAPTURE = """
import torch
import habana_frameworks.torch as ht
total = torch.zeros({rows}, device="hpu")
given = torch.ones({rows}, 3, device="hpu")
graph = ht.hpu.HPUGraph()
with ht.hpu.graph(graph):
    turned = given.t()
    doubled = given * 2
    doubled[:, 0].fill_(7)
    total += doubled.sum(1) + turned.sum(0)
address = doubled.data_ptr()
assert ht.hpu.is_current_stream_capturing() is False
for value in (3.0, 5.0):
    given.fill_(value)
    total.zero_()
    graph.replay()
    assert doubled.tolist() == [[7, 2 * value, 2 * value]] * {rows}, doubled
    assert total.tolist() == [7 + 7 * value] * {rows}, total
    assert doubled.data_ptr() == address
again = ht.hpu.HPUGraph()
again.capture_begin()
other = ht.hpu.HPUGraph()
for action, sentence in ((other.capture_begin, "already in progress"), (again.replay, "Capture in progress")):
    try:
        action()
    except RuntimeError as error:
        assert sentence in str(error), error
    else:
        raise AssertionError(sentence)
again.capture_end()
print("done")
"""
WRAP = """
import torch
import habana_frameworks.torch as ht
torch.manual_seed(0)
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(4, 6), torch.nn.GELU(), torch.nn.Linear(6, 2))
        self.calls = 0
    def forward(self, values, scale=1.0):
        self.calls += 1
        return {"result": self.layers(values) * scale}
plain = Model().to("hpu").eval()
wrapped = ht.hpu.wrap_in_hpu_graph(Model().to("hpu").eval(), max_graphs=2)
wrapped.load_state_dict(plain.state_dict())
with torch.no_grad():
    first = None
    for rows, scale in ((2, 1.0), (2, 1.0), (3, 1.0), (2, 1.0), (2, 4.0), (3, 1.0)):
        values = torch.randn(rows, 4, device="hpu")
        seen = wrapped(values.clone(), scale=scale)["result"]
        torch.testing.assert_close(seen, plain(values, scale=scale)["result"])
        if first is None:
            first = seen
    assert wrapped(torch.zeros(2, 4, device="hpu"), scale=1.0)["result"] is first  # the captured tensor
    calls = wrapped.calls
    wrapped(torch.zeros(2, 4, device="hpu"), scale=1.0, bypass_hpu_graphs=True)
    assert (calls, wrapped.calls) == (3, 4), (calls, wrapped.calls)  # two kinds captured, one beyond max_graphs
    wrapped.clear_cache(); wrapped.clear_inputs()
    wrapped(torch.zeros(2, 4, device="hpu"), scale=1.0)
    assert wrapped.calls == 5
cached = ht.hpu.ModuleCacher(max_graphs=3)(Model().to("hpu"), inplace=True)
cached(torch.ones(1, 4, device="hpu"))["result"].sum().backward()
cached.set_iteration_count(1)
graphed = ht.hpu.make_graphed_callables(torch.nn.Linear(2, 2).to("hpu"), (torch.ones(1, 2, device="hpu"),))
graphed(torch.ones(1, 2, device="hpu")).sum().backward()
print("done")
"""


def test_a_replay_computes_anew_and_into_the_same_tensors(run: Run) -> None:
    done = run(CAPTURE.format(rows=4), **LAZY)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
    assert done.stderr.count(NOTE) == 1


def test_wrapped_modules_give_what_they_gave_before(run: Run) -> None:
    done = run(WRAP, **LAZY)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
    assert done.stderr.count(NOTE) == 1
    assert done.stderr.count("modules in ModuleCacher train without graphs, nothing was recorded") == 1


def test_a_setting_brings_the_refusal_back(run: Run) -> None:
    done = run(CAPTURE.format(rows=2), GAUDI3_HPU_SIMULATOR_GRAPHS="refuse", **LAZY)
    assert done.returncode == 1
    assert "has no graphs to record and replay: GAUDI3_HPU_SIMULATOR_GRAPHS=refuse asks for this error" in done.stderr


def test_there_are_no_graphs_in_eager_mode() -> None:
    attempts = (
        lambda: torch.hpu.wrap_in_hpu_graph(nn.Linear(2, 2)),
        lambda: torch.hpu.HPUGraph().capture_begin(),
        lambda: torch.hpu.make_graphed_callables(nn.Linear(2, 2), (torch.ones(2),)),
    )
    for attempt in attempts:
        with pytest.raises(NotImplementedError, match=r"no HPU graphs in eager mode.*set PT_HPU_LAZY_MODE=1"):
            attempt()
    # ModuleCacher takes no graphs outside lazy mode, and trains all the same.
    model = nn.Linear(2, 2).to("hpu")
    assert torch.hpu.ModuleCacher()(model) is model
    model(torch.ones(1, 2, device="hpu")).sum().backward()


READS = """
import torch
values = torch.tensor([1.0, 0.0], device="hpu")
for name, action in (
    ("aten::_local_scalar_dense", lambda: values.sum().item()),
    ("aten::nonzero", lambda: values.nonzero()),
    ("aten::_to_copy", lambda: (values + 1).cpu()),
):
    graph = torch.hpu.HPUGraph()
    graph.capture_begin()
    try:
        action()
    except RuntimeError as error:
        assert str(error) == f"{name} is not supported during HPU Graph capturing", error
    else:
        raise AssertionError(name)
    finally:
        graph.capture_end()
print("done")
"""


def test_a_capture_reads_no_values(run: Run) -> None:
    done = run(READS, **LAZY)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr


def test_tensors_are_packed_and_put_back() -> None:
    packer = torch.hpu.TensorPacker()
    nested = {"one": [torch.ones(1), 5], "two": (torch.zeros(2), {"three": torch.ones(3)})}
    tensors, metadata = packer.pack(nested)
    assert [tensor.numel() for tensor in tensors] == [1, 2, 3]
    again = packer.unpack([tensor + 1 for tensor in tensors], metadata)
    assert (again["one"][0].item(), again["one"][1], again["two"][1]["three"].tolist()) == (2, 5, [2, 2, 2])


def test_a_module_that_cannot_be_cached_says_why() -> None:
    class Loose(nn.Module):
        def forward(self, *values: torch.Tensor) -> torch.Tensor:
            return values[0]

    with pytest.raises(AssertionError, match=r"no forward with the argument \*values"):
        torch.hpu.ModuleCacher()(Loose())
