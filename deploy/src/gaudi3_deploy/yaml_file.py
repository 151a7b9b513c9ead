"""YAML that people write by hand: a key that stands twice is refused, where YAML's reader would take the last."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import yaml

_MERGE = "tag:yaml.org,2002:merge"


class TwiceError(yaml.YAMLError):
    """A mapping has a key twice; the text says which, and in which lines."""


class _Loader(yaml.SafeLoader):
    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        node: yaml.MappingNode = super().compose_mapping_node(anchor)
        seen: dict[Hashable, tuple[str, int]] = {}
        for key, _value in node.value:
            if isinstance(key, yaml.ScalarNode) and key.tag != _MERGE:
                # As the mapping will have it: 1 and 0x1 are one key, 1 and '1' are two.
                value, line = self.construct_object(key, deep=True), key.start_mark.line + 1
                if value in seen:
                    text, first = seen[value]
                    as_what = "" if text == key.value else f" (as {text!r})"
                    lines = f"line {line}" if first == line else f"lines {first}{as_what} and {line}"
                    raise TwiceError(f"{key.value!r} stands twice, in {lines}: keep one of them")
                seen[value] = key.value, line
        return node


class _AsWritten(_Loader):
    def construct_yaml_int(self, node: yaml.ScalarNode) -> Any:
        value = super().construct_yaml_int(node)
        return value if str(value) == node.value else node.value

    def construct_yaml_float(self, node: yaml.ScalarNode) -> Any:
        value = super().construct_yaml_float(node)
        return value if str(value) == node.value else node.value


_AsWritten.add_constructor("tag:yaml.org,2002:int", _AsWritten.construct_yaml_int)
_AsWritten.add_constructor("tag:yaml.org,2002:float", _AsWritten.construct_yaml_float)


def read(text: str, numbers_as_written: bool = False) -> Any:
    """The value of a document.

    With `numbers_as_written`, what YAML alone takes for another number stays text: 0070, 24:00:00, 1_000 and 2.10.

    Raises:
        TwiceError: A mapping has a key twice.
        yaml.YAMLError: It is no YAML.

    >>> read("a: 1\\na: 2")
    Traceback (most recent call last):
    gaudi3_deploy.yaml_file.TwiceError: 'a' stands twice, in lines 1 and 2: keep one of them
    >>> read("1: a\\n'1': b")
    {1: 'a', '1': 'b'}
    >>> read("[0070, 70, 24:00:00, 2.10]"), read("[0070, 70, 24:00:00, 2.10]", numbers_as_written=True)
    ([56, 70, 86400, 2.1], ['0070', 70, '24:00:00', '2.10'])
    """
    try:
        return yaml.load(text, Loader=_AsWritten if numbers_as_written else _Loader)
    except yaml.YAMLError:
        raise
    except Exception as error:  # of a date with a 13th month, a tag that does not fit, or endless nesting
        raise yaml.YAMLError(f"{type(error).__name__}: {error}") from None
