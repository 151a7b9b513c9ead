# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Takes secrets out of texts that leave the node. Serial numbers and addresses stay: support asks for them."""

from __future__ import annotations

import re

from .._secret_words import PRIVATE_KEY, SCHEME, SIGNED, TOKEN, WEBHOOK, names_secret

# Each pattern is bounded, so that a long line without blanks costs no more than another.
_NAMES = (
    r"token|secret|passw(?:or)?d|passphrase|credential|api[_-]?key|access[_-]?key|private[_-]?key|authorization|"
    r"cookie|session[_-]?id|\bpwd\b|\bpsk\b"
)
_NAME = rf"(?<![\w-])[\w.-]{{0,60}}?(?:{_NAMES})[\w-]{{0,60}}[\"']?\s{{0,4}}[=:]\s{{0,4}}"
_OPTION = rf"(?<!\S)--?[\w-]{{0,40}}(?:{_NAMES})[\w-]{{0,40}}\s{{1,4}}"
_VALUE = r"(?!<secret>)(?:\"[^\"\n]*\"|'[^'\n]*'|[^\s,;]+)"
_TOKENS = r"hf_|gh[pousr]_|github_pat_|glpat-|sk-|xox[abprs]-|pypi-|dckr_pat_|hvs\."
_KEY_END = PRIVATE_KEY.replace("BEGIN", "END")

_RULES = (
    (re.compile(rf"{PRIVATE_KEY}.*?(?:{_KEY_END}|\Z)", re.S), "<private key>"),
    # The end of a key whose beginning was cut off.
    (re.compile(rf"(?:^[A-Za-z0-9+/=]{{1,100}}\n){{1,60}}^{_KEY_END}", re.M), "<private key>"),
    (re.compile(r"(\b\w{1,20}://)[^/\s@]{1,300}@"), r"\1<secret>@"),
    (re.compile(r"\b(Bearer|Basic)\s+[\w.+/=~-]{8,}", re.I), r"\1 <secret>"),
    (re.compile(r"\beyJ[\w-]{8,}\.[\w-]{4,}\.[\w-]{4,}"), "<secret>"),
    (re.compile(r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"), "<secret>"),
    (re.compile(rf"\b(?:{_TOKENS})[\w-]{{10,}}"), "<secret>"),
    (re.compile(TOKEN), "<secret>"),
    (re.compile(r"\$(?:1|2[aby]|5|6|y|argon2\w{0,2})\$[\w./$=,+-]{8,}"), "<secret>"),
    (re.compile(SIGNED, re.I), "<secret>"),
    (re.compile(WEBHOOK), "<secret>"),
    (re.compile(SCHEME, re.I), r"\1 <secret>"),
    (re.compile(rf"({_NAME}){_VALUE}", re.I), r"\1<secret>"),
    (re.compile(rf"({_OPTION}){_VALUE}", re.I), r"\1<secret>"),
)
# What the names above do not tell: GITHUB_PAT, PGPASS. The one who decides it is the one who keeps it out of units.
_ASSIGNED = re.compile(rf"(?<![\w-])([A-Za-z][\w.-]{{0,60}})([\"']?\s{{0,4}}[=:]\s{{0,4}}){_VALUE}")


def _assigned(found: re.Match[str]) -> str:
    name = found.group(1)
    return f"{name}{found.group(2)}<secret>" if name.lower() != "key" and names_secret(name) else found.group()


def scrub(text: str) -> str:
    """The text with every secret replaced."""
    for pattern, replacement in _RULES:
        text = pattern.sub(replacement, text)
    return _ASSIGNED.sub(_assigned, text)
