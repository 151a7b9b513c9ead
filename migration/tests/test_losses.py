"""The public programs with a Gaudi trainer class, before and after: first losses on the simulated device."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
from stand_ins import make

from gaudi3_migration import migrate
from tests.suite.proof import Proof

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENTS = Path(os.environ.get("GAUDI3_MIGRATION_ENVIRONMENTS", ROOT / ".cache/migration"))
"""`old`, with optimum-habana and what it pins, and `new`: the checkout's, and evaluate."""
SOURCES = os.environ.get("CONTRACT_SOURCES", "")
EXAMPLES = Path(SOURCES or "/nowhere") / "huggingface/optimum-habana/examples"
STEPS = 20
CLOSE = 1e-4
MINUTES = 10


@dataclass(frozen=True)
class Run:
    """How one program is started."""

    options: str
    scale: float = 1.0
    """What transformers 5 multiplies its losses with."""


RUNS = {
    "text-classification/run_glue.py": Run(
        "--model_name_or_path bert-cls --train_file glue.csv --validation_file glue.csv --max_seq_length 32"
        " --per_device_train_batch_size 8"
    ),
    "language-modeling/run_clm.py": Run(
        "--model_name_or_path llama --train_file text.txt --block_size 32 --per_device_train_batch_size 4", 32 / 31
    ),
    "language-modeling/run_mlm.py": Run(
        "--model_name_or_path bert-mlm --train_file text.txt --max_seq_length 32 --per_device_train_batch_size 4"
    ),
    "question-answering/run_qa.py": Run(
        "--model_name_or_path bert-qa --train_file qa.json --max_seq_length 48 --doc_stride 8"
        " --per_device_train_batch_size 8"
    ),
    "translation/run_translation.py": Run(
        "--model_name_or_path t5 --train_file trans.json --source_lang en --target_lang de --max_source_length 16"
        " --max_target_length 16 --pad_to_max_length --per_device_train_batch_size 8"
    ),
}
HUB = "needs the hub"
FOLDER = "no stand-in yet:"
MISSING = "no stand-in yet:"
REASONS = {
    "audio-classification/run_audio_classification.py": f"{FOLDER} sounds",
    "contrastive-image-text/run_bridgetower.py": f"{MISSING} captioned pictures",
    "contrastive-image-text/run_clip.py": f"{MISSING} captioned pictures",
    "image-classification/run_image_classification.py": f"{MISSING} pictures",
    "image-to-text/run_image2text_lora_finetune.py": f"{FOLDER} pictures",
    "language-modeling/peft_poly_seq2seq_with_generate.py": HUB,
    "language-modeling/run_lora_clm.py": f"{MISSING} adapters",
    "language-modeling/run_multitask_prompt_tuning.py": HUB,
    "language-modeling/run_prompt_tuning_clm.py": f"{FOLDER} texts",
    "protein-folding/run_sequence_classification.py": f"{FOLDER} sequences",
    "question-answering/run_seq2seq_qa.py": f"{MISSING} generated answers",
    "sentence-transformers-training/nli/training_nli.py": HUB,
    "sentence-transformers-training/nli/training_nli_v2.py": HUB,
    "sentence-transformers-training/nli/training_nli_v3.py": HUB,
    "sentence-transformers-training/paraphrases/training_paraphrases.py": HUB,
    "sentence-transformers-training/sts/training_stsbenchmark.py": HUB,
    "sentence-transformers-training/sts/training_stsbenchmark_continue_training.py": HUB,
    "speech-recognition/run_speech_recognition_ctc.py": f"{FOLDER} sounds",
    "speech-recognition/run_speech_recognition_seq2seq.py": f"{FOLDER} sounds",
    "summarization/run_summarization.py": "it fetches punkt of nltk",
    "trl/ddpo.py": f"{HUB}, and trl's old trainer",
    "trl/dpo.py": HUB,
    "trl/grpo.py": f"{FOLDER} prompts, trl",
    "trl/ppo.py": f"{HUB}, and trl's old trainer",
    "trl/reward_modeling.py": HUB,
    "trl/sft.py": f"{FOLDER} texts, trl",
    "vision-language-modeling/run_lora_vlm.py": f"{FOLDER} pictures",
}
COLUMNS = ["findings", "left for a person", "largest difference of a loss", "times"]
TEXT = """
The example programs of optimum-habana (main of 14 January 2026) that have a trainer class of it, as they are and as
`gaudi3-train migrate` rewrites them. Both are run for 20 steps on the simulated device, with the same tiny model,
data and seed, in float32, without dropout and with the fused optimizer: the original with optimum-habana 1.21.2,
transformers 4.55.4, accelerate 1.10.1 and datasets 4.0.0, the rewritten one with transformers 5.23.0. Losses of
`trainer_state.json` are compared; the original's have four decimals, so that 5e-5 is their rounding. `times` is what
transformers 5 multiplies a causal loss with. Nothing here was run on a Gaudi.
"""
PROOF = Proof("migration", {"programs": sorted([*RUNS, *REASONS])})

pytestmark = pytest.mark.proof


def test_there_are_the_programs_that_were_counted() -> None:
    assert len(RUNS) + len(REASONS) == 32
    if not SOURCES:
        pytest.skip("CONTRACT_SOURCES is not set")
    assert [each for each in (*RUNS, *REASONS) if not (EXAMPLES / each).is_file()] == []


def losses(kind: str, program: Path, options: str, folder: Path) -> list[float]:
    """What a program logged, started by the environment of this name."""
    cards = folder / f"cards-{kind}"
    cards.mkdir(mode=0o700)
    # optimum-habana imports torchvision's transforms, whatever is trained.
    paths = [ROOT / ".cache/hpu", program.parent, *([ROOT / "tests/contract/stand_ins"] if kind == "old" else [])]
    environment = {
        **os.environ,
        "PYTHONPATH": ":".join(map(str, paths)),
        "HF_HUB_OFFLINE": "1",
        "PT_HPU_LAZY_MODE": "0",
        "HF_DATASETS_CACHE": str(folder / f"cache-{kind}"),
        "GAUDI3_HPU_SIMULATOR_CARDS": str(cards),
        "OMP_NUM_THREADS": "1",
    }
    common = f"--do_train --max_steps {STEPS} --logging_steps 1 --logging_strategy steps --save_strategy no"
    common += f" --report_to none --seed 7 --learning_rate 1e-3 --output_dir out-{kind}"
    command = [str(ENVIRONMENTS / kind / "bin/python"), str(program), *common.split(), *options.split()]
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=60 * MINUTES, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    state = json.loads((folder / f"out-{kind}" / "trainer_state.json").read_text())
    return [float(each["loss"]) for each in state["log_history"] if "loss" in each]


@pytest.mark.parametrize("name", [*REASONS, *RUNS])
def test_a_rewritten_program_has_the_losses_of_the_original(name: str, tmp_path: Path) -> None:
    PROOF.skip_if_held(name)
    if name in REASONS:
        PROOF.cannot_run(name, REASONS[name])
    if not (EXAMPLES / name).is_file():
        PROOF.cannot_run(name, "CONTRACT_SOURCES has no huggingface/optimum-habana")
    make(tmp_path)
    run = RUNS[name]
    files = migrate(EXAMPLES / name, tmp_path / "gaudi")
    rewritten = tmp_path / "rewritten"
    rewritten.mkdir()
    for helper in (EXAMPLES / name).parent.glob("*.py"):
        (rewritten / helper.name).write_text(helper.read_text())
    for each in files:
        (rewritten / each.path.name).write_text(each.after)
    gaudi = "--use_habana --use_lazy_mode False --gaudi_config_name gaudi"
    old = losses("old", EXAMPLES / name, f"{run.options} {gaudi}", tmp_path)
    new = losses("new", rewritten / Path(name).name, run.options, tmp_path)
    assert len(old) == len(new) == STEPS
    largest = max(abs(one * run.scale - other) for one, other in zip(old, new, strict=True))
    assert largest < CLOSE, (old, new)
    if not PROOF.is_running:
        return
    row = {
        "findings": sum(len(each.findings) for each in files),
        "left for a person": sum(len(each.left) for each in files),
        "largest difference of a loss": f"{largest:.1e}",
        "times": "32/31" if run.scale != 1 else "1",
    }
    PROOF.note(name, row)
    PROOF.write_table("Programs for optimum-habana, rewritten", TEXT, COLUMNS)
