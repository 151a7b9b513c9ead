"""Tiny models of pictures and sounds, and what they train on."""

from __future__ import annotations

import io
import json
import random
import struct
import wave
from pathlib import Path
from typing import Any

SIDE = 16
"""Of a picture, in pixels."""
PATCH = 8
VISION = {
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "image_size": SIDE,
    "patch_size": PATCH,
}
RATE = 16000
"""Of a sound, in samples a second."""
LETTERS = "abcdefgh "
NOTHING_LEFT_OUT = (
    "hidden_dropout",
    "activation_dropout",
    "attention_dropout",
    "feat_proj_dropout",
    "final_dropout",
    "layerdrop",
    "mask_time_prob",
    "mask_feature_prob",
)
WAVES = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 64,
    "conv_dim": (16, 16, 16),
    "conv_kernel": (10, 8, 4),
    "conv_stride": (10, 8, 4),
    "num_conv_pos_embeddings": 16,
    "num_conv_pos_embedding_groups": 2,
    "classifier_proj_size": 16,
    **dict.fromkeys(NOTHING_LEFT_OUT, 0.0),
}
LISTEN = {
    "feature_extractor_type": "Wav2Vec2FeatureExtractor",
    "sampling_rate": RATE,
    "feature_size": 1,
    "padding_value": 0.0,
    "do_normalize": True,
    "return_attention_mask": True,
}


def pictures(folder: Path) -> None:
    """A ViT, and pictures of two kinds in a folder each."""
    import torch
    from transformers import ViTConfig, ViTForImageClassification

    torch.manual_seed(1)
    config = ViTConfig(**VISION, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    ViTForImageClassification(config).save_pretrained(folder / "vit")
    image_processor(folder / "vit", "ViTImageProcessor", size={"height": SIDE, "width": SIDE})
    draw = random.Random(2)
    for part, count in (("train", 64), ("validation", 8)):
        for kind in ("dark", "light"):
            (folder / "pictures" / part / kind).mkdir(parents=True)
            for number in range(count // 2):
                path = folder / "pictures" / part / kind / f"{number}.png"
                path.write_bytes(picture(draw, bright=kind == "light"))


def sounds(folder: Path) -> None:
    """A wav2vec2, and sounds with a kind and a text."""
    import torch
    from transformers import Wav2Vec2Config, Wav2Vec2ForSequenceClassification

    torch.manual_seed(1)
    Wav2Vec2ForSequenceClassification(Wav2Vec2Config(**WAVES)).save_pretrained(folder / "wav2vec2")
    (folder / "wav2vec2" / "preprocessor_config.json").write_text(json.dumps(LISTEN))
    draw = random.Random(5)
    for part, count in (("train", 64), ("validation", 8)):
        rows = []
        for number in range(count):
            text = "".join(draw.choice(LETTERS.strip()) for _ in range(5))
            sound = {"bytes": _sound(draw, number % 2), "path": None}
            rows.append({"audio": sound, "label": number % 2, "text": text})
        write_table(folder / "sounds" / f"{part}.parquet", rows, audio="Audio", label=("low", "high"), text="string")


def image_processor(path: Path, kind: str, **more: Any) -> None:
    """What says how pictures become the numbers of a model."""
    settings = {"image_processor_type": kind, "image_mean": [0.5] * 3, "image_std": [0.5] * 3, **more}
    (path / "preprocessor_config.json").write_text(json.dumps(settings))


def picture(draw: random.Random, *, bright: bool) -> bytes:
    """A dark or a bright one, as PNG."""
    from PIL import Image

    first = 128 if bright else 0
    pixels = bytes(first + draw.randrange(128) for _ in range(SIDE * SIDE * 3))
    file = io.BytesIO()
    Image.frombytes("RGB", (SIDE, SIDE), pixels).save(file, "PNG")
    return file.getvalue()


def _sound(draw: random.Random, kind: int) -> bytes:
    """A quarter of a second, which is as long as a tone of 100 or 200 Hz under noise can be told apart."""
    import math

    tone = 2 * math.pi * (100 + 100 * kind) / RATE
    samples = [int(8000 * math.sin(tone * each)) + draw.randrange(-2000, 2000) for each in range(RATE // 4)]
    file = io.BytesIO()
    with wave.open(file, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(RATE)
        sound.writeframes(struct.pack(f"<{len(samples)}h", *samples))
    return file.getvalue()


def write_table(path: Path, rows: list[dict[str, Any]], **columns: Any) -> None:
    """Rows as a parquet file that says which column holds pictures, sounds or kinds: so `datasets` reads them."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    media = pa.struct({"bytes": pa.binary(), "path": pa.string()})

    def stored(kind: Any) -> pa.DataType:
        if isinstance(kind, dict):
            return pa.struct({name: stored(each) for name, each in kind.items()})
        if isinstance(kind, list):
            return pa.list_(stored(kind[0]))
        plain = {"string": pa.string(), "float64": pa.float64()}
        return {"Image": media, "Audio": media, **plain}.get(kind, pa.int64())

    def said(kind: Any) -> Any:
        if isinstance(kind, dict):
            return {name: said(each) for name, each in kind.items()}
        if isinstance(kind, list):
            return {"feature": said(kind[0]), "_type": "List"}
        if isinstance(kind, tuple):
            return {"names": list(kind), "_type": "ClassLabel"}
        return {"_type": kind} if kind in ("Image", "Audio") else {"dtype": kind, "_type": "Value"}

    path.parent.mkdir(parents=True, exist_ok=True)
    schema = pa.schema([(name, stored(kind)) for name, kind in columns.items()])
    features = {"info": {"features": {name: said(kind) for name, kind in columns.items()}}}
    schema = schema.with_metadata({"huggingface": json.dumps(features)})
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), path)
