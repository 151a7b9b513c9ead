"""Which data."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field

from gaudi3_scale.config.section import Section


class DataConfig(Section):
    """The text to learn."""

    source: str = Field(
        "stdlib",
        min_length=1,
        description="stdlib = the sources of Python's standard library; the path of a file or folder of text, .jsonl "
        "or .parquet; hf:NAME[:CONFIG][:SPLIT] = a Hugging Face dataset",
    )
    format: Literal["auto", "text", "jsonl", "parquet"] = Field(
        "auto", description="of local files; auto = by each file's suffix, text where it says nothing"
    )
    field: str = Field("text", min_length=1, description="field or column with the text, in JSONL, Parquet and hf:")
    tokenizer: str = Field(
        "bytes", min_length=1, description="bytes, or the path of a tokenizer.json or of a transformers folder"
    )
    end_of_text: str = Field(
        "", description="token put after each document; empty = the tokenizer's own (a newline with bytes)"
    )
    shard_tokens: int = Field(2**26, ge=1024, description="tokens per file of prepared data; a kill loses at most one")
    directory: Path | None = Field(
        None, description="where prepared data is kept, to share it among jobs; null = data/ in output_dir"
    )
    prefetch: int = Field(2, ge=0, le=64, description="batches fetched ahead by a thread; 0 = none")
    validation_fraction: float = Field(
        0.05, gt=0, lt=0.5, description="share of the samples held out; chosen alike for every seed"
    )
    validation_samples: int = Field(
        256, ge=1, description="held-out samples in the loss that is reported when training ends"
    )
