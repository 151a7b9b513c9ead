"""The batch that is found against the largest one that fits, and what other finders come to on the same case."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import interpreter
import pytest
from conftest import SIMULATOR, SMALL, free_port, zygote
from test_memory_proof import measure
from zygote import Client

from tests.suite.proof import Proof

SCRIPT = Path(__file__).with_name("batch_finders.py")
LLAMA = ["model.hidden_size=32", "model.intermediate_size=64", "model.layers=2"]
DEEP = ["model.hidden_size=64", "model.intermediate_size=128", "model.layers=6"]
SHAPES: dict[str, tuple[list[str], int, bool]] = {
    "Llama": (LLAMA, 40_000_000, False),
    "Llama on a larger card": (LLAMA, 90_000_000, False),
    "deeper Llama": (DEEP, 60_000_000, False),
    "deeper Llama recomputed": (DEEP, 60_000_000, True),
    "Mixtral": (["model.name=mixtral-tiny"], 60_000_000, False),
    "BERT": (["model.name=bert-tiny"], 60_000_000, False),
}
PRECISIONS = {"fp32": "32-true", "bf16": "bf16-mixed"}
ALONE = {f"{shape} {precision}": (shape, precision) for shape in SHAPES for precision in PRECISIONS}
JOBS = {
    f"job of Llama {precision}, {name}": (precision, strategy)
    for precision in PRECISIONS
    for name, strategy in (("DDP x2", "habana_ddp"), ("FSDP x2", "habana_fsdp"))
}
LENGTH = 64
PROOF = Proof(
    "batch",
    {"one process": list(ALONE), "jobs of two": list(JOBS)},
    sample=("BERT fp32",),
)
TEXT = """
Each case has a small model and a simulated `hpu` card of little memory, of which a step may take 95 %. *True* is the
largest batch whose two steps were made and stayed within that. *Found* is what `AdaptiveBatchFinder`
says, and for a job `train.micro_batch_size=auto`, in so many *trials*, which are real steps. What must hold: at least
97 % of the true one, at most two trials, and none of them out of memory.

The other finders have the same models and the whole card: `Tuner.scale_batch_size(mode="binsearch")` of Lightning,
which does not take an HPU's message for one of memory and so ends with an error, and once more with that mended; and
`find_executable_batch_size` of accelerate from 128, the number of its manual. In brackets are the batches that they
tried, and how many of them ran out of memory. Neither has a finder for processes that must agree. Nothing here was run
on a Gaudi.
"""
COLUMNS = ["true", "found", "trials", "out of memory", "Lightning", "Lightning, mended", "accelerate"]


def python(arguments: list[str], memory: int) -> str:
    """What a program prints that has simulated cards of so many bytes."""
    done = interpreter.run(zygote(cards=True), *arguments, timeout=600, GAUDI3_HPU_SIMULATOR_HBM=str(memory))
    assert done.returncode == 0, done.stderr
    return done.stdout


def alone(shape: str, precision: str) -> dict[str, Any]:
    """One process with a model of its own; for the table, the finders of others, too."""
    settings, memory, recompute = SHAPES[shape]
    case: dict[str, Any] = {"settings": settings, "precision": PRECISIONS[precision], "recompute": recompute}
    case["others"] = PROOF.is_running
    done = python([str(SCRIPT), json.dumps(case)], memory)
    found: dict[str, Any] = json.loads(done.splitlines()[-1])
    return found


def shown(other: dict[str, Any]) -> str:
    """One cell of the table."""
    return f"{other['batch']} ({other['made']}, {other['out of memory']})"


def job(precision: str, strategy: str, client: Client, text: Path, folder: Path) -> dict[str, Any]:
    """A job of two processes that finds its batch, and jobs with one batch each for what is true."""
    sizes = tuple(each for each in SMALL if not each.startswith(("device", "model.", "train.", "checkpoint.")))
    common = (*sizes, *LLAMA, f"model.sequence_length={LENGTH}", f"train.precision={PRECISIONS[precision]}")
    common += ("device=hpu", "train.mode=eager", "train.max_steps=3", "train.warmup_steps=1", "train.threads=1")
    common += (f"train.strategy={strategy}", f"data.source={text}")
    arguments = ["-m", "torch.distributed.run", "--nproc-per-node=2", "--rdzv-backend=c10d", "--rdzv-id=batch"]
    arguments += [f"--rdzv-endpoint=127.0.0.1:{free_port()}", str(Path(__file__).with_name("measured.py"))]
    arguments += [*common, "train.micro_batch_size=auto", f"output_dir={folder / 'auto'}"]
    python(arguments, 40_000_000)
    found = json.loads((folder / "auto" / "status.json").read_text())["batch"]

    def fits(size: int) -> bool:
        place = folder / str(size)
        place.mkdir()
        return measure(client, 2, (*common, f"train.micro_batch_size={size}"), place) <= found["limit_bytes"]

    low, high = found["micro_batch_size"], found["micro_batch_size"] + 1
    assert fits(low)
    while fits(high):
        low, high = high, high + 2 * (high - found["micro_batch_size"])
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    over = sum(not each["fits"] for each in found["trials"])
    return {"batch": found["micro_batch_size"], "trials": len(found["trials"]), "out of memory": over, "true": low}


@pytest.mark.skipif(not SIMULATOR.is_dir(), reason="the simulated hpu is not built: `make hpu` builds it")
@pytest.mark.parametrize("case", PROOF.parameters({name: name for name in (*ALONE, *JOBS)}))
def test_the_batch_that_is_found_is_the_largest(case: str, cards: Client, text: Path, tmp_path: Path) -> None:
    PROOF.skip_if_held(case)
    found = alone(*ALONE[case]) if case in ALONE else job(*JOBS[case], cards, text, tmp_path)
    assert 0.97 * found["true"] <= found["batch"] <= found["true"], found
    assert found["trials"] <= 2 and found["out of memory"] == 0, found
    if case in ALONE:
        host = found["host"]
        assert (
            host["measured"] <= 0.95 * host["room"] and "that the host has left for each simulated card" in host["how"]
        )
    if "lightning" in found:
        assert found["lightning"]["batch"] == "fails: RuntimeError"
    if PROOF.is_running:
        others = [
            shown(found[each]) if each in found else "" for each in ("lightning", "lightning mended", "accelerate")
        ]
        PROOF.note(
            case,
            dict(
                zip(
                    COLUMNS,
                    [found["true"], found["batch"], found["trials"], found["out of memory"], *others],
                    strict=True,
                )
            ),
        )
        PROOF.write_table("The batch that is found, against the largest that fits", TEXT, COLUMNS)
