"""What the trainer's memory and precision options cost or gain per step, each against the same step without it.

    python benchmarks/memory_options.py                    # about three minutes on one core

One process and thread, the variants of a row in alternating rounds; the figure is the median over the rounds of the
ratio of CPU times. Beside it the predicted peak of the step in MiB. They are figures of this CPU, and say nothing of
others.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "trainer" / "src"))

BATCH, LENGTH, PASSES = 8, 256, 4


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7, help="rounds of each variant")
    parser.add_argument("--json", action="store_true", help="print one JSON object only")
    arguments = parser.parse_args()
    import torch

    torch.set_num_threads(1)
    found: dict[str, dict[str, Any]] = {}
    for row, (base, others) in rows().items():
        steps = {name: make() for name, make in {"base": base, **others}.items()}
        for step, _ in steps.values():
            step()  # allocations and caches
        ratios: dict[str, list[float]] = {name: [] for name in others}
        for number in range(arguments.rounds):
            order = list(steps) if number % 2 else list(reversed(steps))
            taken = {name: cpu_time(steps[name][0]) for name in order}
            for name in others:
                ratios[name].append(taken[name] / taken["base"])
        for name, values in ratios.items():
            found[f"{name} / {row}"] = {
                "ratio": round(statistics.median(values), 3),
                "spread": [round(min(values), 3), round(max(values), 3)],
                "peak_mib": [round(steps[each][1] / 2**20, 1) for each in (name, "base")],
            }
    if arguments.json:
        print(json.dumps(found))
        return
    for name, figures in found.items():
        low, high = figures["spread"]
        ours, theirs = figures["peak_mib"]
        print(
            f"{name:58} CPU x{figures['ratio']:.3f} ({low:.3f} to {high:.3f}), peak {ours:.1f} against {theirs:.1f} MiB"
        )


Step = tuple[Callable[[], None], int]


def rows() -> dict[str, tuple[Callable[[], Step], dict[str, Callable[[], Step]]]]:
    """What is compared with what."""
    return {
        "none recomputed": (
            lambda: prepared(),
            {"selective": lambda: prepared(level="selective"), "full": lambda: prepared(level="full")},
        ),
        "eager attention": (
            lambda: prepared(attention="eager"),
            {"flash attention": lambda: prepared(attention="eager", use_flash_attention_v2=True)},
        ),
        f"bf16, cast anew, {PASSES} passes": (
            lambda: prepared("bf16-mixed", passes=PASSES, cache_fp32_weights=False),
            {"bf16, cast once": lambda: prepared("bf16-mixed", passes=PASSES, cache_fp32_weights=True)},
        ),
    }


def prepared(
    precision: str = "32-true", level: Any = "none", attention: str = "sdpa", passes: int = 1, **options: Any
) -> Step:
    """A training step with these options, and its predicted peak in bytes."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    from gaudi3_scale.memory import predict_step
    from gaudi3_scale.memory.checkpointing import checkpoint_all
    from gaudi3_scale.precision import GaudiMixedPrecision

    torch.manual_seed(0)
    sizes = {"vocab_size": 512, "hidden_size": 256, "intermediate_size": 688, "num_hidden_layers": 4}
    model: Any = LlamaForCausalLM(
        LlamaConfig(
            **sizes, num_attention_heads=8, num_key_value_heads=4, attn_implementation=attention, use_cache=False
        )
    )
    off: dict[str, Any] = {"use_fused_rope": False, "use_flash_attention_v2": False}
    plugin = GaudiMixedPrecision(precision, **{**off, **options})
    plugin.convert_module(model)
    checkpoint_all(model, level)
    batch = torch.randint(0, 512, (BATCH // passes, LENGTH + 1))
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)

    def loss(model: Any, samples: Any) -> Any:
        logits = model(input_ids=samples[:, :-1], use_cache=False).logits
        return torch.nn.functional.cross_entropy(logits.flatten(0, 1).float(), samples[:, 1:].flatten())

    def step() -> None:
        for _ in range(passes):
            with plugin.forward_context():
                value = loss(model, batch)
            value.backward()
        optimizer.step()
        optimizer.zero_grad()
        plugin.drop_cache()

    peak = predict_step(model, loss, [batch], precision=plugin.forward_context, accumulation=passes).peak
    plugin.drop_cache()
    return step, peak


def cpu_time(step: Callable[[], None]) -> float:
    """Seconds of this process's CPU."""
    began = time.process_time()
    step()
    return time.process_time() - began


if __name__ == "__main__":
    main()
