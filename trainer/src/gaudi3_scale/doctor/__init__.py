"""`gaudi3-train doctor`: one report of a node, for whoever wants to know how a Gaudi 3 really behaves.

The rows of docs/hardware-status.md name the sections that answer them. This package is also what the Ansible module
`gaudi3.scale.gaudi_doctor_info` takes to nodes without the trainer, so it imports nothing but itself and the standard
library, and runs on Python 3.9. Only `probes`, which run as processes of their own, import torch.

| file | concern |
|---|---|
| `host` | files, programs and users of the machine |
| `sections` | which sections there are |
| `machine`, `software`, `cards`, `tools`, `surroundings`, `services` | what each section of the node holds |
| `card_sections`, `consented`, `probes` | what is tried on the cards |
| `report`, `scrub`, `show` | running the sections, taking names and secrets out, the text for the terminal |
"""

from __future__ import annotations

from .host import Options
from .report import MAX_BYTES, examine, write
from .sections import CONSENTS, SECTIONS
from .show import summary, text

__all__ = ["CONSENTS", "MAX_BYTES", "SECTIONS", "Options", "examine", "summary", "text", "write"]
