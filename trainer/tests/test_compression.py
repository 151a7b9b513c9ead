"""A job whose gradients are compressed learns what one learns whose gradients are not."""

from __future__ import annotations

from pathlib import Path

import pytest
from forked import ForkedJob
from zygote import Client

from tests.suite.proof import Proof

SEEDS = range(1, 7)
BOUND = 0.06
"""Nats per byte, by which the held-out losses may differ."""
COMPRESSIONS = ("int8", "powersgd")
CASES = {f"{name}, seed {seed}": (name, seed) for name in COMPRESSIONS for seed in SEEDS}
PROOF = Proof(
    "compression",
    {name: [case for case in CASES if case.startswith(name)] for name in COMPRESSIONS},
    sample=["int8, seed 1"],
)
TEXT = f"""
Each case is a job of two processes on the CPU, over gloo, that trains a Llama of two layers (width 32) on the tests'
text for 300 steps of 8 samples of 64 bytes, twice: with `train.strategy=optimized_ddp ddp.compress=always` and the
compression of the case, and with `train.strategy=habana_ddp`. The loss is that of held-out text, in nats per byte. The
two may differ by {BOUND}; what a seed makes of it, the column without compression shows. `powersgd` has
rank 4. What error feedback is for is shown by `tests/test_ddp.py`, where two large gradients cancel and hide all
others: without it none of those ever arrives. Speed is not shown here: two processes of one machine gain nothing from
sending less. With `powersgd` learning is slower at first: after 60 steps of the same job its loss was 0.26 above the
one without (seed 1, 2026-11-23), and at the end it is still higher with every seed: the bound finds faults, and lets
that cost pass. Nothing here was run on a Gaudi.
"""
STEPS = 300 if PROOF.is_running else 60
SETTINGS = (
    "model.hidden_size=32",
    "model.intermediate_size=64",
    "train.micro_batch_size=4",
    f"train.max_steps={STEPS}",
)
SETTINGS += (f"train.log_every={STEPS}", f"checkpoint.every={STEPS}", "train.collective_timeout=60")


@pytest.mark.parametrize("case", PROOF.parameters({case: case for case in CASES}))
def test_compressed_gradients_teach_the_same(case: str, warm: Client, text: Path, tmp_path: Path) -> None:
    PROOF.skip_if_held(case)
    name, seed = CASES[case]
    arms = {
        "plain": ("train.strategy=habana_ddp",),
        name: ("train.strategy=optimized_ddp", f"ddp.compression={name}", "ddp.compress=always"),
    }
    losses, baseline = {}, 0.0
    for arm, settings in arms.items():
        job = ForkedJob(warm, tmp_path / arm, text, processes=2)
        job.fit(*SETTINGS, *settings, f"train.seed={seed}")
        status = job.status()
        losses[arm], baseline = status["validation_loss"], status["baseline_loss"]
    assert losses[name] != losses["plain"]
    assert abs(losses[name] - losses["plain"]) < BOUND
    assert losses[name] < baseline - 0.5

    if PROOF.is_running:
        row = {"without": f"{losses['plain']:.4f}", "with": f"{losses[name]:.4f}"}
        PROOF.note(case, row | {"difference": f"{losses[name] - losses['plain']:+.4f}"})
        PROOF.write_table("Compressed gradients", TEXT, ["without", "with", "difference"])
