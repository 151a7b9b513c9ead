"""`python -m gaudi3_probes KIND OUT NAMES SETTINGS`: run the named probes one after the other."""

from __future__ import annotations

import json
import os
import signal
import sys
from functools import partial
from importlib import import_module
from pathlib import Path

from .base import Lines, leave, tried


def main(arguments: list[str]) -> None:
    """Each probe is announced before it starts, and answered when it ended."""
    kind, out, names, settings = arguments
    signal.signal(signal.SIGTERM, lambda number, frame: leave(128 + number))
    # Releases and readers of the variable disagree on its default; 0 is eager mode.
    os.environ.setdefault("PT_HPU_LAZY_MODE", "0")
    lines = Lines(Path(out))
    module = import_module(f"{__package__}.{kind}")
    probe = tried(lines, "start", lambda: module.start(json.loads(settings)))
    if probe is None:
        leave(1)
    for name in json.loads(names):
        tried(lines, name, partial(getattr(module, name), probe))
    lines.write(done=True)
    leave()


if __name__ == "__main__":
    main(sys.argv[1:])
