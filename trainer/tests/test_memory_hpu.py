"""Memory on the simulated `hpu` device: its allocator counts on its own, and refuses what is over its limit."""

from __future__ import annotations

import json
from typing import Any

import interpreter
import pytest
from conftest import SIMULATOR, zygote
from small_llama import loss, small_llama, spec

from gaudi3_scale.memory import predict_step

BATCH = 12

pytestmark = pytest.mark.skipif(
    not SIMULATOR.is_dir(),
    reason="THE SIMULATED hpu DEVICE IS NOT BUILT: run `make trainer-test`, which builds it first",
)

COMMON = """
import json, sys, torch
from functools import partial
from small_llama import Operations, loss, samples, small_llama, spec
from gaudi3_scale.hpu.device import resolve
from gaudi3_scale.memory import AdvancedMemoryManager, MemoryOptimizer, plan_recompute, predict_step
from gaudi3_scale.memory.checkpointing import checkpoint_all
from gaudi3_scale.precision import GaudiMixedPrecision
device = resolve("hpu", 0, 1)

def steps(model):
    before = torch.hpu.memory_allocated()
    model, batch = model.to("hpu"), samples(12).to("hpu")
    optimizer = torch.optim.AdamW(model.parameters(), foreach=False)
    torch.hpu.reset_peak_memory_stats()
    for _ in range(2):
        value = loss(model, batch)
        model.zero_grad()
        value.backward()
        del value
        optimizer.step()
    return torch.hpu.memory_stats()["MaxInUse"] - before
"""


def on_hpu(script: str, limit: int = 2**30) -> dict[str, Any]:
    """What a script prints last, as JSON, on a device with so many bytes."""
    done = interpreter.run(zygote(cards=True), "-c", COMMON + script, GAUDI3_HPU_SIMULATOR_HBM=str(limit))
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_a_plan_keeps_to_the_memory_of_the_device() -> None:
    limit = int(0.7 * predict_step(small_llama(), loss, spec(BATCH)).peak)
    script = """
plan = plan_recompute(small_llama(), loss, lambda batch: [samples(batch)], 12, device.memory_limit(), margin=0.0)
try:
    steps(small_llama())
    error = None
except RuntimeError as failure:
    error = str(failure)
torch.hpu.empty_cache()
model = small_llama()
plan.apply(model)
peak = steps(model)
print(json.dumps({"limit": device.memory_limit(), "error": error, "peak": peak, "predicted": plan.predicted_peak}))
"""
    found = on_hpu(script, limit)
    assert found["limit"] == limit
    assert "MODULE:PT_DEVMEM Allocation failed" in found["error"]  # without the plan it does not fit
    assert found["peak"] <= limit
    assert found["predicted"] == pytest.approx(found["peak"], rel=0.01)


def test_options_on_the_device() -> None:
    script = """
from habana_frameworks.torch.hpex import kernels
calls = {"FusedSDPA": 0, "RotaryPosEmbeddingHelperV2": 0}
def count(name):
    function = getattr(kernels, name)
    original = function.apply
    def apply(*arguments):
        calls[name] += 1
        return original(*arguments)
    function.apply = staticmethod(apply)
for name in calls:
    count(name)

mixed = GaudiMixedPrecision()
model = mixed.convert_module(small_llama("eager").to("hpu"))
with Operations() as operations:
    with mixed.forward_context():
        value = loss(model, samples(2).to("hpu"))
    value.backward()
mixed.drop_cache()
gradient = model.model.layers[0].self_attn.q_proj.weight.grad.float().cpu()

reference = small_llama("eager")
with torch.autocast("cpu", dtype=torch.bfloat16):
    value = loss(reference, samples(2))
value.backward()
expected = reference.model.layers[0].self_attn.q_proj.weight.grad

peaks = {}
for level in ("none", "full"):
    model = small_llama("eager")
    GaudiMixedPrecision("32-true", device="hpu").convert_module(model)
    checkpoint_all(model, level)
    peaks[level] = [predict_step(model, loss, spec(12)).peak, steps(model)]
    del model

manager = AdvancedMemoryManager()
data = torch.utils.data.TensorDataset(torch.ones(4, 1))
(batch,) = next(iter(manager.loader(data, "hpu", batch_size=2)))
from gaudi3_scale.checkpoint.staging import Staging
there = torch.arange(3.0, device="hpu")
staged = Staging().stage({"there": there})["there"]
locked = [device.pin(torch.ones(2)).is_pinned(), staged.is_pinned(), torch.equal(staged, there.cpu())]
graphs = MemoryOptimizer(enable_hpu_graphs=True)
graphs.optimize_model(torch.nn.Linear(2, 2).to("hpu"))

from gaudi3_scale.profiler import GaudiProfiler
with GaudiProfiler(schedule_wait=0, schedule_warmup=1, schedule_active=1) as profiler:
    for _ in range(2):
        torch.ones(2, 2, device="hpu") @ torch.ones(2, 2, device="hpu")
        profiler.step()
print(json.dumps({
    "calls": calls, "report": mixed.report(), "dtypes": [str(d) for (op, d) in operations.dtypes if op == "mm"],
    "error": ((gradient - expected).norm() / expected.norm()).item(), "peaks": peaks, "pinned": batch.is_pinned(),
    "locked": locked,
    "pin": manager.report()["pin_memory"], "graphs": graphs.report()["enable_hpu_graphs"],
    "summary": profiler.summary().splitlines()[:3],
}))
"""
    found = on_hpu(script)
    # the mixed pass: 3 blocks, and in each q and k; then two steps, twice, and the recomputation of one of the two
    attended = 3 + 3 * 2 + 3 * 2 * 2
    assert found["calls"] == {"FusedSDPA": attended, "RotaryPosEmbeddingHelperV2": 2 * attended}
    assert found["report"]["use_flash_attention_v2"] == "Habana's FusedSDPA with recomputed softmax instead of eager"
    assert found["report"]["use_fused_rope"] == "Habana's fused rotary kernel, in 3 modules"
    assert found["dtypes"] == ["torch.bfloat16"]
    assert found["error"] < 0.02
    for predicted, peak in found["peaks"].values():
        assert predicted == pytest.approx(peak, rel=0.01)
    assert found["locked"] == [True] * 3  # a batch of the job, and what a checkpoint is staged in
    assert found["pinned"] is True and found["pin"] == "batches in page-locked memory, copied unawaited"
    assert found["graphs"].startswith("no effect: HPU graphs exist in lazy mode only")
    assert found["summary"][0] == "1 step(s) recorded on hpu (GAUDI3, simulated)"
    assert found["summary"][1] == "no kernel of the device was recorded: all times are the host's"
