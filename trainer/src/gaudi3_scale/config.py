"""The job's configuration: what may be set, within which bounds, and the sentence for whoever sets it wrong."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, cast

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from gaudi3_scale.errors import ConfigError


class Section(BaseModel):
    """A part of the configuration; a key it does not know is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class ModelConfig(Section):
    """The Llama that is trained. The vocabulary is bytes: no tokenizer, nothing to download."""

    name: Literal["llama"] = Field("llama", description="architecture; built from these sizes, never downloaded")
    hidden_size: int = Field(128, ge=8, description="width; a multiple of 2 x heads")
    layers: int = Field(3, ge=1, description="number of decoder layers")
    heads: int = Field(4, ge=1, description="attention heads")
    kv_heads: int = Field(2, ge=1, description="key/value heads; divides heads")
    intermediate_size: int = Field(344, ge=8, description="width of the MLP")
    sequence_length: int = Field(128, ge=8, description="bytes of context per sample")
    vocab_size: int = Field(256, ge=256, description="256 bytes; more only to leave room for special tokens")

    @model_validator(mode="after")
    def _fits(self) -> ModelConfig:
        if self.hidden_size % (2 * self.heads):
            raise ValueError(f"hidden_size is {self.hidden_size}, which is no multiple of 2 x heads = {2 * self.heads}")
        if self.heads % self.kv_heads:
            raise ValueError(f"kv_heads is {self.kv_heads}, which does not divide heads = {self.heads}")
        return self


class DataConfig(Section):
    """The bytes to learn."""

    source: str = Field(
        "stdlib",
        min_length=1,
        description="stdlib = the sources of Python's standard library, or the path of a text file or folder",
    )
    validation_fraction: float = Field(
        0.05, gt=0, lt=0.5, description="share of the samples held out; chosen alike for every seed"
    )
    validation_samples: int = Field(
        256, ge=1, description="held-out samples in the loss that is reported when training ends"
    )


class TrainConfig(Section):
    """How to learn."""

    max_steps: int = Field(200, ge=1, description="optimizer steps of the whole job")
    micro_batch_size: int = Field(8, ge=1, description="samples per process and forward pass")
    accumulation_steps: int = Field(1, ge=1, description="forward passes per optimizer step")
    learning_rate: float = Field(3e-3, gt=0, description="peak of the schedule")
    warmup_steps: int = Field(20, ge=0, description="steps of linear rise; cosine fall to a tenth afterwards")
    weight_decay: float = Field(0.1, ge=0, description="on matrices only")
    gradient_clip: float = Field(1.0, ge=0, description="bound on the gradient's norm; 0 = none")
    seed: int = Field(1234, ge=0, lt=2**32, description="weights, sample order and random state follow from it")
    precision: Literal["32-true", "bf16-mixed"] = Field(
        "32-true", description="32-true, or bf16-mixed = bfloat16 autocast over float32 weights"
    )
    log_every: int = Field(10, ge=1, description="steps between lines, status and metrics; loss is their mean")
    threads: int = Field(0, ge=0, description="CPU threads per process; 0 = the node's cores / its processes")
    collective_timeout: int = Field(
        120, ge=5, description="seconds after which a process gives up on one that does not answer"
    )


class CheckpointConfig(Section):
    """What survives a kill."""

    every: int = Field(25, ge=1, description="steps between checkpoints; a kill loses at most these")
    keep: int = Field(2, ge=1, description="committed checkpoints kept per node; 2 survive a damaged newest one")


class MetricsConfig(Section):
    """Prometheus metrics, served by the first process of each node until it ends."""

    enabled: bool = Field(True, description="serve them")
    address: str = Field("127.0.0.1", min_length=1, description="address to listen on; use the cluster's")
    port: int = Field(9410, ge=0, le=65535, description="port to listen on; 0 = any free one, named in the log")


class Config(Section):
    """A training job."""

    output_dir: Path = Field(
        Path("gaudi3-train"), description="status.json, metrics.jsonl, checkpoints/ and data/ go here, on each node"
    )
    device: Literal["auto", "cpu", "cuda", "hpu"] = Field(
        "auto", description="auto = hpu, else cuda, else cpu; a named one is never replaced by another"
    )
    model: ModelConfig = Field(default_factory=ModelConfig, description="the model")
    data: DataConfig = Field(default_factory=DataConfig, description="the data")
    train: TrainConfig = Field(default_factory=TrainConfig, description="the training")
    checkpoint: CheckpointConfig = Field(default_factory=CheckpointConfig, description="checkpoints")
    metrics: MetricsConfig = Field(default_factory=MetricsConfig, description="Prometheus metrics")


def load(path: Path | None, overrides: Sequence[str] = ()) -> Config:
    """Read a YAML file (none = all defaults), lay KEY=VALUE overrides over it and check the whole."""
    values = _read(path) if path else {}
    for override in overrides:
        _override(values, override)
    try:
        return Config.model_validate(values)
    except ValidationError as error:
        raise ConfigError(_sentence(error, str(path) if path else "the configuration")) from None


def dump_default() -> str:
    """The default configuration as YAML, each key with its meaning."""
    lines = ["# Configuration of `gaudi3-train fit`; these are the defaults.", *_dump(Config, Config(), 0)]
    return "\n".join(lines) + "\n"


def keys(section: type[Section] = Config, prefix: str = "") -> Iterator[str]:
    """Every key that may be set, dotted."""
    for name, field in section.model_fields.items():
        yield prefix + name
        if _is_section(field.annotation):
            yield from keys(cast("type[Section]", field.annotation), f"{prefix}{name}.")


def _read(path: Path) -> dict[str, Any]:
    try:
        values = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(
            f"The configuration {path} cannot be read ({error.strerror}): give the path of a YAML file, which "
            "`gaudi3-train config` prints to start from."
        ) from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f" at line {mark.line + 1}" if mark else ""
        raise ConfigError(
            f"The configuration {path} is not valid YAML{where}: compare it with `gaudi3-train config`."
        ) from None
    if values is None:
        return {}
    if not isinstance(values, dict):
        raise ConfigError(
            f"The configuration {path} is a {type(values).__name__}, not a mapping of keys to values: "
            "compare it with `gaudi3-train config`."
        )
    return values


def _override(values: dict[str, Any], override: str) -> None:
    key, separator, text = override.partition("=")
    if not separator or not key:
        raise ConfigError(
            f"The override {override!r} is not of the form KEY=VALUE: write for example train.max_steps=100."
        )
    *parents, last = key.split(".")
    for parent in parents:
        if values.get(parent) is None:
            values[parent] = {}
        values = values[parent]
        if not isinstance(values, dict):
            raise ConfigError(_unknown(key, "the command line"))
    try:
        values[last] = yaml.safe_load(text) if text else ""
    except yaml.YAMLError:
        raise ConfigError(f"The value of the override {override!r} is not valid YAML: put it in quotes.") from None


def _sentence(error: ValidationError, where: str) -> str:
    """One sentence about the first thing that is wrong; a misspelt key explains most others, so it goes first."""
    problems = sorted(error.errors(), key=lambda e: e["type"] != "extra_forbidden")
    problem = problems[0]
    key = ".".join(str(part) for part in problem["loc"])
    if problem["type"] == "extra_forbidden":
        return _unknown(key, where)
    if problem["type"] == "value_error":
        return f"In {where}, {key}: {problem['ctx']['error']}; change one of them."
    if problem["type"] in ("model_type", "dict_type"):
        return f"In {where}, {key or 'the whole'} is {problem['input']!r}: it must be a mapping of keys to values."
    reason = problem["msg"].removeprefix("Input ").removeprefix("Value ")
    return f"In {where}, {key} is {problem['input']!r}, but it {reason}."


def _unknown(key: str, where: str) -> str:
    known = list(keys())
    near = difflib.get_close_matches(key, known, n=1, cutoff=0.5)
    if not near:  # perhaps the right name in the wrong section
        last = key.rsplit(".", 1)[-1]
        near = [k for k in known if k.rsplit(".", 1)[-1] == last]
    hint = f"did you mean {near[0]!r}?" if near else "`gaudi3-train config` prints all keys."
    return f"Unknown key {key!r} in {where}: {hint}"


def _is_section(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, Section)


def _dump(section: type[Section], values: Section, depth: int) -> Iterator[str]:
    indent = "  " * depth
    for name, field in section.model_fields.items():
        value = getattr(values, name)
        if isinstance(value, Section):
            yield f"{indent}{name}:  # {(type(value).__doc__ or '').strip()}"
            yield from _dump(type(value), value, depth + 1)
        else:
            plain = str(value) if isinstance(value, Path) else value
            text = yaml.safe_dump(plain, default_flow_style=True).splitlines()[0]
            yield f"{indent}{name}: {text}  # {field.description}"
