"""What is searched: settings of a job, and for each the values it may have."""

from __future__ import annotations

import difflib
import itertools
import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from gaudi3_scale import yaml_file
from gaudi3_scale.config import Config, keys
from gaudi3_scale.errors import ConfigError

PROCESSES = "processes"
"""Key of the number of processes of a trial, which is the launcher's and no setting of the job."""
MICRO, ACCUMULATION = "train.micro_batch_size", "train.accumulation_steps"
OWN = ("output_dir", "train.max_steps", "train.log_every", "data.directory", "data.source", "data.mixture")
"""Keys that a trial sets itself, or that would make trials incomparable."""
OWN_SECTIONS = ("metrics", "tracking", "checkpoint", "interruption", "profile", "cost")
LARGEST_GRID = 100_000


@dataclass(frozen=True)
class Choice:
    """One of several values."""

    values: tuple[Any, ...]


@dataclass(frozen=True)
class NumberRange:
    """A number between two others, ends included."""

    low: float
    high: float
    log: bool = False
    whole: bool = False
    """Integers only."""


class Space:
    """Keys of the configuration, dotted, and what each may be.

    `train.micro_batch_size` is changed at a constant global batch: `train.accumulation_steps` follows, unless the space
    has that key too. `processes` is the number of processes of a trial, at the same constant global batch.

    Example:
        >>> from gaudi3_scale.config import load
        >>> space = Space({"train.micro_batch_size": [2, 4, 8]}, load(None))
        >>> space.default()
        {'train.micro_batch_size': 8}
        >>> config, processes = space.apply({"train.micro_batch_size": 2}, processes=1)
        >>> config.train.micro_batch_size, config.train.accumulation_steps
        (2, 4)
    """

    def __init__(self, given: Mapping[str, Any], config: Config, processes: int = 1) -> None:
        """`given` has for each key a list of values, or a mapping with low, high and log; ConfigError if wrong."""
        self._config, self._processes = config, processes
        if not given:
            raise ConfigError("The search space is empty: give keys of the configuration, each with a list of values.")
        self.parameters: dict[str, Choice | NumberRange] = {
            key: self._parameter(key, spec) for key, spec in given.items()
        }

    @classmethod
    def of(cls, config: Config, device: str, processes: int = 1) -> Space:
        """What is worth a try for any job on this kind of device: cpu, cuda or hpu. Only speed and memory depend on it.

        Batch, precision and learning rate change what is learnt, and stay as they are unless a space has them.
        """
        train = config.train
        stages = [stage.samples_per_step for stage in train.batch_warmup]
        samples = math.gcd(*stages) // processes if stages else train.micro_batch_size * train.accumulation_steps
        sizes = [size for size in range(1, samples + 1) if samples % size == 0]
        found: dict[str, list[Any]] = {
            "train.mode": ["eager", "compile"],
            MICRO: sizes[-4:],
            "data.prefetch": [0, 2, 8],
            "memory.attention": ["auto", "sdpa", "eager"],
            "memory.loss_chunks": [0, 1, 4],
            "memory.activation_checkpointing": ["none", "selective", "full"],
        }
        if device == "cpu":
            cores = len(os.sched_getaffinity(0))
            found["train.threads"] = [0, *(2**n for n in range(cores.bit_length()) if 2**n < cores)]  # 0 = all of them
        if config.train.strategy == "habana_fsdp" and processes > 1:
            found["train.reshard_after_forward"] = [True, False]
            found["train.reduce_each_micro_batch"] = [True, False]
        return cls({key: values for key, values in found.items() if len(values) > 1}, config, processes)

    @classmethod
    def read(cls, path: Path, config: Config, processes: int = 1) -> Space:
        """From a YAML file: a mapping as `given`."""
        try:
            given = yaml_file.read(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise ConfigError(f"The search space {path} cannot be read ({error.strerror}): give a YAML file.") from None
        except yaml_file.TwiceError as error:
            raise ConfigError(f"In the search space {path}, {error}.") from None
        except (yaml.YAMLError, UnicodeDecodeError):
            raise ConfigError(
                f"The search space {path} is not valid YAML: write lines as train.threads: [1, 2]."
            ) from None
        if not isinstance(given, dict):
            raise ConfigError(f"The search space {path} is no mapping: write lines as train.threads: [1, 2].")
        return cls(given, config, processes)

    @property
    def size(self) -> int | None:
        """Number of combinations; None where there is no end of them."""
        counts = [len(each.values) if isinstance(each, Choice) else None for each in self.parameters.values()]
        return None if None in counts else math.prod(count for count in counts if count is not None)

    def describe(self) -> dict[str, Any]:
        """As plain data, equal for equal spaces."""
        return {
            key: list(each.values) if isinstance(each, Choice) else vars(each) for key, each in self.parameters.items()
        }

    def combinations(self) -> Iterator[dict[str, Any]]:
        """All of them, of a space that is finite and not too large; else none."""
        if self.size is not None and self.size <= LARGEST_GRID:
            lists = [each.values for each in self.parameters.values() if isinstance(each, Choice)]
            for values in itertools.product(*lists):
                yield dict(zip(self.parameters, values, strict=True))

    def default(self) -> dict[str, Any]:
        """The values of the job as it is."""
        return {key: self._own(key) for key in self.parameters}

    def apply(self, values: Mapping[str, Any], processes: int) -> tuple[Config, int]:
        """The configuration with these values, and the number of processes. ConfigError if it refuses them."""
        count = int(values.get(PROCESSES, processes))
        changed = {key: value for key, value in values.items() if key != PROCESSES}
        follows = not self._config.train.batch_warmup and ACCUMULATION not in changed  # else the trainer sees to it
        if (MICRO in changed or count != processes) and follows:
            train = self._config.train
            samples = train.micro_batch_size * train.accumulation_steps * processes
            size = int(changed.get(MICRO, train.micro_batch_size)) * count
            if samples % size:
                raise ConfigError(
                    f"A global batch of {samples} samples is no multiple of {size} = micro-batch x processes: take "
                    "values that divide it, or put train.accumulation_steps into the space."
                )
            changed[ACCUMULATION] = samples // size
        try:
            return patched(self._config, changed), count
        except ValidationError as error:
            problem = error.errors()[0]
            reason = problem["ctx"]["error"] if problem["type"] == "value_error" else problem["msg"]
            raise ConfigError(f"The configuration refuses {dict(values)!r}: {reason}.") from None

    def _parameter(self, key: str, spec: Any) -> Choice | NumberRange:
        known = [k for k in keys() if not any(other.startswith(f"{k}.") for other in keys())]
        allowed = [k for k in known if k not in OWN and k.split(".")[0] not in OWN_SECTIONS]
        if key != PROCESSES and key not in allowed:
            if key in known:
                raise ConfigError(
                    f"The search space has {key!r}, which trials set themselves or need alike: take it out."
                )
            near = difflib.get_close_matches(str(key), [*allowed, PROCESSES], n=1, cutoff=0.5)
            hint = f"did you mean {near[0]!r}?" if near else "`gaudi3-train config` prints all keys."
            raise ConfigError(f"The search space has the unknown key {key!r}: {hint}")
        found = self._range(key, spec) if isinstance(spec, Mapping) else self._choice(key, spec)
        ends = found.values if isinstance(found, Choice) else (found.low, found.high)
        for value in ends:
            self._check(key, value)
        return found

    def _choice(self, key: str, spec: Any) -> Choice:
        plain = isinstance(spec, list | tuple) and all(
            v is None or isinstance(v, bool | int | float | str) for v in spec
        )
        if not plain or not spec:
            raise ConfigError(
                f"The search space gives {key} {spec!r}: give a list of values, or a mapping with low and high."
            )
        own = self._own(key)
        return Choice(tuple(dict.fromkeys([*([] if own in spec else [own]), *spec])))

    def _range(self, key: str, spec: Mapping[str, Any]) -> NumberRange:
        low: Any
        high: Any
        low, high, log = spec.get("low"), spec.get("high"), spec.get("log", False)
        numbers = all(isinstance(end, int | float) and not isinstance(end, bool) for end in (low, high))
        if not numbers or set(spec) - {"low", "high", "log"} or not isinstance(log, bool) or not low < high:
            raise ConfigError(
                f"The search space gives {key} {dict(spec)!r}: give numbers low < high, and log: true for a "
                "logarithmic scale."
            )
        if log and low <= 0:
            raise ConfigError(f"The search space gives {key} low {low!r} with log: give a low above 0.")
        own = self._own(key)
        if not isinstance(own, int | float) or not low <= own <= high:
            raise ConfigError(
                f"The search space gives {key} from {low!r} to {high!r}, without the job's own value {own!r}, "
                "which is the first trial: widen it."
            )
        return NumberRange(low, high, log, whole=all(isinstance(each, int) for each in (low, high, own)))

    def _check(self, key: str, value: Any) -> None:
        """ConfigError for a value that no configuration takes; what depends on other settings a trial finds out."""
        if key == PROCESSES:
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise ConfigError(f"The search space gives processes {value!r}: give whole numbers from 1 on.")
            return
        try:
            patched(self._config, {key: value})
        except ConfigError as error:
            raise ConfigError(f"The search space gives {key} {value!r}: {error}") from None
        except ValidationError as error:
            for problem in error.errors():
                if problem["type"] != "value_error":
                    reason = problem["msg"].removeprefix("Input ")
                    raise ConfigError(f"The search space gives {key} {value!r}, but it {reason}.") from None

    def _own(self, key: str) -> Any:
        if key == PROCESSES:
            return self._processes
        value: Any = self._config
        for part in key.split("."):
            value = getattr(value, part)
        return str(value) if isinstance(value, Path) else value


def patched(config: Config, changes: Mapping[str, Any]) -> Config:
    """A configuration with some keys changed; it is checked as a whole. ValidationError if it is not allowed."""
    return Config.model_validate(plain(config, changes))


def plain(config: Config, changes: Mapping[str, Any]) -> dict[str, Any]:
    """What a file would have for it: the keys that were set, and the changes."""
    values = config.model_dump(mode="json", exclude_unset=True)
    for key, value in changes.items():
        *parents, last = key.split(".")
        section = values
        for parent in parents:
            section = section.setdefault(parent, {})
        section[last] = value
    return values
