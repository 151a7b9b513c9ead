"""OptimizedDDP: arithmetic of compression, choices by measurement, uneven shares, refusals."""

from __future__ import annotations

import doctest
import importlib
import itertools
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import ddp_ranks
import pytest
import ranks
import torch
from conftest import PACKAGES, assert_same
from forked import ForkedJob
from zygote import Client

from gaudi3_scale.config import load
from gaudi3_scale.cost.what_if import of_directory
from gaudi3_scale.distributed import OptimizedDDP
from gaudi3_scale.errors import ConfigError
from gaudi3_scale.hangs import ring
from gaudi3_scale.integration.ddp.balance import UnevenBatches, shares, weight
from gaudi3_scale.integration.ddp.bucket_size import FILE
from gaudi3_scale.integration.ddp.compression import CompressionTrial
from gaudi3_scale.integration.ddp.int8 import BLOCK, quantise, restore


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """What two gloo ranks found."""
    folder = tmp_path_factory.mktemp("ddp")
    ranks.run(2, folder, ddp_ranks.all_of, str(folder))
    results = [torch.load(folder / f"found-{rank}.pt") for rank in range(2)]
    results[0]["file"] = (folder / FILE).read_text()
    return results


def test_the_gradients_of_each_step_are_noted_for_whoever_asks_why_a_job_hangs(found: list[dict[str, Any]]) -> None:
    parameters = 8 * 1200 + 1200 + 1200 * 1200 + 1200 + 1200 + 1
    for each in found:
        assert each["gradients"] == [((parameters,), ring.LAUNCHED)] * 4


def mean(step: int) -> torch.Tensor:
    """Of the two ranks' gradients."""
    drawn = [torch.randn(3000, generator=torch.Generator().manual_seed(10 * step + rank)) for rank in (0, 1)]
    return (drawn[0] + drawn[1]) / 2


def test_the_name_is_there_and_importing_its_module_is_light() -> None:
    code = "import sys, gaudi3_scale.distributed.process_group as d; assert 'torch' not in sys.modules; d.OptimizedDPP"
    done = subprocess.run([sys.executable, "-c", code], env={"PYTHONPATH": PACKAGES}, capture_output=True, text=True)
    assert (
        "AttributeError: module 'gaudi3_scale.distributed.process_group' has no attribute 'OptimizedDPP'" in done.stderr
    )
    assert OptimizedDDP.strategy_name == "optimized_ddp"


@pytest.mark.parametrize("module", ["balance", "bucket_size", "compression", "int8", "interconnect", "strategy"])
def test_the_examples_of_the_documentation_hold(module: str) -> None:
    ran = doctest.testmod(
        importlib.import_module(f"gaudi3_scale.integration.ddp.{module}"), optionflags=doctest.IGNORE_EXCEPTION_DETAIL
    )
    assert ran.attempted and not ran.failed


def test_a_value_is_off_by_half_a_level_of_its_block_at_most() -> None:
    values = torch.randn(8 * BLOCK, generator=torch.Generator().manual_seed(1))
    values[: 2 * BLOCK] *= 1000
    values[BLOCK * 3 : BLOCK * 4] = 0
    numbers, scales = quantise(values)
    assert numbers.dtype == torch.int8 and scales.shape == (8,)
    largest = values.view(-1, BLOCK).abs().amax(dim=1)
    torch.testing.assert_close(scales, largest / 127)
    off = (values - restore(numbers, scales)).view(-1, BLOCK).abs().amax(dim=1)
    assert (off <= largest / 254 * 1.0001).all() and off[3] == 0


@pytest.mark.parametrize("name", ["int8", "powersgd"])
def test_all_ranks_get_one_mean_and_what_was_lost_is_paid_later(found: list[dict[str, Any]], name: str) -> None:
    mine, other = found[0][name], found[1][name]
    for kind in ("plain", "compressed", "paid"):
        for here, there in zip(mine[kind], other[kind], strict=True):
            assert torch.equal(here, there)
    for step, plain in enumerate(mine["plain"]):
        torch.testing.assert_close(plain, mean(step), rtol=1e-6, atol=1e-7)
    if name == "int8":  # one level of a scale of at most 5 / 127 at either end, and the error that was added
        for step, compressed in enumerate(mine["compressed"]):
            assert 0 < (compressed - mean(step + 2)).abs().max() < 0.1
    whole = sum(mine["compressed"]) + mine["paid"][0]
    torch.testing.assert_close(whole, sum(mean(step) for step in range(2, 8)), rtol=1e-4, atol=1e-4)
    assert mine["nothing"][0].abs().max() == 0


def test_a_gradient_that_is_not_finite_is_seen_everywhere_and_forgotten_after(found: list[dict[str, Any]]) -> None:
    for result in found:
        assert not result["int8"]["bad"][0].isfinite().all()
        assert result["int8"]["after"][0].isfinite().all()


def test_without_feedback_rounding_hides_small_gradients_for_good(found: list[dict[str, Any]]) -> None:
    # Two equal spikes cancel in the mean, and all other gradients are less than half a level: they never arrive.
    assert found[0]["without"] == 1.0
    assert found[0]["with feedback"] < 0.65
    assert 0.99**120 < 0.31  # of a descent without rounding


def test_measuring_buckets_changes_nothing_of_the_training(found: list[dict[str, Any]]) -> None:
    for result in found:
        fixed, measured, again = (result[name] for name in ("fixed", "measured", "again"))
        assert torch.equal(fixed["weights"], measured["weights"])
        assert torch.equal(fixed["random"], measured["random"])
        assert measured["said"][0] == "gradients go over a single node: all processes are on one node"
        size, took = re.fullmatch(
            r"buckets of ([56]) MiB.*: a backward pass took (5 MiB [\d.]+ ms, 6 MiB \(all, no overlap\) [\d.]+ ms)",
            measured["said"][1],
        ).groups()
        five, six = (float(each.split(" ")[-2]) for each in took.split(", 6"))
        assert (size == "5") == (five <= six) or five == six
        assert again["said"][1] == f"buckets of {size} MiB, as at an earlier start"
        assert list(json.loads(found[0]["file"]).values()) == [float(size)]
    assert found[0]["measured"]["said"][1] == found[1]["measured"]["said"][1]


def test_uneven_micro_batches_give_the_gradient_of_even_ones(found: list[dict[str, Any]]) -> None:
    torch.testing.assert_close(found[0]["uneven"]["weights"], found[0]["fixed"]["weights"], rtol=1e-5, atol=1e-6)
    assert torch.equal(found[0]["uneven"]["weights"], found[1]["uneven"]["weights"])


def test_compression_that_does_not_pay_is_switched_off_by_all_with_the_reason(found: list[dict[str, Any]]) -> None:
    verdict = found[0]["tried"]["verdict"]
    assert verdict == found[1]["tried"]["verdict"]  # within a machine only the work of rounding is left
    assert verdict.startswith("int8 compression is switched off, as it does not pay on this link: a backward pass ")
    assert torch.equal(found[0]["tried"]["weights"], found[1]["tried"]["weights"])


def test_the_slowest_process_decides_whether_compression_pays() -> None:
    trial = CompressionTrial("int8", warm=1, passes=2)
    turns = []
    while not trial.is_over:
        turns.append(trial.compresses)
        trial.note(1.0)
    assert turns == [False, False, True, False, True]
    assert "switched off" in trial.decide([(1.0, 0.5), (1.0, 0.98)]) and not trial.compresses
    always = CompressionTrial("int8", warm=2, passes=0)
    assert not always.compresses
    always.note(1.0)
    always.note(1.0)
    assert always.compresses and always.is_decided


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (("ddp.compression=int8",), "ddp.compression is for train.strategy optimized_ddp, and that is auto"),
        (("ddp.balance=shards",), "shards are not moved from a slow process to others: under DDP every process has"),
        (("ddp.balance=[4,0]",), "it is [4, 0]: give none, or at least one micro-batch per process, such as [5, 3]"),
        (
            (
                "train.strategy=optimized_ddp",
                "ddp.balance=[3,1]",
                "train.batch_warmup=[{from_tokens: 0, samples_per_step: 8}]",
            ),
            "ddp.balance is for steps of one size, and train.batch_warmup has several: set one of them alone",
        ),
        (("ddp.bucket_cap_mb=0",), "it is 0, which is no size of a bucket: give MiB above 0, or auto"),
    ],
)
def test_what_cannot_be_is_refused(settings: tuple[str, ...], sentence: str) -> None:
    with pytest.raises(ConfigError) as refused:
        load(None, list(settings))
    assert sentence in str(refused.value) and "\n" not in str(refused.value)


def test_a_hook_of_the_callers_own_is_refused() -> None:
    with pytest.raises(ConfigError, match="was given ddp_comm_hook, and has a hook of its own"):
        OptimizedDDP(ddp_comm_hook=print)


class Numbers:
    """Samples that are their own positions."""

    def train(self, start: int, count: int) -> tuple[torch.Tensor, torch.Tensor]:
        positions = torch.arange(start, start + count)
        return positions, positions

    def fetch(self, blocks: torch.Tensor, positions: torch.Tensor) -> list[int]:
        return blocks.tolist()


def test_uneven_shares_of_a_step_are_its_samples_each_once() -> None:
    counts = shares([1.0, 0.5, 0.25], 7)
    assert counts == [4, 2, 1] and sum(weight(counts, rank) for rank in range(3)) == pytest.approx(3)
    streams = [iter(UnevenBatches(Numbers(), 42, 2, rank, counts)) for rank in range(3)]
    for step in range(3):
        taken = [next(streams[rank]) for rank in range(3) for _ in range(counts[rank])]
        assert sorted(itertools.chain(*taken)) == list(range(42 + 14 * step, 42 + 14 * (step + 1)))


TINY = ("model.hidden_size=32", "model.intermediate_size=64", "train.micro_batch_size=2", "train.warmup_steps=1")
TINY += ("train.strategy=optimized_ddp", "train.accumulation_steps=2", "train.log_every=1", "checkpoint.every=2")
TINY += ("model.sequence_length=32", "train.collective_timeout=60", "train.max_steps=4", "checkpoint.keep=3")


def test_a_job_with_uneven_shares_resumes_exactly(warm: Client, text: Path, tmp_path: Path) -> None:
    job = ForkedJob(warm, tmp_path / "job", text, processes=2)
    said = job.fit(*TINY, "ddp.balance=[3,1]")
    assert "gradients go over a single node: all processes are on one node" in said
    whole, newest = job.losses(), job.state(4)
    assert of_directory(job.node()).compared > 0  # each rank's own time in the steps
    ranks = json.loads((job.node() / "ranks.json").read_text())["ranks"]
    assert [each["rank"] for each in ranks] == [0, 1] and all(each["own_seconds"] > 0 for each in ranks)
    shutil.rmtree(job.node() / "checkpoints" / "step-00000004")
    said = job.fit(*TINY, "ddp.balance=[3,1]")
    assert "resuming from step 2\n" in said and "buckets of 1 MiB, as at an earlier start" in said
    assert job.losses() == whole
    assert_same(job.state(4)["tensors"], newest["tensors"])
