"""The job's configuration: what may be set, within which bounds, and the sentence for whoever sets it wrong."""

from __future__ import annotations

import copy
import difflib
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, cast

import yaml
from pydantic import Field, ValidationError, model_validator

from gaudi3_scale import yaml_file
from gaudi3_scale.config.checkpoint import CheckpointConfig
from gaudi3_scale.config.cost import CostConfig
from gaudi3_scale.config.data import DataConfig
from gaudi3_scale.config.ddp import DdpConfig
from gaudi3_scale.config.interruption import InterruptionConfig
from gaudi3_scale.config.memory import MemoryConfig
from gaudi3_scale.config.metrics import MetricsConfig
from gaudi3_scale.config.model import ModelConfig
from gaudi3_scale.config.monitoring import MonitoringConfig
from gaudi3_scale.config.origin import LINE, Origins, opening
from gaudi3_scale.config.preference import PreferenceConfig
from gaudi3_scale.config.profile import ProfileConfig
from gaudi3_scale.config.recipe_cache import RecipeCacheConfig
from gaudi3_scale.config.registered import is_registered
from gaudi3_scale.config.section import Section
from gaudi3_scale.config.tracking import TrackingConfig
from gaudi3_scale.config.train import TrainConfig
from gaudi3_scale.errors import ConfigError

__all__ = [
    "CheckpointConfig",
    "Config",
    "CostConfig",
    "DataConfig",
    "DdpConfig",
    "InterruptionConfig",
    "MemoryConfig",
    "MetricsConfig",
    "ModelConfig",
    "MonitoringConfig",
    "PreferenceConfig",
    "ProfileConfig",
    "RecipeCacheConfig",
    "Section",
    "TrackingConfig",
    "TrainConfig",
    "dump_default",
    "keys",
    "load",
]


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
    preference: PreferenceConfig = Field(default_factory=PreferenceConfig, description="preference tuning")
    ddp: DdpConfig = Field(default_factory=DdpConfig, description="gradients, under strategy optimized_ddp")
    memory: MemoryConfig = Field(default_factory=MemoryConfig, description="memory and kernels")
    checkpoint: CheckpointConfig = Field(default_factory=CheckpointConfig, description="checkpoints")
    interruption: InterruptionConfig = Field(default_factory=InterruptionConfig, description="leaving in order")
    metrics: MetricsConfig = Field(default_factory=MetricsConfig, description="Prometheus metrics")
    monitoring: MonitoringConfig = Field(default_factory=MonitoringConfig, description="anomalies")
    tracking: TrackingConfig = Field(default_factory=TrackingConfig, description="experiment trackers")
    profile: ProfileConfig = Field(default_factory=ProfileConfig, description="profiling of a few steps")
    recipe_cache: RecipeCacheConfig = Field(default_factory=RecipeCacheConfig, description="compiled graphs")
    cost: CostConfig = Field(default_factory=CostConfig, description="money")

    @model_validator(mode="after")
    def _one_registered_model(self) -> Config:
        """A tokenizer is fetched with its model."""
        if is_registered(self.data.tokenizer) and self.data.tokenizer != self.model.name:
            raise ValueError(
                f"data.tokenizer is {self.data.tokenizer!r}, which only the model of that name brings, and model.name "
                f"is {self.model.name!r}"
            )
        return self

    @property
    def tokens_per_sample(self) -> int:
        """That a sample counts for: the window that is learnt from, or both rows of a pair, with what fills them."""
        return self.model.sequence_length * (2 if self.data.prefers else 1)

    @model_validator(mode="after")
    def _only_pairs_have_preferences(self) -> Config:
        if self.preference.changed and not self.data.prefers:
            raise ValueError(
                f"preference.{self.preference.changed[0]} is for data.content preference, and that is "
                f"{self.data.content}"
            )
        return self

    @model_validator(mode="after")
    def _only_optimized_ddp_optimizes(self) -> Config:
        """None of these is ignored."""
        if self.ddp.changed and self.train.strategy != "optimized_ddp":
            raise ValueError(
                f"ddp.{self.ddp.changed[0]} is for train.strategy optimized_ddp, and that is {self.train.strategy}"
            )
        if self.ddp.balance != "none" and self.train.batch_warmup:
            raise ValueError(
                "ddp.balance is for steps of one size, and train.batch_warmup has several: set one of them alone"
            )
        return self


def load(path: Path | None, overrides: Sequence[str] = (), elsewhere: bool = False) -> Config:
    """Read a YAML file (none = all defaults), lay KEY=VALUE overrides over it and check the whole.

    Of a job that runs `elsewhere`, folders need not be on this node.
    """
    values = _read(path) if path else {}
    origins = Origins(str(path or ""), copy.deepcopy(values))
    for override in overrides:
        _override(values, override, origins)
    if values.get("output_dir") == "":
        # As a path it would be the folder that the command is run in.
        raise ConfigError(f"{opening(origins.of('output_dir'))}, output_dir is empty: name a folder, or leave it out.")
    try:
        return Config.model_validate(values, context={"elsewhere": elsewhere})
    except ValidationError as error:
        raise ConfigError(_sentence(error, origins)) from None


def dump_default() -> str:
    """The default configuration as YAML, each key with its meaning."""
    head = (
        "# Configuration of `gaudi3-train fit`; these are the defaults. Those with # before the key follow from others."
    )
    lines = [head, *_dump(Config, Config(), 0)]
    return "\n".join(lines) + "\n"


def keys(section: type[Section] = Config, prefix: str = "") -> Iterator[str]:
    """Every key that may be set, dotted."""
    for name, field in section.model_fields.items():
        yield prefix + name
        if _is_section(field.annotation):
            yield from keys(cast("type[Section]", field.annotation), f"{prefix}{name}.")


def _read(path: Path) -> dict[str, Any]:
    try:
        values = yaml_file.read(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(
            f"The configuration {path} cannot be read ({error.strerror}): give the path of a YAML file, which "
            "`gaudi3-train config` prints to start from."
        ) from None
    except yaml_file.TwiceError as error:
        raise ConfigError(f"In the configuration {path}, {error}.") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"The configuration {path} is no UTF-8 at byte {error.start}: save it as UTF-8.") from None
    except yaml.YAMLError as error:
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


def _override(values: dict[str, Any], override: str, origins: Origins) -> None:
    key, separator, text = override.partition("=")
    if not separator or not key:
        is_file = Path(override).suffix in (".yml", ".yaml", ".json") or Path(override).is_file()
        advice = f"give a file as --config {override}" if is_file else "write for example train.max_steps=100"
        raise ConfigError(f"The override {override!r} is not of the form KEY=VALUE: {advice}.")
    *parents, last = key.split(".")
    for depth, parent in enumerate(parents, 1):
        if values.get(parent) is None:
            values[parent] = {}
        values = values[parent]
        if not isinstance(values, dict):
            above = ".".join(parents[:depth])
            if key in keys():
                raise ConfigError(_no_mapping(origins.of(above), above, values))
            raise ConfigError(_unknown(key, LINE))
    origins.keys.append(key)
    try:
        values[last] = yaml_file.read(text) if text else ""
    except yaml_file.TwiceError as error:
        raise ConfigError(f"In the override {override!r}, {error}.") from None
    except yaml.YAMLError:
        raise ConfigError(f"The value of the override {override!r} is not valid YAML: put it in quotes.") from None


def _sentence(error: ValidationError, origins: Origins) -> str:
    """One sentence about the first thing that is wrong; a misspelt key explains most others, so it goes first."""
    problems = sorted(error.errors(), key=lambda e: e["type"] != "extra_forbidden")
    problem = problems[0]
    key = ".".join(str(part) for part in problem["loc"])
    where = origins.of(key)
    if problem["type"] in ("extra_forbidden", "invalid_key"):
        return _unknown(key, where)
    if problem["type"] == "value_error":
        said = str(problem["ctx"]["error"])
        where = origins.of_sentence(key, said, _names(key))
        return f"{opening(where)}{', ' + key if key else ''}: {said}; change one of them."
    if problem["type"] in ("model_type", "dict_type"):
        return _no_mapping(where, key or "the whole", problem["input"])
    reason = re.sub(r"^(Input |[A-Z]\w* (?=should |must ))", "", problem["msg"]).replace(
        "<class 'pathlib.Path'>", "a file"
    )
    return f"{opening(where)}, {key} is {problem['input']!r}, but it {reason}."


def _names(section: str) -> list[str]:
    """The keys of a section, without it; of a key that is none, none."""
    prefix = f"{section}." if section else ""
    return [each.removeprefix(prefix) for each in keys() if each.startswith(prefix)]


def _no_mapping(where: str, key: str, value: object) -> str:
    return f"{opening(where)}, {key} is {value!r}: it must be a mapping of keys to values."


def initials(key: str) -> str:
    """First letters of the words of a key's last part."""
    return "".join(word[:1] for word in key.rpartition(".")[2].split("_"))


def _unknown(key: str, where: str) -> str:
    section, _, last = key.rpartition(".")
    known = [each for each in keys() if not key.startswith(f"{each}.")]
    # lr for learning_rate, say.
    short = [each for each in known if each.rpartition(".")[0] == section and initials(each) == last]
    near = short or difflib.get_close_matches(key, known, n=1, cutoff=0.5)
    if not near:  # perhaps the right name in the wrong section
        near = [k for k in known if k.rsplit(".", 1)[-1] == last]
    hint = f"did you mean {near[0]!r}?" if near else "`gaudi3-train config` prints all keys."
    return f"Unknown key {key!r} {where}: {hint}"


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
            yield f"{indent}{'#' if name in section.FOLLOWS else ''}{name}: {text}  # {field.description}"
