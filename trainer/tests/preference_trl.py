"""The loss of pairs as trl computes it; run by trl's own environment (`make proof-preference`), which prints JSON.

python preference_trl.py TOKENIZER_WITH_A_CHAT_TEMPLATE < pairs.json
"""

from __future__ import annotations

import json
import sys
import tempfile
from typing import Any

import torch
from torch import Tensor, nn
from transformers import LlamaConfig, LlamaForCausalLM

CONTEXT = 56
"""Of the model; trl's max_length is one more, as the last token is not read, but learnt."""
CASES: dict[str, dict[str, Any]] = {
    "texts": {"beta": 0.1, "adapters": False},
    "near": {"beta": 0.5, "adapters": False},
    "adapters": {"beta": 0.1, "adapters": True},
    "messages": {"beta": 0.3, "adapters": True},
}
LORA = {"r": 4, "lora_alpha": 8, "target_modules": "all-linear"}


def model(moved: float = 0.0) -> Any:
    """Weights that are a formula, so that no generator of random numbers decides; `moved` ones are a policy's."""
    config = LlamaConfig(
        vocab_size=260,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        tie_word_embeddings=False,
    )
    made = LlamaForCausalLM(config).float().train()
    fill(dict(made.named_parameters()), 0.15, moved)
    return made


def fill(parameters: dict[str, Any], scale: float, moved: float) -> None:
    """Set them, in the order of their names."""
    with torch.no_grad():
        for number, name in enumerate(sorted(parameters)):
            parameter = parameters[name]
            waves = torch.sin(torch.arange(parameter.numel(), dtype=torch.float64) * (0.7 + moved) + number)
            base = 1.0 if parameter.ndim == 1 else 0.0
            parameter.copy_((base + scale * waves).reshape(parameter.shape))


def adapters(of: nn.Module) -> dict[str, Tensor]:
    """Its trained parameters, by the last parts of their names, which are the same whoever added them."""
    return {name[name.index("layers.") :]: p for name, p in of.named_parameters() if p.requires_grad}


def computed(pairs: list[dict[str, Any]], home: str, beta: float, adapters_: bool) -> Any:
    """Loss, figures and norm of the gradients of one batch, and its token ids."""
    from datasets import Dataset
    from peft import LoraConfig
    from transformers import AutoTokenizer
    from trl import DPOConfig, DPOTrainer

    with tempfile.TemporaryDirectory() as folder:
        arguments = DPOConfig(
            output_dir=folder, beta=beta, max_length=CONTEXT + 1, bf16=False, fp16=False,
            use_cpu=True, report_to=[], gradient_checkpointing=False, per_device_train_batch_size=len(pairs),
        )  # fmt: skip
        tokenizer = AutoTokenizer.from_pretrained(home)
        tokenizer.pad_token = tokenizer.eos_token
        trainer = DPOTrainer(
            model=model() if adapters_ else model(0.01),
            ref_model=None if adapters_ else model(),
            args=arguments,
            train_dataset=Dataset.from_list(pairs),
            processing_class=tokenizer,
            peft_config=LoraConfig(**LORA) if adapters_ else None,
        )
        if adapters_:
            fill(adapters(trainer.model), 0.2, 0.0)
        batch = trainer.data_collator([trainer.train_dataset[number] for number in range(len(pairs))])
        loss = trainer.compute_loss(trainer.model, batch)
        loss.backward()
    names = ("rewards/chosen", "rewards/rejected", "rewards/accuracies", "rewards/margins", "logps/chosen")
    figures = {name: trainer._metrics["train"][name][0] for name in (*names, "logps/rejected")}
    trained = [p.grad for p in trainer.model.parameters() if p.grad is not None]
    norm = torch.stack([g.norm() for g in trained]).norm().item()
    ids = [
        row[: int(mask.sum())].tolist() for row, mask in zip(batch["input_ids"], batch["attention_mask"], strict=True)
    ]
    read = [int(row.argmax()) for row in batch["completion_mask"]]
    return {"loss": loss.item(), "gradient_norm": norm, **figures, "ids": ids, "read": read}


def main() -> None:
    """Print every case."""
    import trl

    given = json.load(sys.stdin)
    found: dict[str, Any] = {"trl": trl.__version__}
    for case, settings in CASES.items():
        pairs = given["messages" if case == "messages" else "texts"]
        found[case] = computed(pairs, sys.argv[1], settings["beta"], settings["adapters"])
    print(json.dumps(found))


if __name__ == "__main__":
    main()
