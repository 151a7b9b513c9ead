"""The JSON schema of a job file has every key of the trainer, and `gaudi3-train config --schema` writes it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from gaudi3_scale.cli import app
from gaudi3_scale.config import Config, keys, load
from gaudi3_scale.config.json_schema import REWRITTEN, job_schema, sections
from gaudi3_scale.errors import TrainerError


def shown(schema: dict[str, Any], part: dict[str, Any], prefix: str = "") -> Iterator[str]:
    """The dotted keys of a part of the schema."""
    for name, field in part["properties"].items():
        yield prefix + name
        inner = schema["$defs"].get(str(field.get("$ref", "")).rpartition("/")[2])
        if inner is not None:
            yield from shown(schema, inner, f"{prefix}{name}.")


def test_it_has_every_key_and_refuses_all_others() -> None:
    schema = job_schema()
    assert list(shown(schema, schema)) == list(keys())
    parts = [schema, *schema["$defs"].values()]
    assert all(part["additionalProperties"] is False for part in parts if "properties" in part)


def test_every_key_has_its_meaning_and_no_title() -> None:
    schema = job_schema()
    for part in (schema, *schema["$defs"].values()):
        for name, field in part.get("properties", {}).items():
            assert field["description"] and "title" not in field, name


def test_a_key_that_a_validator_rewrites_takes_anything() -> None:
    rewritten = [
        name
        for section in sections(Config)
        for each in section.__pydantic_decorators__.field_validators.values()
        if each.info.mode == "before"
        for name in each.info.fields
    ]
    assert set(REWRITTEN) <= set(rewritten)
    assert "type" not in job_schema()["$defs"]["LoraConfig"]["properties"]["targets"]


def test_the_command_writes_it_and_names_it_in_the_first_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, ["config", "--schema", "job.schema.json"])
    assert result.exit_code == 0, result.output
    assert result.output.startswith("# yaml-language-server: $schema=job.schema.json\n# Configuration of")
    assert json.loads((tmp_path / "job.schema.json").read_text()) == job_schema()
    Path("job.yml").write_text(result.output)
    assert load(Path("job.yml")) == Config() == Config.model_validate(yaml.safe_load(result.output))


def test_a_schema_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["config", "--schema", str(tmp_path / "none/job.schema.json")])
    assert isinstance(result.exception, TrainerError)
    assert "cannot be written (No such file or directory): give another file with --schema." in str(result.exception)
