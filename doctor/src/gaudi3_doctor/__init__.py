"""`gaudi3-train doctor`: one report of a node, for whoever wants to know how a Gaudi 3 really behaves.

The rows of docs/understand/hardware-status.md name the sections that answer them. This package is also what the Ansible
module `gaudi3.scale.gaudi_doctor_info` takes to nodes without the trainer, so it imports nothing but itself and the
standard library, and runs on Python 3.9. Only `probes`, which run as processes of their own, import torch.

| file | concern |
|---|---|
| `host` | files, programs and users of the machine |
| `sections` | which sections there are |
| `job_status` | the one reader of a job's status.json, which the trainer has, too |
| `known_bad` | releases of packages that no environment may have |
| `machine`, `software`, `cards`, `tools`, `surroundings`, `services` | what each section of the node holds |
| `card_sections`, `consented`, `probes` | what is tried on the cards |
| `report`, `scrub`, `show` | running the sections, taking names and secrets out, the text for the terminal |
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .host import Options
    from .report import MAX_BYTES, examine, write
    from .sections import CONSENTS, SECTIONS
    from .show import summary, text

__all__ = ["CONSENTS", "MAX_BYTES", "SECTIONS", "Options", "examine", "summary", "text", "write"]

_HOMES = {
    "Options": "host",
    "MAX_BYTES": "report",
    "examine": "report",
    "write": "report",
    "CONSENTS": "sections",
    "SECTIONS": "sections",
    "summary": "show",
    "text": "show",
}


def __getattr__(name: str) -> Any:
    """A name from its module, when it is first asked for: every job imports `known_bad`, and nothing else of this."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_HOMES[name]}", __name__), name)
