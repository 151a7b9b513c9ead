# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Texts for other programs: comments, arguments of a service, settings of Grafana, and a page of metrics."""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from .._refusal import Refusal

_QUOTES = "'" + '"'
_THREE = '"' * 3
_MARKS = "#;`'\\" + '"'
_NAME = re.compile(r"[A-Za-z0-9_.-]+")
_EXPIRY = "gaudi_certificate_expiry_timestamp_seconds"


def comment(text: str, mark: str = "#") -> str:
    """A text as a comment of its own lines, as Ansible's filter ``comment`` writes it."""
    lines = "\n".join(f"{mark} {line}" if line else mark for line in text.splitlines())
    return f"{mark}\n{lines}\n{mark}\n"


def arguments_line(arguments: Sequence[Any]) -> str:
    """The arguments of a service as the line ARGS of its environment file."""
    words = [str(word) for word in arguments]
    for word in words:
        if not word or any(each.isspace() or each in _QUOTES or not each.isprintable() for each in word):
            raise Refusal(
                f"The argument {word!r} has white space, a quotation mark or a control character: leave that out."
            )
    # systemd takes the text between the apostrophes as it is, and one level of backslashes away when it splits it.
    return "ARGS='" + " ".join(word.replace("\\", "\\\\") for word in words) + "'"


def ini_text(sections: Mapping[str, Mapping[str, Any]]) -> str:
    """Sections of settings as an ini file of Grafana. What would be read as something else is refused."""
    lines = []
    for section, settings in sections.items():
        lines += ["", f"[{_name(section)}]", *(f"{_name(name)} = {_value(value)}" for name, value in settings.items())]
    return "\n".join(lines) + "\n"


def _name(name: object) -> str:
    if not _NAME.fullmatch(str(name)):
        raise Refusal(f"grafana_settings has the name {name!r}: use letters, digits, dots and hyphens.")
    return str(name)


def _value(value: object) -> str:
    text = str(value).lower() if isinstance(value, bool) else str(value)
    if not all(each.isprintable() for each in text) or _THREE in text:
        raise Refusal(f"grafana_settings has the value {text!r}: give one line without quotation marks in threes.")
    odd = any(each in _MARKS for each in text) or text != text.strip()
    return _THREE + text + _THREE if odd else text


def certificates_page(head: str, service: str, expires: str, authority_expires: str) -> str:
    """When the certificates of a service end, for node_exporter, which merges the pages of all services."""
    lines = [
        f"# HELP {_EXPIRY} When a certificate of a service ends, in seconds since 1970.",
        f"# TYPE {_EXPIRY} gauge",
    ]
    for certificate, end in (("authority", authority_expires), ("server", expires)):
        seconds = int(datetime.datetime.fromisoformat(end).timestamp())
        lines.append(f"{_EXPIRY}{{certificate={json.dumps(certificate)},service={json.dumps(service)}}} {seconds}")
    return head + "\n".join(lines) + "\n"
