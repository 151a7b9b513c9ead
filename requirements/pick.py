"""Print pins with their hashes, from a list of pins, for a pip that needs some of them alone.

    python requirements/pick.py requirements/dev.txt pytest pluggy
    python requirements/pick.py requirements/versions.pins ansible-core==2.17.

A name may say how the version begins.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

BLOCK = re.compile(r"^([A-Za-z0-9][A-Za-z0-9._-]*==[^\s\\]+)(?:.*\\\n)*.*\n", re.MULTILINE)


def selected(text: str, names: list[str]) -> str:
    """The first pin of each name; exits where the list has none."""
    pins = {match[1]: match[0] for match in BLOCK.finditer(text)}
    found = []
    for name in names:
        wanted = name if "==" in name else f"{name}=="
        pin = next((pin for pin in pins if pin.startswith(wanted)), None)
        if pin is None or "--hash=sha256:" not in pins[pin]:
            sys.exit(f"The list has no {name} with hashes: add it.")
        found.append(pins[pin])
    return "".join(found)


if __name__ == "__main__":
    sys.stdout.write(selected(Path(sys.argv[1]).read_text(encoding="utf-8"), sys.argv[2:]))
