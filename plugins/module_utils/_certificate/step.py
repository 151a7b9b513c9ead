# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""The training step with a known answer: a program of its own, for the Python that has torch, on one card.

``python step.py DEVICE MODULE_ID`` prints one line of JSON. The model is one matrix, the optimizer plain gradient
descent. All values are small whole numbers and the learning rate is a power of two, so that every sum is exact in
float32 whatever its order, and every operand is exact in bfloat16: the weights after the step are known to the last
bit, and any difference is a fault. The inner dimension of the gradient is long, as a translated IOMMU domain was
reported to spoil just such products.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
import sys
from pathlib import Path
from typing import Any

#: Samples, inputs and outputs of the model.
SAMPLES, INPUTS, OUTPUTS = 32768, 64, 32
#: The learning rate is one of this many parts.
PARTS = 4096
#: Weights are whole multiples of one of this many parts, as gradients are even.
UNITS = PARTS // 2
#: SHA-256 of the weights after the step in these units, as 64-bit integers in the order of the rows.
KNOWN = "85305ec5a7cdf87774261de7389e7296dc78ddf6eddfd7aacf200e7188e7b00b"


def train(device: str) -> str:
    """One step on a device; the digest of the weights after it."""
    import torch

    def made(rows: int, columns: int, factor: int, most: int) -> Any:
        places = torch.arange(rows * columns, dtype=torch.int64)
        numbers = torch.div(places * factor, 64, rounding_mode="floor") % (2 * most + 1) - most
        return numbers.to(torch.float32).reshape(rows, columns)

    model = torch.nn.Linear(INPUTS, OUTPUTS, bias=False)
    with torch.no_grad():
        model.weight.copy_(made(OUTPUTS, INPUTS, 104729, 1))
    model = model.to(device)
    given, wanted = made(SAMPLES, INPUTS, 7919, 2).to(device), made(SAMPLES, OUTPUTS, 40503, 2).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1 / PARTS)
    (model(given) - wanted).pow(2).sum().backward()
    optimizer.step()
    units = (model.weight.detach().cpu().double() * UNITS).round().to(torch.int64).flatten().tolist()
    return hashlib.sha256(struct.pack(f"<{len(units)}q", *units)).hexdigest()


def holds(module_id: str) -> str:
    """Why the card of this process is not the one of this module, as its open files say; empty where it is."""
    names = set()
    for link in Path("/proc/self/fd").iterdir():
        try:
            names.add(os.readlink(link))
        except OSError:
            continue
    cards = [name.rpartition("/")[2] for name in names if name.startswith("/dev/accel/accel") and name[16:].isdigit()]
    if len(cards) != 1:
        return f"the process holds {len(cards)} cards where one was meant"
    try:
        found = Path("/sys/class/accel", cards[0], "device/module_id").read_text(encoding="ascii").strip()
    except OSError as error:
        return f"which card {cards[0]} is cannot be read ({error.strerror})"
    return "" if found == module_id else f"the process holds the card of module {found} and not of {module_id}"


def main(device: str, module_id: str) -> None:
    """Run the step twice and print what came of it."""
    os.environ.setdefault("PT_HPU_LAZY_MODE", "0")
    answer: dict[str, Any]
    try:
        if device == "hpu":
            import importlib

            importlib.import_module("habana_frameworks.torch.core")
        digests = [train(device), train(device)]
        other = holds(module_id) if device == "hpu" else ""
        wrong = [place for place, digest in zip(("first", "second"), digests) if digest != KNOWN]
        message = f"the weights of the {' and the '.join(wrong)} run are not the known ones" if wrong else ""
        answer = {"passed": None if other else not wrong, "message": other or message}
    except Exception as error:  # whatever a machine that nobody has seen makes of it
        answer = {"passed": None, "message": f"{type(error).__name__}: {error}"[:300]}
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:3])
