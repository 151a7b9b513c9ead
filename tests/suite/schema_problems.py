"""What a schema that the site publishes says against a value, as an editor shows it."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import jsonschema
import referencing
import yaml

from website.reference import schemas


class Loader(yaml.SafeLoader):
    """Reads YAML as an editor does: dates are text."""


Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


@cache
def validator(name: str) -> Any:
    """Of the schema of this name, which may refer to the others."""
    contents = {file: referencing.Resource.from_contents(json.loads(text)) for file, text in schemas.files().items()}
    registry = referencing.Registry().with_resources(list(contents.items()))
    return jsonschema.Draft202012Validator(schemas.every()[name], registry=registry)


def problems(name: str, value: object) -> list[str]:
    """Each problem, after the place that it is about."""
    return [f"{'.'.join(map(str, each.path))}: {each.message[:200]}" for each in validator(name).iter_errors(value)]
