"""YAML that people write by hand: a key that stands twice is refused, where YAML's reader would take the last."""

from __future__ import annotations

from typing import Any

import yaml

_MERGE = "tag:yaml.org,2002:merge"


class TwiceError(yaml.YAMLError):
    """A mapping has a key twice; the text says which, and in which lines."""


class _Loader(yaml.SafeLoader):
    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        node: yaml.MappingNode = super().compose_mapping_node(anchor)
        seen: dict[str, int] = {}
        for key, _value in node.value:
            if isinstance(key, yaml.ScalarNode) and key.tag != _MERGE:
                line = key.start_mark.line + 1
                if key.value in seen:
                    raise TwiceError(
                        f"{key.value!r} stands twice, in lines {seen[key.value]} and {line}: keep one of them"
                    )
                seen[key.value] = line
        return node


def read(text: str) -> Any:
    """The value of a document.

    Raises:
        TwiceError: A mapping has a key twice.
        yaml.YAMLError: It is no YAML.

    >>> read("a: 1\\na: 2")
    Traceback (most recent call last):
    gaudi3_scale.yaml_file.TwiceError: 'a' stands twice, in lines 1 and 2: keep one of them
    """
    return yaml.load(text, Loader=_Loader)
