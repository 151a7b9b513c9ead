"""What batches gain over one prompt after the other: `OptimizedInferenceServer` on CPU.

    python benchmarks/serving_batch.py                    # 48 prompts, 32 tokens each, at most 16 at once
    python benchmarks/serving_batch.py --hidden 512 --layers 8 --batch 32 --json

generate   transformers' own `generate`, greedy, one prompt at a time
single     the server with max_batch_size=1
batched    the server with max_batch_size=N, all prompts handed over at once
arriving   the same with a prompt every few milliseconds, so that they join and leave a running batch

All four answer the same prompts in each round, in an order that rotates, and give the same tokens, or it ends with 1. A
random Llama in float32. `ratio` is the tokens per second of CPU time against those of `generate`, from the medians;
the aim is at least 3 for `batched`.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "trainer" / "src"))

Answers = list[tuple[int, ...]]
VOCABULARY = 4096


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--hidden", type=int, default=256, help="width of the model")
    parser.add_argument("--layers", type=int, default=6, help="its layers")
    parser.add_argument("--prompts", type=int, default=48, help="prompts of 8 to 64 tokens")
    parser.add_argument("--tokens", type=int, default=32, help="new tokens of each")
    parser.add_argument("--batch", type=int, default=16, help="max_batch_size")
    parser.add_argument("--rounds", type=int, default=5, help="rounds of each way")
    parser.add_argument("--json", action="store_true", help="print one JSON object only")
    given = parser.parse_args()
    import torch
    from transformers import AutoModelForCausalLM

    from gaudi3_scale.serving import OptimizedInferenceServer, Request

    torch.set_num_threads(1)
    made = random.Random(1)
    prompts = [[made.randrange(VOCABULARY) for _ in range(made.randint(8, 64))] for _ in range(given.prompts)]
    with tempfile.TemporaryDirectory() as folder:
        write(folder, given.hidden, given.layers)
        model = AutoModelForCausalLM.from_pretrained(folder).eval()
        one = OptimizedInferenceServer(folder, 1, engine="transformers", device="cpu")
        many = OptimizedInferenceServer(folder, given.batch, engine="transformers", device="cpu")

        def arriving() -> Answers:
            tickets = []
            for prompt in prompts:
                tickets.append(many._engine.submit(Request(prompt, max_new_tokens=given.tokens)))
                time.sleep(0.003)
            return [ticket.answer.result().token_ids for ticket in tickets]

        ways: dict[str, Callable[[], Answers]] = {
            "generate": lambda: [alone(model, prompt, given.tokens) for prompt in prompts],
            "single": lambda: [answer.token_ids for answer in one.complete(prompts, given.tokens)],
            "batched": lambda: [answer.token_ids for answer in many.complete(prompts, given.tokens)],
            "arriving": arriving,
        }
        seconds, same = measured(ways, given.rounds)
        one.close()
        many.close()
    total = given.prompts * given.tokens
    rates = {name: total / statistics.median(each) for name, each in seconds.items()}
    result: dict[str, Any] = {
        name: {"tokens_per_cpu_second": rate, "ratio": rate / rates["generate"]} for name, rate in rates.items()
    }
    if given.json:
        print(json.dumps({**result, "same_tokens": same}))
    else:
        for name, each in result.items():
            print(f"{name:9}  {each['tokens_per_cpu_second']:8.0f} tokens/s of CPU  ratio {each['ratio']:.2f}")
        print(f"the same tokens in all: {'yes' if same else 'no'}")
    return 0 if same else 1


def measured(ways: dict[str, Callable[[], Answers]], rounds: int) -> tuple[dict[str, list[float]], bool]:
    """CPU seconds of each way in each round but the first, and whether all answers were the same."""
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    names, answers = list(ways), []
    for number in range(rounds + 1):
        for name in names[number % 4 :] + names[: number % 4]:
            began = time.process_time()
            answers.append(ways[name]())
            if number:  # the first round warms up
                seconds[name].append(time.process_time() - began)
    return seconds, all(each == answers[0] for each in answers)


def write(folder: str, hidden: int, layers: int) -> None:
    """A random Llama whose likeliest token is far from the next one, as it is of a trained model."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=hidden,
        intermediate_size=3 * hidden,
        num_hidden_layers=layers,
        num_attention_heads=8,
        num_key_value_heads=4,
        max_position_embeddings=512,
        initializer_range=0.1,
        bos_token_id=None,
        eos_token_id=None,
        pad_token_id=None,
    )
    LlamaForCausalLM(config).save_pretrained(folder)


def alone(model: Any, prompt: list[int], tokens: int) -> tuple[int, ...]:
    """The answer to one prompt by transformers' `generate`."""
    import torch

    with torch.inference_mode():
        found = model.generate(
            torch.tensor([prompt]),
            attention_mask=torch.ones((1, len(prompt)), dtype=torch.long),
            max_new_tokens=tokens,
            do_sample=False,
            pad_token_id=0,
        )
    return tuple(int(token) for token in found[0, len(prompt) :])


if __name__ == "__main__":
    sys.exit(main())
