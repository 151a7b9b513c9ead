"""Jobs that learn preferences: they do, on one and two processes, and go on after a kill as if nothing had been."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from conftest import SIMULATOR, SMALL, Job, assert_same
from preferences import write
from zygote import Client

from gaudi3_scale.config import load
from gaudi3_scale.models.preference import FIGURES
from gaudi3_scale.planning.peak import predict_peak

SETTINGS = (
    "data.content=preference",
    "model.hidden_size=32",
    "model.intermediate_size=64",
    "model.sequence_length=32",
    "train.learning_rate=0.003",
    "train.max_steps=12",
    "train.log_every=2",
    "train.evaluate_every=6",
    "train.collective_timeout=60",
    "checkpoint.every=3",
    "data.validation_samples=6",
)
ONE, TWO = ("train.micro_batch_size=4",), ("train.micro_batch_size=2",)
LORA = ("model.lora.rank=4", "train.learning_rate=0.02")


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    records = [
        {"prompt": f"{n} and {n}? ", "chosen": f"It is {2 * n}.", "rejected": f"Ask me later {n}."} for n in range(120)
    ]
    return write(tmp_path_factory.mktemp("pairs") / "pairs.jsonl", records)


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory, pairs: Path) -> Job:
    """An uninterrupted job of all weights, in one process."""
    job = Job(tmp_path_factory.mktemp("plain") / "job", pairs)
    output = job.run(*SETTINGS, *ONE)
    assert "pairs.jsonl, no-preference baseline 0.693 nats/pair\n" in output
    assert "step 12/12 loss " in output and " accuracy 1.00" in output
    return job


def lines(job: Job) -> list[dict[str, float]]:
    texts = (job.node() / "metrics.jsonl").read_text().splitlines()
    return [{n: v for n, v in json.loads(text).items() if n not in ("time", "tokens_per_second")} for text in texts]


def test_it_learns_what_is_preferred(plain: Job) -> None:
    first, *_, last = lines(plain)
    assert first["loss"] == pytest.approx(0.6931, abs=1e-4)  # ln 2: it prefers neither answer
    assert [first[name] for name in FIGURES[:4]] == [0, 0, 0, 0]  # it is its reference still
    assert last["loss"] < 0.6 and last["rewards/accuracies"] == 1.0
    assert last["rewards/margins"] == pytest.approx(last["rewards/chosen"] - last["rewards/rejected"], rel=1e-4)
    assert last["logps/rejected"] < first["logps/rejected"]
    assert last["tokens"] == 12 * 4 * 2 * 32
    evaluated = [json.loads(text) for text in (plain.node() / "evaluation.jsonl").read_text().splitlines()]
    assert [each["step"] for each in evaluated] == [6, 12]
    assert evaluated[-1]["validation_loss"] < 0.69 and evaluated[-1]["validation_rewards/accuracies"] == 1.0
    status = plain.status()
    assert status["baseline_loss"] == pytest.approx(0.6931, abs=1e-4)
    assert status["validation_loss"] == evaluated[-1]["validation_loss"]


def test_a_killed_job_keeps_the_reference_that_it_began_with(plain: Job, pairs: Path, tmp_path: Path) -> None:
    cut = Job(tmp_path / "cut", pairs)
    with cut.running(*SETTINGS, *ONE, lines=3, saved=3):
        pass
    resumed = cut.run(*SETTINGS, *ONE)
    assert "resuming from step " in resumed
    assert lines(cut) == lines(plain)
    assert_same(cut.state(12), plain.state(12))


def test_more_steps_need_pairs_whose_reference_is_gone(plain: Job) -> None:
    said = plain.run(*SETTINGS, *ONE, "train.max_steps=40", code=2)
    assert "The checkpoint has what the reference says of 54 pairs, which are those that the job was to read " in said


def test_a_sharded_model_learns_the_same(plain: Job, pairs: Path, tmp_path: Path) -> None:
    job = Job(tmp_path / "job", pairs, processes=2)
    job.run(*SETTINGS, *TWO, "train.strategy=habana_fsdp")
    for mine, other in zip(lines(job), lines(plain), strict=True):
        assert mine == pytest.approx(other, rel=1e-3, abs=1e-4)


def test_adapters_are_learnt_by_two_processes_through_a_kill(pairs: Path, tmp_path: Path) -> None:
    pytest.importorskip("peft")
    whole, cut = (Job(tmp_path / name, pairs, processes=2) for name in ("whole", "cut"))
    whole.run(*SETTINGS, *TWO, *LORA)
    assert lines(whole)[0]["rewards/margins"] == 0 and lines(whole)[-1]["rewards/accuracies"] > 0.9
    with cut.running(*SETTINGS, *TWO, *LORA, lines=3, saved=3):
        pass
    assert "resuming from step " in cut.run(*SETTINGS, *TWO, *LORA)
    assert lines(cut) == lines(whole)
    assert_same(cut.state(12), whole.state(12))
    assert "reference" not in cut.state(12)  # the model without its adapters
    alone = Job(tmp_path / "alone", pairs)
    alone.run(*SETTINGS, *ONE, *LORA)
    for mine, other in zip(lines(alone), lines(whole), strict=True):
        assert mine == pytest.approx(other, rel=1e-3, abs=1e-4)


@pytest.mark.skipif(not SIMULATOR.is_dir(), reason="the simulated hpu is not built: `make hpu` builds it")
def test_a_device_that_lowers_products_does_not_lower_the_loss(cards: Client, pairs: Path, tmp_path: Path) -> None:
    pytest.importorskip("peft")
    given = (*SMALL, *SETTINGS, *ONE, *LORA, "device=hpu", "train.max_steps=4", "train.evaluate_every=0")
    settings = ["fit", *given, f"data.source={pairs}", f"output_dir={tmp_path / 'job' / 'node0'}"]
    job = Job(tmp_path / "job", pairs)
    done = cards.start("worker", settings, {}, tmp_path / "log")
    output = done.communicate(timeout=120)[0]
    assert done.returncode == 0, output
    assert "simulated hpu, precision bf16-mixed" in output
    first, *_, last = lines(job)
    assert first["loss"] == pytest.approx(0.693147, abs=1e-6)  # in bfloat16 it would be 0.691
    assert last["rewards/margins"] == pytest.approx(last["rewards/chosen"] - last["rewards/rejected"], rel=1e-5)


def test_a_job_that_learnt_texts_does_not_go_on_with_preferences(pairs: Path, tmp_path: Path) -> None:
    job = Job(tmp_path / "job", pairs)
    settings = [each for each in SETTINGS if not each.startswith("data.content")]
    job.run(*settings, "data.field=chosen", "train.max_steps=4", *ONE)
    said = job.run(*SETTINGS, *ONE, "data.replace=true", code=2)
    assert "is of a job without preferences, and the reference is the model that a job began from: export it, " in said


@pytest.mark.parametrize("lora", [(), LORA])
def test_the_memory_of_a_step_is_that_of_both_rows(lora: tuple[str, ...]) -> None:
    settings = ("model.layers=2", "model.hidden_size=64", "model.sequence_length=256", *lora)
    texts = load(None, [*settings, "train.micro_batch_size=8"])
    pairs = load(None, [*settings, "train.micro_batch_size=4", "data.content=preference"])
    assert predict_peak(pairs, 4).bytes == pytest.approx(predict_peak(texts, 8).bytes, rel=0.15)
    assert predict_peak(pairs, 8).bytes > 1.5 * predict_peak(pairs, 4).bytes
