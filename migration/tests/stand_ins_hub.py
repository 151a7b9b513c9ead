"""Folders under the names by which programs ask the hub for data and models: a folder of that name is taken instead."""

from __future__ import annotations

import json
import random
from pathlib import Path

from stand_ins import WORDS, sentence
from stand_ins_media import write_table


def complaints(folder: Path) -> None:
    """Texts with a label, as `regisss/raft` has them."""
    draw = random.Random(7)
    rows = [{"Abstract Note": sentence(draw, 6), "ID": number, "Label": number % 2} for number in range(64)]
    path = folder / "regisss" / "raft" / "train.parquet"
    write_table(path, rows, **{"Abstract Note": "string", "ID": "int64", "Label": tuple(WORDS[:2])})


AMINO_ACIDS = "ACDEFGHIKLMNPQRSTVWY"
PROTEIN = """from torch.nn import Linear
from torch.nn.functional import cross_entropy
from transformers import EsmConfig, EsmModel, EsmPreTrainedModel
from transformers.modeling_outputs import SequenceClassifierOutput


class TinyProtein(EsmPreTrainedModel):
    config_class = EsmConfig

    def __init__(self, config):
        super().__init__(config)
        self.esm = EsmModel(config, add_pooling_layer=False)
        self.classifier = Linear(config.hidden_size, 2)
        self.post_init()

    def forward(self, input_ids=None, attention_mask=None, labels=None):
        first = self.esm(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state[:, 0]
        logits = self.classifier(first)
        loss = None if labels is None else cross_entropy(logits, labels)
        return SequenceClassifierOutput(loss=loss, logits=logits)
"""


def proteins(folder: Path) -> None:
    """Proteins of two places in a cell under the only name that the program takes, and an ESM.

    The program trains a classifier that comes with the model's own code: such code is there too.
    """
    import torch
    from safetensors.torch import save_file
    from transformers import EsmConfig, EsmModel

    torch.manual_seed(1)
    tokens = ["<cls>", "<pad>", "<eos>", "<unk>", *AMINO_ACIDS, "<mask>"]
    config = EsmConfig(
        vocab_size=len(tokens),
        pad_token_id=1,
        mask_token_id=len(tokens) - 1,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=1030,
        position_embedding_type="absolute",
        token_dropout=False,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    path = folder / "esm"
    weights = {f"esm.{name}": each for name, each in EsmModel(config, add_pooling_layer=False).state_dict().items()}
    path.mkdir()
    save_file(
        {
            **weights,
            "classifier.weight": torch.randn(2, 32) * 0.1,
            "classifier.bias": torch.zeros(2),
        },
        path / "model.safetensors",
        metadata={"format": "pt"},
    )
    own = {"architectures": ["TinyProtein"], "auto_map": {"AutoModel": "tiny_protein.TinyProtein"}}
    (path / "config.json").write_text(json.dumps({**config.to_dict(), **own}))
    (path / "tiny_protein.py").write_text(PROTEIN)
    (path / "vocab.txt").write_text("\n".join(tokens))
    (path / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "EsmTokenizer"}))
    draw = random.Random(6)
    for part in ("train", "validation", "test"):
        rows = []
        for number in range(64 if part == "train" else 8):
            acids = "".join(draw.choice(AMINO_ACIDS) for _ in range(30))
            rows.append({"Unnamed: 0": number, "prot_seq": acids, "localization": number % 2})
        columns = {"Unnamed: 0": "int64", "prot_seq": "string", "localization": "int64"}
        write_table(folder / "mila-intel" / "ProtST-BinaryLocalization" / f"{part}.parquet", rows, **columns)
