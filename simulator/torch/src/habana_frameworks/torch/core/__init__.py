"""`htcore`: step marks and the mode. In lazy mode, too, operations run as they are issued; the marks are counted."""

from __future__ import annotations

import habana_frameworks.torch.utils.debug as htdebug
import habana_frameworks.torch.utils.experimental as htexp
from gaudi3_hpu_simulator.errors import refusing
from habana_frameworks.torch import hpu
from habana_frameworks.torch.core import quantization, step_closure
from habana_frameworks.torch.core.quantization import (
    hpu_inference_initialize,
    hpu_initialize,
    hpu_reset_env,
    hpu_set_env,
    hpu_set_inference_env,
    hpu_teardown_inference_env,
)
from habana_frameworks.torch.core.step_closure import add_step_closure, iter_mark_step, mark_step, marked_steps
from habana_frameworks.torch.utils.internal import is_lazy

__all__ = [
    "add_step_closure", "hpu", "hpu_inference_initialize", "hpu_initialize", "hpu_reset_env", "hpu_set_env",
    "hpu_set_inference_env", "hpu_teardown_inference_env", "htdebug", "htexp", "is_lazy", "iter_mark_step", "mark_step",
    "marked_steps", "quantization", "step_closure",
]  # fmt: skip

# Called by vllm-gaudi and by old tests of the bridge; no public source of Habana's package has them.
enable = refusing("core.enable", "leave the call out")
disable = refusing("core.disable", "leave the call out")
hpu_inference_set_env = refusing("core.hpu_inference_set_env", "call core.hpu_set_inference_env")
