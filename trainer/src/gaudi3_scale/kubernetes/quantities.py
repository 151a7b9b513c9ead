"""Quantities and names in the forms in which Kubernetes takes them, of which only the strict ones are taken here."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator

UNITS = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}
HUGE_PAGE = 2 * 2**20
"""Bytes of a page of hugepages-2Mi."""
MOST = 2**63
"""Bytes that a quantity stays below."""
_BYTES = re.compile(r"([0-9]{1,19})(Ki|Mi|Gi|Ti)")
_CPU = re.compile(r"[0-9]{1,9}(\.[0-9]{1,3})?|[0-9]{1,9}m")
LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
"""RFC 1123, as names of namespaces and labels of DNS are."""
SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")

_LABEL_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")


def bytes_of(quantity: str) -> int:
    """Bytes of a quantity with a binary unit; ValueError for any other.

    >>> bytes_of("64Gi") == 64 * 2**30
    True
    """
    found = _BYTES.fullmatch(quantity)
    if found is None or not int(found[1]):
        raise ValueError("has to be a whole number above 0 with Ki, Mi, Gi or Ti, such as 800Gi")
    if (amount := int(found[1]) * UNITS[found[2]]) >= MOST:
        raise ValueError("has to be below 8388608Ti, which is as far as Kubernetes counts")
    return amount


def _memory(quantity: str) -> str:
    bytes_of(quantity)
    return quantity


def _huge_pages(quantity: str) -> str:
    if quantity != "none" and bytes_of(quantity) % HUGE_PAGE:
        raise ValueError("has to be a multiple of 2Mi, the size of a page, such as 95000Mi, or none")
    return quantity


def _cpu(quantity: str) -> str:
    if not _CPU.fullmatch(quantity) or not float(quantity.removesuffix("m")):
        raise ValueError("has to be a number of cores above 0, such as 128")
    return quantity


def _text(value: Any) -> Any:
    """YAML reads 128 as a number, and a number that stands for a quantity is not taken by every API server."""
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


def _label(value: str) -> str:
    if not LABEL.fullmatch(value):
        raise ValueError("has to be up to 63 lower-case letters, digits and '-', with a letter or digit at both ends")
    return value


def _subdomain(value: str) -> str:
    if len(value) > 253 or not SUBDOMAIN.fullmatch(value):
        raise ValueError("has to be lower-case letters, digits, '-' and '.', with a letter or digit at both ends")
    return value


def _label_name(value: str) -> str:
    prefix, slash, name = value.rpartition("/")
    below = not slash or (len(prefix) <= 253 and SUBDOMAIN.fullmatch(prefix))
    if not below or not name or not _LABEL_VALUE.fullmatch(name):
        raise ValueError(
            "has to be a label's name: up to 63 letters, digits, '-', '_' and '.', with a letter or digit at both "
            "ends, maybe behind a domain and '/'"
        )
    return value


def _label_value(value: str) -> str:
    if not _LABEL_VALUE.fullmatch(value):
        raise ValueError(
            "has to be a label's value: up to 63 letters, digits, '-', '_' and '.', with a letter or digit at both ends"
        )
    return value


def _folder(value: str) -> str:
    parts = value.split("/")
    if not value.startswith("/") or value == "/" or ":" in value or any(part in ("", ".", "..") for part in parts[1:]):
        raise ValueError("has to be an absolute path below / without ':', '.' and '..', such as /checkpoints")
    return value


Memory = Annotated[str, BeforeValidator(_text), AfterValidator(_memory)]
HugePages = Annotated[str, BeforeValidator(_text), AfterValidator(_huge_pages)]
Cpu = Annotated[str, BeforeValidator(_text), AfterValidator(_cpu)]
Label = Annotated[str, AfterValidator(_label)]
LabelName = Annotated[str, AfterValidator(_label_name)]
LabelValue = Annotated[str, AfterValidator(_label_value)]
Subdomain = Annotated[str, AfterValidator(_subdomain)]
Folder = Annotated[str, AfterValidator(_folder)]
Text = Annotated[str, BeforeValidator(_text)]
"""Of a variable, whose value may look like a number."""
