"""Options of `hpu_backend`, with their variables and defaults ([bridge] 1.19, `dynamo/compile_backend/config.py`).

They are checked and kept; nothing here compiles by them.
"""

import os
import sys
from typing import Any

from torch.utils._config_module import install_config_module


def _flag(variable: str, default: str) -> bool:
    text = os.environ.get(variable, default).lower()
    yes, no = ("on", "1", "yes", "true", "y", "t"), ("off", "0", "no", "false", "n", "f")
    assert text in yes + no, f"{variable} is {text!r}, but it has to be one of {', '.join(yes + no)}."
    return text in yes


def _decomposition() -> str:
    variable, known = "PT_HPU_COMPILE_DECOMPOSITION_MODE", ("habana", "core_aten", "none")
    text = os.environ.get(variable, "habana").lower()
    assert text in known, f"{variable} is {text!r}, but it has to be one of {', '.join(known)}."
    return text


use_compiled_recipes = _flag("PT_HPU_COMPILE_USE_RECIPES", "1")
decomposition_mode = _decomposition()
keep_input_mutations = _flag("PT_HPU_KEEP_INPUT_MUTATIONS", "1")
use_eager_fallback = _flag("PT_HPU_USE_EAGER_FALLBACK", "1")
use_graph_freezing = _flag("PT_HPU_COMPILE_GRAPH_FREEZE", "0")
discard_frozen_params = _flag("PT_HPU_COMPILE_DISCARD_FROZEN_PARAMS", "0")
remove_unnecessary_clones = _flag("PT_HPU_COMPILE_REMOVE_UNNECESSARY_CLONES", "1")
use_inplace_allreduce = _flag("PT_HPU_USE_INPLACE_COLLECTIVE", "1")
use_inplace_index_copy = _flag("PT_HPU_USE_INPLACE_INDEX_COPY", "1")
inference = _flag("PT_HPU_USE_INFERENCE_COMPILER", "1")
enable_sfg = _flag("PT_HPU_ENABLE_SFG", "0")
use_cpp_partitioner = _flag("PT_HPU_USE_CPP_PARTITIONER", "1")
enable_allreduce_graph_split = _flag("PT_HPU_ENABLE_ALLREDUCE_GRAPH_SPLIT", "1")
force_static_compile = _flag("PT_HPU_FORCE_STATIC_COMPILE", "0")
reinplace_add = _flag("PT_HPU_REINPLACE_ADD", "1")
reassign_full_copy = _flag("PT_HPU_REASSIGN_FULL_COPY", "1")
reassign_copy_ = _flag("PT_HPU_REASSIGN_COPY_", "1")
use_boxed_input = _flag("PT_HPU_USE_BOXED_INPUT", "1")

install_config_module(sys.modules[__name__])


class _ByName:
    """The options as items."""

    def __getitem__(self, name: str) -> Any:
        return getattr(sys.modules[__name__], name)

    def __setitem__(self, name: str, value: Any) -> None:
        setattr(sys.modules[__name__], name, value)


configuration_flags = _ByName()
