"""optimum-habana: `optimum_habana.py import|adapt|versions|eager|lazy|bf16|graphs`."""

from __future__ import annotations

import math
import sys

import torch


def trained(mode: str) -> None:
    """Five steps of GaudiTrainer with the vendor's optimiser."""
    from optimum.habana import GaudiConfig, GaudiTrainer, GaudiTrainingArguments
    from optimum.habana.transformers.modeling_utils import adapt_transformers_to_gaudi
    from torch.utils.data import Dataset
    from transformers import BertConfig, BertForSequenceClassification

    class Sentences(Dataset):  # type: ignore[type-arg]
        def __len__(self) -> int:
            return 20

        def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
            tokens = torch.randint(0, 70, (11,), generator=torch.Generator().manual_seed(index))
            return {"input_ids": tokens, "attention_mask": torch.ones_like(tokens), "labels": tokens[0] % 3}

    adapt_transformers_to_gaudi()
    torch.manual_seed(0)
    model = BertForSequenceClassification(
        BertConfig(vocab_size=70, hidden_size=24, intermediate_size=40, num_hidden_layers=2, num_attention_heads=4,
                   num_labels=3)
    )  # fmt: skip
    arguments = GaudiTrainingArguments(
        output_dir="out", use_habana=True, use_lazy_mode=mode in ("lazy", "graphs"), max_steps=5,
        per_device_train_batch_size=3, per_device_eval_batch_size=3, report_to=[], save_strategy="no",
        bf16=mode == "bf16", use_hpu_graphs_for_inference=mode == "graphs", learning_rate=1e-2,
    )  # fmt: skip
    gaudi = GaudiConfig(use_fused_adam=True, use_fused_clip_norm=True, use_torch_autocast=mode == "bf16")
    trainer = GaudiTrainer(
        model=model, gaudi_config=gaudi, args=arguments, train_dataset=Sentences(), eval_dataset=Sentences()
    )
    result = trainer.train()
    assert arguments.device.type == "hpu", arguments.device
    assert math.isfinite(result.training_loss), result
    metrics = trainer.evaluate()
    assert math.isfinite(metrics["eval_loss"]), metrics
    print(f"{mode}: loss {result.training_loss:.4f} -> {metrics['eval_loss']:.4f}")


def main(mode: str) -> None:
    """One of the modes."""
    if mode == "import":
        import optimum.habana

        print(f"optimum-habana {optimum.habana.__version__}")
    elif mode == "adapt":
        from optimum.habana.transformers.modeling_utils import adapt_transformers_to_gaudi

        adapt_transformers_to_gaudi()
        print("adapted")
    elif mode == "versions":
        from optimum.habana.utils import get_driver_version, get_habana_frameworks_version

        assert str(get_driver_version()) == "1.23.0", get_driver_version()
        print(f"driver {get_driver_version()}, habana_frameworks {get_habana_frameworks_version()}")
    else:
        trained(mode)


if __name__ == "__main__":
    main(sys.argv[1])
