"""Plans: what follows from a few predictions is what a prediction says, and what is written is taken by `fit`."""

from __future__ import annotations

import doctest
import importlib
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from gaudi3_scale.cli import app
from gaudi3_scale.config import load
from gaudi3_scale.cost.inputs import Inputs
from gaudi3_scale.errors import ConfigError
from gaudi3_scale.planning import layers, predict_peak
from gaudi3_scale.planning.accelerators import accelerator
from gaudi3_scale.planning.estimate import Planner, _second_process
from gaudi3_scale.planning.options import Need, Option
from gaudi3_scale.planning.peak import _sections, largest
from gaudi3_scale.planning.speed import with_mfu, with_result

TINY = ("model.hidden_size=64", "model.heads=4", "model.intermediate_size=128", "model.sequence_length=64")
WIDE = ("model.hidden_size=512", "model.kv_heads=4", "model.intermediate_size=512", "model.vocab_size=512")


def test_many_blocks_follow_from_few_to_the_byte(monkeypatch: pytest.MonkeyPatch) -> None:
    seven = load(None, [*TINY, "model.layers=7", "train.strategy=habana_fsdp"])
    few = predict_peak(seven, 4, world_size=4)
    monkeypatch.setattr(layers, "WHOLE", 7)
    _sections.cache_clear()
    assert predict_peak(seven, 4, world_size=4) == few


def test_matrices_that_are_split_are_predicted_for_scripts() -> None:
    """`make proof-memory` compares it with what such a script takes on the simulated device."""
    job = load(None, [*TINY, "model.layers=2", "train.strategy=habana_fsdp", "train.precision=32-true"])
    whole, split = (predict_peak(job, 8, world_size=4, tensor_parallel=size) for size in (1, 2))
    assert split.parameters == pytest.approx(whole.parameters, rel=0.01)  # split over four in both
    assert split.activations < 0.8 * whole.activations
    planner = Planner(job, Inputs(), 1e9, tensor_parallel=2)
    place = accelerator("h100")
    recomputed = Option("FSDP", "full", "32-true").config(job, 4, place.per_node)
    one = predict_peak(recomputed, 1, world_size=4, device=place.kind, tensor_parallel=2).bytes
    assert planner._split(4, place, "32-true", one) == (
        "; a script with HabanaFSDPStrategy(tensor_parallel_size=2) and all blocks recomputed takes 0.0 GB for "
        "1 sample(s) per 2 devices"
    )
    assert planner._split(3, place, "32-true", one) == ""
    for settings, size, sentence in (
        ((), 2, r"^tensor_parallel is 2, and matrices are split by train\.strategy habana_fsdp"),
        (("train.strategy=habana_fsdp",), 8, r"has num_attention_heads 4, which cannot be divided by it"),
        (("train.strategy=habana_fsdp", "train.replicas=2"), 2, r"copies of shards and split matrices do not go"),
    ):
        with pytest.raises(ConfigError, match=sentence):
            predict_peak(load(None, [*TINY, *settings]), 8, world_size=8, tensor_parallel=size)


def test_every_batch_and_number_of_devices_follows_from_three_predictions() -> None:
    option = Option("FSDP", "none", "bf16-mixed")
    two = load(None, [*WIDE, "model.layers=2", "model.sequence_length=512"])
    found = Need(two, option, "hpu")
    exact = predict_peak(option.config(two, 64, 8), 3, world_size=64).bytes
    assert found.bytes(3, 64) == pytest.approx(exact, rel=0.01)


def test_the_largest_batch_is_found_on_any_convex_curve_in_few_looks() -> None:
    looks: list[int] = []
    for floor, rest in ((1000, 0), (40, 7), (990, 13)):

        def curve(batch: int, floor: int = floor, rest: int = rest) -> int:
            looks.append(batch)
            return max(floor, rest + 9 * batch, 17 * batch - 900)

        for limit in (39, 40, 500, 999, 1000, 2000, 100_000):
            truth = max((batch for batch in range(1, 7000) if curve(batch) <= limit), default=0)
            looks.clear()
            assert largest(curve, limit) == truth
            assert len(looks) <= 24
    assert largest(lambda batch: 5, 10, most=100) == 100


PRICES: dict[str, Any] = {"offers": {}}
for _name, _price in (("gaudi3", 80), ("h100", 60)):
    PRICES["offers"][_name] = {
        "node_price_per_hour": {"value": _price, "source": "an example", "date": "2026-11-23"},
        "mfu": {"value": [0.3, 0.4], "source": "an example", "date": "2026-11-23"},
    }


def test_a_row_says_why_nothing_fits() -> None:
    job = load(None, ["model.name=llama-3.1-70b", "train.precision=bf16-mixed", "model.lora.rank=0"])
    planner = Planner(job, Inputs.model_validate(PRICES), 1e12)
    row = planner.row(accelerator("h100"), 8, "bf16-mixed")
    assert not row.fits and row.why == "needs 141.1 GB at least, and 72.0 of 80 GB may be used"
    assert not planner._needs  # weights, gradients and moments alone are too many: nothing had to be predicted


def stated(value: Any) -> dict[str, Any]:
    """An input."""
    return {"value": value, "source": "an example", "date": "2026-11-23"}


def test_the_cheapest_offer_and_precision_of_a_place_are_named(tmp_path: Path) -> None:
    """Regions and contracts of a platform stand side by side, and each precision has its own throughput."""
    rate = {"tokens_per_second_per_device": stated(1000)}
    offers = {
        "gaudi3-frankfurt": {"platform": "gaudi3", "node_price_per_hour": stated(90), **rate},
        "gaudi3-dallas": {"platform": "gaudi3", "node_price_per_hour": stated(70), **rate},
        "gaudi3-unpriced": {"platform": "gaudi3", **rate},
        "gaudi3-float32": {
            "platform": "gaudi3", "precision": "float32", "node_price_per_hour": stated(70),
            "tokens_per_second_per_device": stated(250),
        },
    }  # fmt: skip
    prices = tmp_path / "prices.yml"
    prices.write_text(json.dumps({"offers": offers}))
    arguments = ["plan", *TINY, "model.layers=2", "train.precision=bf16-mixed", "--devices=8", f"--inputs={prices}"]
    arguments += ["--platform=gaudi3", "--tokens=1B", "--margin=0.999", f"--json={tmp_path / 'plan.json'}"]
    done = CliRunner().invoke(app, [*arguments, f"--html={tmp_path / 'plan.html'}"])
    assert done.exit_code == 0, done.output
    found = json.loads((tmp_path / "plan.json").read_text())
    hours = 1e9 / 1000 / 8 / 3600
    assert found["recommended"]["offer"] == "gaudi3-dallas"
    assert found["recommended"]["money"] == {"low": pytest.approx(70 * hours), "high": pytest.approx(70 * hours)}
    prices_per_hour = [row["money"] and round(row["money"]["low"] / hours) for row in found["offers"]]
    assert [(row["offer"], price, row["why"]) for row, price in zip(found["offers"], prices_per_hour, strict=True)] == [
        ("gaudi3-dallas", 70, ""), ("gaudi3-frankfurt", 90, ""), ("gaudi3-unpriced", None, "no price is given"),
    ]  # fmt: skip
    whole, half = found["precisions"][1], found["precisions"][0]
    assert (half["precision"], whole["precision"], whole["offer"]) == ("bf16-mixed", "32-true", "gaudi3-float32")
    assert whole["money"]["low"] == pytest.approx(4 * half["money"]["low"])
    page = (tmp_path / "plan.html").read_text()
    for form in (done.output, page):
        assert "The same place by offer" in form and "gaudi3-frankfurt" in form and "offer gaudi3-dallas" in form


def test_the_written_job_learns_from_the_tokens_that_were_planned() -> None:
    job = load(None, [*TINY, "model.layers=2", "train.accumulation_steps=2"])
    planner = Planner(job, Inputs.model_validate(PRICES), 1e9, margin=0.999)
    config = planner.plan(["gaudi3"], [8]).config
    assert config is not None
    per_step = config.train.micro_batch_size * 2 * 8 * 64
    assert (config.train.max_steps - 1) * per_step < 1e9 <= config.train.max_steps * per_step
    own = Planner(load(None, [*TINY, "model.layers=2", "train.max_steps=7"]), Inputs(), 1e9, margin=0.999)
    kept = own.plan(["gaudi3"], [8]).config
    assert kept is not None and kept.train.max_steps == 7  # what was asked for stays


def test_the_command_writes_a_configuration_that_fit_takes(tmp_path: Path) -> None:
    prices = tmp_path / "prices.yml"
    prices.write_text(json.dumps(PRICES))
    arguments = ["plan", *TINY, "model.layers=2", "train.precision=bf16-mixed", "--devices=8,16", f"--inputs={prices}"]
    arguments += [
        "--platform=gaudi3",
        "--platform=h100",
        "--tokens=1B",
        "--margin=0.999",
        f"--json={tmp_path / 'plan.json'}",
    ]
    done = CliRunner().invoke(app, [*arguments, f"--write={tmp_path / 'job.yml'}", f"--html={tmp_path / 'plan.html'}"])
    assert done.exit_code == 0, done.output
    found = json.loads((tmp_path / "plan.json").read_text())
    assert [(row["platform"], row["devices"], row["fits"]) for row in found["rows"]] == [
        ("gaudi3", 8, True), ("gaudi3", 16, True), ("h100", 8, True), ("h100", 16, True),
    ]  # fmt: skip
    best = found["recommended"]
    assert (best["platform"], best["option"]["strategy"], best["option"]["recompute"]) == ("gaudi3", "DDP", "none")
    assert best["needed_bytes"] == found["peak"]["bytes"] <= 128e6
    written = load(tmp_path / "job.yml")
    assert written.train.micro_batch_size == best["micro_batch"] > 100
    assert predict_peak(written, best["micro_batch"] + 1, world_size=best["devices"]).bytes > 128e6
    assert "recommended" in done.output.lower() and "an example" in done.output
    page = (tmp_path / "plan.html").read_text()
    assert re.findall(r'<img alt="(.*?)" src="data:image/png;base64,iVBORw0KGgo', page) == [
        "Memory of a device at the peak, by what it is for", "Largest batch of a device, by kind and number of devices",
    ]  # fmt: skip
    assert page.partition("</table>")[0].count("<tr>") == 1 + len(found["rows"]) and "an example" in page


def test_the_examples_hold() -> None:
    ran = doctest.testmod(importlib.import_module("gaudi3_scale.planning.peak"))
    assert (ran.failed, ran.attempted) == (0, 5)


def test_throughput_is_stated_and_never_that_of_a_simulator(tmp_path: Path) -> None:
    job = load(None, ["model.name=llama-3.1-8b", "model.sequence_length=4096", "train.precision=bf16-mixed"])
    stated = with_mfu(Inputs(), "0.3,0.4", ["gaudi3"]).offer("gaudi3").mfu
    assert stated is not None and stated.value == (0.3, 0.4) and "no measurement" in stated.source
    for wrong in ("0", "40", "a", "0.4,0.3"):
        with pytest.raises(ConfigError, match="--mfu is"):
            with_mfu(Inputs(), wrong, ["gaudi3"])
    case = {"shape": "llama-3.1-8b", "size": 4096, "batch_size": 2, "precision": "bf16-mixed", "config": {}}
    rounds = [{"seconds": [2.0, 2.0, 2.5]}, {"seconds": [1.6]}]
    row = {"case": case, "outcome": "measured", "units_per_step": 8192, "rounds": rounds}
    result = {
        "environment": {"hardware_name": "GAUDI3", "simulated": False},
        "rows": [row],
        "began": "2026-11-20T10:00",
    }
    path = tmp_path / "result.json"
    path.write_text(json.dumps(result))
    rate = with_result(Inputs(), path, job).offer("gaudi3").tokens_per_second_per_device
    assert rate is not None and rate.value == (4096, 5120) and rate.date.isoformat() == "2026-11-20"
    result["environment"] = {"hardware_name": None, "simulated": True}
    path.write_text(json.dumps(result))
    with pytest.raises(ConfigError, match="was measured on the simulated hpu"):
        with_result(Inputs(), path, job)


def _only_in(pid: int, wanted: str) -> int:
    """As torch built for CUDA after a backward pass: refused in a fork."""
    if os.getpid() != pid:
        raise RuntimeError(wanted)
    return pid


def test_what_torch_refuses_in_a_fork_is_done_by_the_process_itself() -> None:
    sentence = "Unable to handle autograd's threading in combination with fork-based multiprocessing."
    with _second_process() as start:
        assert start(_only_in, os.getpid(), sentence)() == os.getpid()
        if len(os.sched_getaffinity(0)) > 1:
            with pytest.raises(RuntimeError, match=r"^another\.$"):
                start(_only_in, os.getpid(), "another.")()
