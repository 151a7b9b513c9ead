"""Which data."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field, model_validator

from gaudi3_scale.config.section import Section

Format = Literal["auto", "text", "jsonl", "json", "parquet", "arrow"]
Content = Literal["text", "chat", "prompt", "preference"]
PREFERENCE = "preference"


class MixtureSource(Section):
    """One source of a mixture."""

    source: str = Field(min_length=1, description="as data.source")
    weight: float = Field(gt=0, description="share of the samples, relative to the other weights")
    format: Format = Field("auto", description="as data.format")
    field: str = Field("", description="as data.field; empty = the same")
    content: Content | None = Field(None, description="as data.content; null = the same")


class DataConfig(Section):
    """The text to learn."""

    source: str = Field(
        "stdlib",
        min_length=1,
        description="stdlib = the sources of Python's standard library; the path of a file or folder of text, .jsonl, "
        ".json, .parquet or .arrow; hf:NAME[:CONFIG][:SPLIT] = a Hugging Face dataset",
    )
    mixture: tuple[MixtureSource, ...] = Field(
        (), description="several sources instead of one, each with source and weight (also format, field, content)"
    )
    format: Format = Field(
        "auto",
        description="of local files; auto = by each file's suffix and content, where text has to be UTF-8 without NUL "
        "bytes; text = any bytes",
    )
    content: Content = Field(
        "text",
        description="of a record: text; chat = messages with role and content (or conversations with from and value), "
        "of which the assistant's are learnt; "
        "prompt = the fields prompt and completion, of which the completion is learnt; "
        "preference = prompt, chosen and rejected, texts or messages, of which the chosen answer is preferred (DPO)",
    )
    field: str = Field(
        "text",
        min_length=1,
        description="field or column with the text, in JSON, Parquet, Arrow and hf:; for chat, text means messages "
        "or conversations",
    )
    tokenizer: str = Field(
        "bytes",
        min_length=1,
        description="bytes, or the path of a tokenizer.json or of a transformers folder; the registry:NAME@ALIAS of "
        "model.name = that model's own",
    )
    begin_of_text: str = Field(
        "", description="token put before each document; auto = the tokenizer's own (bos_token); empty = none"
    )
    end_of_text: str = Field(
        "", description="token put after each document; empty = the tokenizer's own (a newline with bytes)"
    )
    documents: bool = Field(
        False,
        description="attention stays within a document and positions restart with each; needs a mask of "
        "sequence_length squared per sample, which false does without",
    )
    shard_tokens: int = Field(2**26, ge=1024, description="tokens per file of prepared data; a kill loses at most one")
    parts: int = Field(
        1,
        ge=1,
        le=1000,
        description="parts that nodes, or processes of gaudi3-train prepare, prepare side by side where they share "
        "data.directory",
    )
    directory: Path | None = Field(
        None, description="where prepared data is kept, to share it among jobs; null = data/ in output_dir"
    )
    replace: bool = Field(False, description="resume with other data than the checkpoint was trained on")
    prefetch: int = Field(2, ge=0, le=64, description="batches fetched ahead by a thread; 0 = none")
    validation_fraction: float = Field(
        0.05, gt=0, lt=0.5, description="largest share of the data held out; chosen alike for every seed"
    )
    validation_samples: int = Field(
        256,
        ge=1,
        description="held-out samples in the loss that is reported when training ends; no more than these are held out",
    )

    @property
    def contents(self) -> set[str]:
        """Of all sources."""
        return {each.content or self.content for each in self.mixture} or {self.content}

    @property
    def prefers(self) -> bool:
        """Is each sample a pair of answers, of which one is preferred?"""
        return self.contents == {PREFERENCE}

    @model_validator(mode="after")
    def _pairs_are_samples_of_their_own(self) -> DataConfig:
        if PREFERENCE in self.contents and len(self.contents) > 1:
            others = ", ".join(sorted(self.contents - {PREFERENCE}))
            raise ValueError(
                f"content is {PREFERENCE} for a source of the mixture and {others} for another one, and a job learns "
                "from pairs of answers or from texts"
            )
        if self.prefers and self.documents:
            raise ValueError(
                f"documents is true, and content is {PREFERENCE}, where each answer is a row of its own already"
            )
        return self
