"""Reading the file about the place where another launcher runs a job: each wrong or missing key in a sentence."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Generic, TypeVar, get_args, get_origin

import yaml
from pydantic import ValidationError

from gaudi3_scale import yaml_file
from gaudi3_scale.config.section import Section
from gaudi3_scale.errors import ConfigError

Options = TypeVar("Options", bound=Section)


@dataclass(frozen=True)
class LauncherFile(Generic[Options]):
    """How the file of one launcher is read."""

    launcher: str
    """As sentences call it, such as `the Kubernetes launcher`."""
    command: str
    """That writes the job, such as `gaudi3-train kubernetes`."""
    model: type[Options]
    """Of the file's keys."""
    asked: Mapping[str, str]
    """Keys that have no default, and how they are asked for."""
    not_carried: Mapping[str, str]
    """Options of the systemd launcher that this one has no place for, and what to do."""
    example: str
    """A KEY=VALUE."""
    examples: Mapping[str, str] = field(default_factory=dict)
    """What stands in the template for a key that is asked for."""
    parts: Sequence[tuple[str, type[Section]]] = ()
    """Sections within values, each with its title in the template."""

    def values(self, path: Path | None, overrides: Sequence[str], given: Mapping[str, Any]) -> dict[str, Any]:
        """The file (none = no file) with KEY=VALUE overrides and what the command line gives by name, unchecked."""
        values = self._file(path) if path is not None else {}
        for override in overrides:
            key, separator, text = override.partition("=")
            if not separator or not key:
                raise ConfigError(f"--set is {override!r}: give KEY=VALUE, such as --set {self.example}.")
            try:
                value = yaml_file.read(text, numbers_as_written=True) if text else ""
            except yaml.YAMLError:
                raise ConfigError(f"The value of --set {override!r} is not valid YAML: put it in quotes.") from None
            # Of a command line the shell has taken the quotes that a time such as 24:00:00 needs in a file.
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            values[key] = text if is_number and self._is_text(key) else value
        return values | {key: value for key, value in given.items() if value is not None}

    def checked(self, values: Mapping[str, Any], left_out: Collection[str] = ()) -> Options:
        """The options of these values. `left_out` are keys that this job is not asked for.

        Raises:
            ConfigError: With a sentence for each thing that is missing, or one for the first that is wrong.
        """
        known = self.model.model_fields
        refused = [
            f"{key} is set, and {self.launcher} does not carry it: {self.not_carried[key]}."
            for key in values
            if key in self.not_carried
        ]
        unknown = [self._unknown(key) for key in values if key not in self.not_carried and key not in known]
        asked = [key for key in self.asked if values.get(key) is None and key not in left_out]
        missing = [f"{key} is not given: {self.asked[key]}." for key in asked]
        if refused or unknown or missing:
            raise ConfigError("\n".join([*refused, *unknown, *missing]))
        try:
            return self.model.model_validate(values)
        except ValidationError as error:
            raise ConfigError(self._sentence(error)) from None

    def _is_text(self, key: str) -> bool:
        """Whether a key takes text and no number."""
        about = self.model.model_fields.get(key)
        kinds = {about.annotation, *get_args(about.annotation)} if about is not None else set()
        kinds |= {get_args(each)[0] for each in kinds if get_origin(each) is Annotated}
        return str in kinds and not kinds & {int, float}

    def template(self) -> str:
        """A file to start from, each key with its meaning; those with a default as comments."""
        lines = [f"# The cluster of `{self.command} --cluster FILE`. Fill in what has no #, which has no default."]
        for name, about in self.model.model_fields.items():
            if about.is_required() or name in self.asked:
                lines.append(f"{name}: {self.examples.get(name, '')}".rstrip() + f"  # {about.description}")
            else:
                default = list(about.default) if isinstance(about.default, tuple) else about.default
                text = yaml.safe_dump(default, default_flow_style=True).splitlines()[0]
                lines.append(f"#{name}: {text}  # {about.description}")
        for title, section in self.parts:
            lines += [f"# In {title}:", *_about(section)]
        return "\n".join(lines) + "\n"

    def _file(self, path: Path) -> dict[str, Any]:
        try:
            values = yaml_file.read(path.read_text(encoding="utf-8"), numbers_as_written=True)
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is no UTF-8"
            raise ConfigError(
                f"The cluster's file {path} cannot be read ({reason}): `{self.command} --template` prints one to "
                "start from."
            ) from None
        except yaml.YAMLError as error:
            raise ConfigError(f"The cluster's file {path} is not valid YAML ({str(error).splitlines()[0]}).") from None
        if values is None:
            return {}
        if not isinstance(values, dict):
            raise ConfigError(
                f"The cluster's file {path} is a {type(values).__name__}, and has to be keys with values."
            )
        return {str(key): value for key, value in values.items()}

    def _unknown(self, key: str) -> str:
        near = difflib.get_close_matches(key, self.model.model_fields, n=1, cutoff=0.6)
        hint = f"did you mean {near[0]!r}?" if near else f"`{self.command} --template` prints all keys."
        return f"Unknown key {key!r} of the cluster: {hint}"

    def _sentence(self, error: ValidationError) -> str:
        """One sentence about the first thing that is wrong; a misspelt key explains most others, so it goes first."""
        problem = sorted(error.errors(), key=lambda each: each["type"] != "extra_forbidden")[0]
        key = ".".join(str(part) for part in problem["loc"])
        if problem["type"] == "extra_forbidden":
            return f"Unknown key {key!r} of the cluster: `{self.command} --template` prints all keys."
        if problem["type"] == "missing":
            return f"{key} is not given: `{self.command} --template` says what it is."
        reason = str(problem["ctx"]["error"]) if problem["type"] == "value_error" else problem["msg"]
        reason = reason[:1].lower() + reason[1:]
        if not key:
            return f"Of the cluster's keys, {reason}."
        if problem["type"] == "value_error" and isinstance(problem["input"], dict):
            return f"{key}: {reason}."
        return f"{key} is {problem['input']!r}, but it {reason.removeprefix('input ').replace('should', 'has to')}."


def _about(section: type[Section]) -> Iterator[str]:
    for name, about in section.model_fields.items():
        yield f"#   {name}: {about.description}"
