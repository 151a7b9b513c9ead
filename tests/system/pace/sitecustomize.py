"""Steps that take the time of PACE, in seconds, and next to no processor: a test can disturb a short job in its middle.

On a node by PYTHONPATH. Each optimizer step is followed by a sleep, by torch's own hook, once torch is there.
"""

import builtins
import os
import sys
import time
from typing import Any

_import = builtins.__import__


def _watch(*given: Any, **named: Any) -> Any:
    found = _import(*given, **named)
    optimizer = sys.modules.get("torch.optim.optimizer")
    register = getattr(optimizer, "register_optimizer_step_post_hook", None)
    # Imports that led here end after this one, and look too.
    if register is not None and builtins.__import__ is _watch:
        builtins.__import__ = _import
        register(lambda *_: time.sleep(float(os.environ["PACE"])))
    return found


if "PACE" in os.environ:
    builtins.__import__ = _watch
