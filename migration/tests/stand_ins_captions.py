"""Captioned pictures, and the tiny models of two towers that learn which caption belongs to which picture."""

from __future__ import annotations

import json
import random
from pathlib import Path

from stand_ins import BERT, sentence, word_tokenizer
from stand_ins_media import PATCH, SIDE, VISION, image_processor, picture, write_table


def captioned(folder: Path) -> None:
    """Pictures with a caption each, a BridgeTower, and a ViT beside a BERT.

    Not a CLIP: the attention that optimum-habana puts into CLIP multiplies matrices of shapes that do not fit.
    """
    import torch
    from transformers import (
        BertConfig,
        BridgeTowerConfig,
        BridgeTowerForContrastiveLearning,
        VisionTextDualEncoderConfig,
        VisionTextDualEncoderModel,
        ViTConfig,
    )

    torch.manual_seed(1)
    text = {**BERT, "hidden_size": 64, "max_position_embeddings": 40, "type_vocab_size": 1, "pad_token_id": 0}
    bridge = BridgeTowerConfig(
        hidden_size=64,  # a head of its vision tower has 64
        intermediate_size=64,
        num_attention_heads=2,
        num_hidden_layers=2,
        contrastive_hidden_size=16,
        logit_scale_init_value=2.6592,
        text_config=text,
        vision_config={"hidden_size": 64, "num_hidden_layers": 2, "image_size": SIDE, "patch_size": PATCH},
    )
    BridgeTowerForContrastiveLearning(bridge).save_pretrained(folder / "bridgetower")
    pixels = {"size": {"shortest_edge": SIDE}, "crop_size": {"height": SIDE, "width": SIDE}}
    image_processor(folder / "bridgetower", "BridgeTowerImageProcessor", **pixels)
    vision = ViTConfig(**VISION, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    both = VisionTextDualEncoderConfig.from_vision_text_configs(vision, BertConfig(**BERT), projection_dim=16)
    VisionTextDualEncoderModel(config=both).save_pretrained(folder / "dual")
    image_processor(folder / "dual", "ViTImageProcessor", size={"height": SIDE, "width": SIDE})
    for name in ("bridgetower", "dual"):
        word_tokenizer(folder / name)
    draw = random.Random(3)
    rows = []
    for number in range(64):
        image = {"bytes": picture(draw, bright=number % 2 == 1), "path": None}
        rows.append({"image": image, "caption": sentence(draw, 6)})
    write_table(folder / "captions" / "train.parquet", rows, image="Image", caption="string")


def pictured(folder: Path) -> None:
    """Pictures with a question each, as two programs ask for them, and a LLaVA."""
    import torch
    from safetensors.torch import save_file
    from transformers import CLIPVisionConfig, LlamaConfig, LlavaConfig, LlavaForConditionalGeneration

    torch.manual_seed(1)
    path = folder / "llava-hf" / "llava-tiny"
    tokens = word_tokenizer(path, ["<image>"])
    text = LlamaConfig(
        vocab_size=tokens,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=2,
        intermediate_size=64,
        max_position_embeddings=256,
    )
    llava = LlavaConfig(
        vision_config=CLIPVisionConfig(**VISION, projection_dim=16),
        text_config=text,
        image_token_index=tokens - 1,
        image_seq_length=(SIDE // PATCH) ** 2,
        pad_token_id=0,
    )
    model = LlavaForConditionalGeneration(llava)
    model.save_pretrained(path)
    # Under the hub's own names, which both versions read: transformers 5 writes some that 4.55 draws anew.
    weights = {_on_the_hub(name): each.contiguous() for name, each in model.state_dict().items()}
    save_file(weights, path / "model.safetensors", metadata={"format": "pt"})
    pixels = {"size": {"shortest_edge": SIDE}, "crop_size": {"height": SIDE, "width": SIDE}}
    image_processor(path, "CLIPImageProcessor", **pixels)
    settings = {
        "processor_class": "LlavaProcessor",
        "patch_size": PATCH,
        "vision_feature_select_strategy": "default",
        "num_additional_image_tokens": 1,
        "image_token": "<image>",
    }
    (path / "processor_config.json").write_text(json.dumps(settings))
    file = path / "tokenizer_config.json"
    more = {"extra_special_tokens": {"image_token": "<image>"}}
    file.write_text(json.dumps(json.loads(file.read_text()) | more))
    (path / "chat_template.jinja").write_text(TEMPLATE)
    draw = random.Random(4)
    for part in ("train", "test"):
        documents, charts = [], []
        for number in range(64 if part == "train" else 16):  # the sixteenth is generated for
            image = {"bytes": picture(draw, bright=number % 2 == 1), "path": None}
            question, answer = sentence(draw, 5), [sentence(draw, 3)]
            documents.append({"image": image, "query": {"en": question}, "answers": answer})
            charts.append({"image": image, "query": question, "label": answer})
        kinds = {"query": {"en": "string"}, "answers": ["string"]}
        write_table(folder / "documents" / f"{part}.parquet", documents, image="Image", **kinds)
        kinds = {"query": "string", "label": ["string"]}
        write_table(folder / "HuggingFaceM4" / "ChartQA" / f"{part}.parquet", charts, image="Image", **kinds)


def _on_the_hub(name: str) -> str:
    """A weight of LLaVA's by the name that it has in published models."""
    for now, then in (
        ("model.vision_tower.", "vision_tower.vision_model."),
        ("model.language_model.", "language_model.model."),
        ("model.", ""),
        ("lm_head.", "language_model.lm_head."),
    ):
        if name.startswith(now):
            return then + name.removeprefix(now)
    return name


TEMPLATE = (
    "{% for message in messages %}{{ message['role'] }} {% for part in message['content'] %}"
    "{% if part['type'] == 'image' %}<image> {% else %}{{ part['text'] }} {% endif %}{% endfor %}{% endfor %}"
)
