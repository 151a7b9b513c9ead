"""Bytes of the cards: what is counted, what is left, and where it ends."""

from __future__ import annotations

import gc
import subprocess
from collections.abc import Callable, Iterator

import pytest
import torch
from torch import nn

import gaudi3_hpu_simulator

KEYS = {
    "Limit", "InUse", "MaxInUse", "NumAllocs", "NumFrees", "ActiveAllocs", "MaxAllocSize", "TotalSystemAllocs",
    "TotalSystemFrees", "TotalActiveAllocs",
}  # fmt: skip
CARD = 136465870848


@pytest.fixture
def small() -> Iterator[int]:
    """The card has room for a million bytes more."""
    limit = torch.hpu.memory_allocated(0) + 1_000_000
    gaudi3_hpu_simulator.set_memory_limit(limit)
    yield limit
    gaudi3_hpu_simulator.set_memory_limit(CARD)


def test_statistics_have_habanas_keys_and_the_bytes_of_the_tensors(clean: None) -> None:
    before = torch.hpu.memory_stats()
    assert before.keys() == KEYS
    tensor = torch.empty(1000, dtype=torch.float32, device="hpu")
    after = torch.hpu.memory_stats("hpu:0")
    assert after["InUse"] - before["InUse"] == 4000 == tensor.nbytes
    assert after["NumAllocs"] - before["NumAllocs"] == 1
    assert after["ActiveAllocs"] - before["ActiveAllocs"] == 1
    assert after["Limit"] == CARD == torch.hpu.memory_reserved() == torch.hpu.max_memory_reserved()
    assert torch.hpu.mem_get_info() == (CARD - after["InUse"], CARD)
    assert torch.accelerator.memory_allocated() == after["InUse"] == torch.hpu.memory_allocated()
    assert "InUse" in torch.hpu.memory_summary()


def test_peak_is_what_was_in_use_at_once(clean: None) -> None:
    torch.hpu.reset_peak_memory_stats()
    base = torch.hpu.memory_allocated()
    first = torch.empty(1000, dtype=torch.uint8, device="hpu")
    del first
    second = torch.empty(400, dtype=torch.uint8, device="hpu")
    assert torch.hpu.max_memory_allocated() - base == 1000
    torch.hpu.reset_peak_memory_stats()
    assert torch.hpu.max_memory_allocated() - base == second.nbytes


def test_accumulated_counts_start_again(clean: None) -> None:
    kept = torch.empty(10, device="hpu")
    torch.hpu.reset_accumulated_memory_stats()
    stats = torch.hpu.memory_stats()
    assert (stats["NumAllocs"], stats["NumFrees"]) == (0, 0)
    assert stats["ActiveAllocs"] >= 1 and kept.device.type == "hpu"


def test_what_a_kernel_allocates_for_itself_counts(clean: None) -> None:
    values = torch.randn(64, 64, device="hpu")
    torch.hpu.reset_peak_memory_stats()
    base = torch.hpu.memory_allocated()
    torch.linalg.svdvals(values)
    assert torch.hpu.max_memory_allocated() - base >= values.nbytes, "the decomposition works on a copy"


def test_usage_is_in_bytes(clean: None) -> None:
    base = torch.hpu.memory_usage()
    tensor = torch.zeros(250, device="hpu")
    assert torch.hpu.memory_usage() - base == 1000 == tensor.nbytes
    assert torch.hpu.memory_usage("hpu:0") == torch.hpu.memory_allocated()


def test_a_card_has_less_than_its_dram_chips() -> None:
    """As a log of release 1.18 on a Gaudi 3 has it; hl-smi shows all 131072 MiB."""
    assert torch.hpu.mem_get_info()[1] == 136465870848 < 131072 << 20
    assert torch.hpu.get_device_properties().total_memory == 136465870848


HOST = """
import os, sys, torch
def free():
    with open("/proc/meminfo") as file:
        return next(int(line.split()[1]) << 10 for line in file if line.startswith("MemAvailable:"))
kept = torch.ones(1, device="hpu")
parts = [torch.empty(int(free() * part), dtype=torch.uint8, device="hpu") for part in ({})]
"""


@pytest.mark.parametrize("parts", ["1.05,", "0.995,", "0.3, 0.5, 0.4"])
def test_memory_ends_where_the_hosts_does(parts: str, run: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    """Nothing is written into what is allocated, so that the host is in no danger where nothing refuses."""
    done = run(HOST.format(parts), GAUDI3_HPU_SIMULATOR_HBM=str(2**60))
    assert done.returncode == 1, f"{parts} of the host's free memory were lent"
    assert "RuntimeError: [Rank:0] FATAL ERROR :: MODULE:PT_DEVMEM Allocation failed for size::" in done.stderr


def test_half_of_the_hosts_memory_is_lent_again_and_again(
    run: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    code = (
        HOST.format("0.3, 0.1") + "for _ in range(5):\n    del parts; parts = torch.empty(free() // 8, device='hpu')\n"
    )
    done = run(code, GAUDI3_HPU_SIMULATOR_HBM=str(2**60))
    assert done.returncode == 0, done.stderr


def test_memory_ends_at_the_last_byte(small: int, clean: None) -> None:
    tensor = torch.empty(1_000_000, dtype=torch.uint8, device="hpu:0")
    assert torch.hpu.memory_allocated(0) == small
    with pytest.raises(RuntimeError) as caught:
        torch.empty(1, dtype=torch.uint8, device="hpu:0")
    assert str(caught.value).splitlines()[0] == (
        "[Rank:0] FATAL ERROR :: MODULE:PT_DEVMEM Allocation failed for size::1 (0)MB"
    )
    assert type(caught.value) is RuntimeError
    del tensor
    assert torch.empty(1_000_000, dtype=torch.uint8, device="hpu:0").numel(), "what was freed can be used again"


def test_running_out_inside_an_operation_says_the_size_in_mebibytes_and_the_rank(
    small: int, clean: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RANK", "5")
    rows = torch.ones(1024, 1, device="hpu")
    text = r"\[Rank:5\] FATAL ERROR :: MODULE:PT_DEVMEM Allocation failed for size::4194304 \(4\)MB"
    with pytest.raises(RuntimeError, match=text):
        rows @ rows.T


def test_a_thousand_steps_leave_no_byte(clean: None) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.Dropout(0.1), nn.SiLU(), nn.Linear(16, 1)).to("hpu")
    optimizer = torch.optim.AdamW(model.parameters())
    used = set()
    for step in range(1000):
        with torch.autocast("hpu", dtype=torch.bfloat16, enabled=step % 2 == 0):
            loss = model(torch.randn(4, 8, device="hpu")).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        del loss
        if step >= 1:
            used.add(torch.hpu.memory_allocated())
    assert len(used) == 1, f"use between steps varied: {sorted(used)}"
    del model, optimizer
    gc.collect()


def test_storages_shrink_and_grow(clean: None) -> None:
    base = torch.hpu.memory_allocated()
    tensor = torch.arange(10, dtype=torch.float32, device="hpu")
    storage = tensor.untyped_storage()
    storage.resize_(0)
    assert torch.hpu.memory_allocated() - base == 0
    storage.resize_(40)
    assert torch.hpu.memory_allocated() - base == 40
    tensor.copy_(torch.arange(10.0))
    assert tensor.tolist() == list(range(10))
