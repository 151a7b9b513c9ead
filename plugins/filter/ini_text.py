# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Write sections of settings as an ini file of Grafana."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ansible.errors import AnsibleFilterError

from ansible_collections.gaudi3.scale.plugins.plugin_utils.filters import filter_module

DOCUMENTATION = r"""
name: ini_text
short_description: Write sections of settings as an ini file of Grafana
version_added: 0.1.0
author:
  - gaudi3.scale contributors (@gaudi3)
description:
  - A name or a value that would be read as something else is refused.
options:
  _input:
    description: Settings by name, by section.
    type: raw
    required: true
"""

EXAMPLES = r"""
- name: Show it
  ansible.builtin.debug:
    msg: "{{ given | gaudi3.scale.ini_text }}"
"""

RETURN = r"""
_value:
  description: The text.
  type: raw
  sample: "[server]"
"""

_THREE = '"' * 3
#: What Grafana takes for a comment, a quotation or an escape.
_MARKS = "#;`'\\" + '"'
_NAME = re.compile(r"[A-Za-z0-9_.-]+")


def ini_text(sections: Mapping[str, Mapping[str, Any]]) -> str:
    """See DOCUMENTATION."""
    lines = []
    for section, settings in sections.items():
        lines += ["", f"[{_name(section)}]", *(f"{_name(name)} = {_value(value)}" for name, value in settings.items())]
    return "\n".join(lines) + "\n"


def _name(name: object) -> str:
    if not _NAME.fullmatch(str(name)):
        raise AnsibleFilterError(f"grafana_settings has the name {name!r}: use letters, digits, dots and hyphens.")
    return str(name)


def _value(value: object) -> str:
    text = str(value).lower() if isinstance(value, bool) else str(value)
    if not all(each.isprintable() for each in text) or _THREE in text:
        raise AnsibleFilterError(
            f"grafana_settings has the value {text!r}: give one line without quotation marks in threes."
        )
    odd = any(each in _MARKS for each in text) or text != text.strip()
    return _THREE + text + _THREE if odd else text


FilterModule = filter_module(ini_text=ini_text)
