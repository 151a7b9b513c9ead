"""The public programs with a Gaudi trainer class, before and after: first losses on the simulated device."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from fractions import Fraction
from functools import cache
from pathlib import Path

import pytest
from runs import REASONS, RUNS, STEPS, Run
from stand_ins import make
from stand_ins_captions import captioned, pictured
from stand_ins_hub import complaints, proteins
from stand_ins_media import pictures, sounds
from stand_ins_sentences import sentences
from stand_ins_speech import speech

from gaudi3_migration import migrate
from tests.suite.proof import Proof

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENTS = Path(os.environ.get("GAUDI3_MIGRATION_ENVIRONMENTS", ROOT / ".cache/migration"))
"""`old`, with optimum-habana and what it pins, and `new`: the checkout's; with what programs import besides."""
SOURCES = os.environ.get("CONTRACT_SOURCES", "")
EXAMPLES = Path(SOURCES or "/nowhere") / "huggingface/optimum-habana/examples"
CLOSE = 1e-4
MINUTES = 10


COLUMNS = ["findings", "left for a person", "largest difference of a loss", "times"]
TEXT = """
The example programs of optimum-habana (main of 14 January 2026) that have a trainer class of it, as they are and as
`gaudi3-train migrate` rewrites them. Both are run for 20 steps on the simulated device, with the same tiny model,
data and seed, in float32, without dropout, with the same low-rank adapters and the fused optimizer: the original with
optimum-habana 1.21.2, transformers 4.55.4, accelerate 1.10.1 and datasets 4.0.0 (sentence-transformers 3.3.1 with
datasets 3.6.0), the rewritten one with transformers 5.23.0 and sentence-transformers 6.2.0. Losses that the trainers
log are compared; the original's have four decimals, so that 5e-5 is their rounding. `times` is what transformers 5
multiplies a causal loss with. sentence-transformers 6 draws batches without duplicates in another order than 3.3: here
in that of 3.3. `run_lora_vlm.py` has no option for float32 and the optimizer's epsilon: both are set in its text, in
the original's too. Where the vendor's own CTC loss is asked for, which the simulated device does not have,
optimum-habana takes torch's, and a model that sentence-transformers evaluates is in no graph. Nothing here was run on
a Gaudi.
"""
PROOF = Proof("migration", {"programs": sorted([*RUNS, *REASONS])})

pytestmark = pytest.mark.proof


def test_there_are_the_programs_that_were_counted() -> None:
    assert len(RUNS) + len(REASONS) == 32
    if not SOURCES:
        pytest.skip("CONTRACT_SOURCES is not set")
    assert [each for each in (*RUNS, *REASONS) if not (EXAMPLES / each).is_file()] == []


@cache
def lacking(needs: tuple[str, ...]) -> str:
    """What an environment does not have of these modules."""
    ask = "import importlib.util, sys; print(*[each for each in sys.argv[1:] if not importlib.util.find_spec(each)])"
    for kind in ("old", "new"):
        command = [str(ENVIRONMENTS / kind / "bin/python"), "-c", ask, *needs]
        missing = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
        if missing:
            return f"the environment {kind} has no {missing}"
    return ""


@pytest.fixture(scope="module")
def stand_ins(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with all models and data, which each program gets a copy of."""
    folder = tmp_path_factory.mktemp("stand-ins")
    make(folder)
    for each in (pictures, captioned, pictured, sounds, speech, complaints, proteins, sentences):
        each(folder)
    return folder


def losses(kind: str, program: Path, run: Run, folder: Path) -> list[float]:
    """What a program logged, started by the environment of this name."""
    cards = folder / f"cards-{kind}"
    cards.mkdir(mode=0o700)
    # optimum-habana imports torchvision's transforms, whatever is trained: a stand-in does where nothing else asks.
    plain = kind == "old" and lacking(("torchvision",))
    paths = [ROOT / ".cache/hpu", program.parent, *([ROOT / "tests/contract/stand_ins"] if plain else [])]
    if kind == "old" and run.first:
        paths.insert(0, ENVIRONMENTS / kind / run.first)
    environment = {
        **os.environ,
        "PYTHONPATH": ":".join(map(str, paths)),
        "HF_HUB_OFFLINE": "1",
        "HF_HUB_CACHE": str(folder / "hub"),
        "WANDB_MODE": "disabled",
        "PT_HPU_LAZY_MODE": "0",
        "HF_DATASETS_CACHE": str(folder / f"cache-{kind}"),
        "HF_MODULES_CACHE": str(folder / f"modules-{kind}"),
        "NLTK_DATA": str(folder / "nltk"),
        "GAUDI3_HPU_SIMULATOR_CARDS": str(cards),
        "OMP_NUM_THREADS": "1",
        **dict(run.environment),
    }
    logged = folder / f"losses-{kind}.json"
    started = [str(Path(__file__).with_name("started.py")), str(logged), str(STEPS), str(program)]
    options = run.options_of(kind).replace("OUT", f"out-{kind}").split()
    command = [str(ENVIRONMENTS / kind / "bin/python"), *started, *options]
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=60 * MINUTES, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return [float(each) for each in json.loads(logged.read_text())]


@pytest.mark.parametrize("name", [*REASONS, *RUNS])
def test_a_rewritten_program_has_the_losses_of_the_original(name: str, stand_ins: Path, tmp_path: Path) -> None:
    PROOF.skip_if_held(name)
    if name in REASONS:
        PROOF.cannot_run(name, REASONS[name])
    if not (EXAMPLES / name).is_file():
        PROOF.cannot_run(name, "CONTRACT_SOURCES has no huggingface/optimum-habana")
    run = RUNS[name]
    if missing := lacking(run.needs):
        PROOF.cannot_run(name, missing)
    shutil.copytree(stand_ins, tmp_path, dirs_exist_ok=True)
    original, rewritten = tmp_path / "original" / Path(name).name, tmp_path / "rewritten" / Path(name).name
    for place in (original, rewritten):
        place.parent.mkdir()
        for helper in (EXAMPLES / name).parent.glob("*.py"):
            shutil.copy(helper, place.parent)
    for before, after in run.edits:
        text = original.read_text()
        assert text.count(before) == 1, before
        original.write_text(text.replace(before, after))
    files = migrate(original, tmp_path / "gaudi")
    for each in files:
        (rewritten.parent / each.path.name).write_text(each.after)
    old = losses("old", original, run, tmp_path)
    new = losses("new", rewritten, run, tmp_path)
    assert len(old) == len(new) == STEPS
    largest = max(abs(one * run.scale - other) for one, other in zip(old, new, strict=True))
    assert largest < CLOSE, (old, new)
    if not PROOF.is_running:
        return
    row = {
        "findings": sum(len(each.findings) for each in files),
        "left for a person": sum(len(each.left) for each in files),
        "largest difference of a loss": f"{largest:.1e}",
        "times": str(Fraction(run.scale).limit_denominator(100)),
    }
    PROOF.note(name, row)
    PROOF.write_table("Programs for optimum-habana, rewritten", TEXT, COLUMNS)
