"""The environment variables that Gaudi's PyTorch bridge really reads, and a look for those that it does not.

A variable which nothing reads is ignored in silence, so that a gain "from" it is an error of measurement. Many
circulate: `INVENTED` has those that were searched for in the whole source of the bridge and in what is built on it, and
not found there.

Sources: the bridge's `scripts/env_flags.yaml` (github.com/HabanaAI/gaudi-pytorch-bridge, release 1.19, the last that is
public), Habana's page "Runtime Environment Variables" (release 1.23) and the Python package `habana_frameworks`.
Defaults are those of the sources named; where releases differ, both are given. Variables of the runtime below the
bridge are those that the vendor's profile files and container image set.
"""

from __future__ import annotations

import difflib
import importlib.util
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from gaudi3_scale.hpu.pci import gaudi_cards

BRIDGE = "bridge 1.19"
PAGE = "documentation 1.23"
PACKAGE = "habana_frameworks"
PROFILE = "/etc/profile.d/habanalabs*.sh"
IMAGE = "the vendor's container image"
KERNELS = "GC_KERNEL_PATH"
"""The one variable of the runtime without which nothing runs on a card."""
PREFIXES = ("PT_HPU_", "PT_HABANA_", "PT_HCCL_", "PT_ENABLE_", "PT_RECIPE_")


@dataclass(frozen=True)
class Flag:
    """A variable that is read."""

    name: str
    default: str
    meaning: str
    source: str
    internal: bool = False
    """The vendor's own business: changing it without advice gains nothing."""


FLAGS = {
    flag.name: flag
    for flag in (
        Flag("PT_HPU_LAZY_MODE", "1 to 1.19, 0 in 1.23", "1 = lazy, 0 = eager and torch.compile", f"{BRIDGE}, {PAGE}"),
        Flag(
            "PT_HPU_MAX_COMPOUND_OP_SIZE",
            "no limit",
            "most operations in one lazy graph; a smaller number only splits graphs",
            BRIDGE,
        ),
        Flag(
            "PT_HPU_RECIPE_CACHE_CONFIG",
            ",false,1024,false",
            "cache of compiled graphs: path, delete at start, MB, on NFS (the last not in 1.19)",
            f"{BRIDGE}, {PAGE}",
        ),
        Flag(
            "PT_HPU_AUTOCAST_LOWER_PRECISION_OPS_LIST", "", "file of operations that autocast runs in bfloat16", BRIDGE
        ),
        Flag("PT_HPU_AUTOCAST_FP32_OPS_LIST", "", "file of operations that autocast runs in float32", BRIDGE),
        Flag("PT_HPU_INFERENCE_MODE", "false", "prepare for inference", BRIDGE),
        Flag("PT_HPU_LAZY_ACC_PAR_MODE", "1", "accumulate lazy graphs in parallel", BRIDGE),
        Flag("PT_HPU_ENABLE_REFINE_DYNAMIC_SHAPES", "false", "dynamic shapes in lazy mode", BRIDGE),
        Flag("PT_HPU_EAGER_PIPELINE_ENABLE", "true", "overlap host and device in eager mode", BRIDGE),
        Flag("PT_HPU_EAGER_COLLECTIVE_PIPELINE_ENABLE", "true", "the same for collectives", BRIDGE),
        Flag("PT_HPU_ENABLE_LAZY_COLLECTIVES", "false", "collectives within lazy graphs", BRIDGE),
        Flag("PT_HPU_GPU_MIGRATION", "false", "run code that asks for CUDA", BRIDGE),
        Flag("PT_ENABLE_INT64_SUPPORT", "false", "64-bit integers on the device", BRIDGE),
        Flag("PT_HPU_POOL_MEM_ACQUIRE_PERC", "100", "share of the device's memory taken at start, in percent", BRIDGE),
        Flag("PT_HABANA_POOL_SIZE", "24", "size of the memory pool", BRIDGE, internal=True),
        Flag("PT_HPU_POOL_STRATEGY", "4", "strategy of the memory pool, a number", BRIDGE, internal=True),
        Flag("PT_HPU_ENABLE_SYNAPSE_OUTPUT_PERMUTE", "true", "let outputs have another layout", BRIDGE, internal=True),
        Flag("PT_HPU_ENABLE_WEIGHT_CPU_PERMUTE", "true", "lay out weights on the host", BRIDGE, internal=True),
        Flag("PT_HPU_ENABLE_GENERIC_STREAM", "true", "streams of any kind", BRIDGE, internal=True),
        Flag("PT_HCCL_SLICE_SIZE_MB", "set in code", "slice of a collective", BRIDGE),
        Flag("PT_HCCL_MEMORY_ALLOWANCE_MB", "0", "memory for collectives", BRIDGE),
        Flag("PT_HPU_METRICS_FILE", "off", "file for the bridge's metrics", f"{BRIDGE}, {PAGE}"),
        Flag("PT_HPU_METRICS_FILE_FORMAT", "", "format of that file", f"{BRIDGE}, {PAGE}"),
        Flag(
            "PT_HPU_METRICS_DUMP_TRIGGERS", "", "when it is written: process_exit, metric_change", f"{BRIDGE}, {PAGE}"
        ),
        Flag("PT_HPU_PRINT_STATS", "off", "print statistics", BRIDGE),
        Flag("PT_HPU_WEIGHT_SHARING", "1", "share weights of modules that are moved to the device", PACKAGE),
        Flag("PT_HPU_AUTOLOAD", "", "load the bridge when torch is imported", PACKAGE),
        Flag("PT_HPU_PLACE_ON_CPU", "", "operations to run on the host", PACKAGE),
        Flag("PT_HPUGRAPH_DISABLE_TENSOR_CACHE", "", "HPU graphs keep no inputs", PACKAGE),
        Flag("PT_HPU_REPLACE_ADAM_ADAMW", "", "torch's Adam and AdamW become Habana's fused ones", PACKAGE),
        Flag(KERNELS, "", "library of the kernels; without it no graph can be compiled", f"{PROFILE}, {IMAGE}"),
        Flag("HABANA_SCAL_BIN_PATH", "", "folder of the engines' firmware", f"{PROFILE}, {IMAGE}"),
        Flag(
            "HABANA_PLUGINS_LIB_PATH",
            "",
            "folder of the runtime's plugins; a wrong one breaks copies between host and card",
            f"{PROFILE}, {IMAGE}",
        ),
        Flag("RDMA_CORE_ROOT", "", "folder of the vendor's rdma-core", f"{PROFILE}, {IMAGE}"),
        Flag("RDMA_CORE_LIB", "", "folder of its libraries", f"{PROFILE}, {IMAGE}"),
        Flag("LD_PRELOAD", "", "an option: libtcmalloc, another allocator of host memory", IMAGE),
    )
}
FAMILIES = ("PT_HPU_GRAPH_DUMP",)
"""Beginnings of names that are read (release 1.19), of which the sources list no single ones."""
RETIRED = {"PT_RECIPE_CACHE_PATH": "PT_HPU_RECIPE_CACHE_CONFIG"}
INVENTED = {
    "PT_HPU_ENABLE_LAZY_COMPILATION": "PT_HPU_LAZY_MODE",
    "PT_HPU_GRAPH_COMPILER_OPT_LEVEL": None,
    "PT_HPU_ENABLE_SYNAPSE_LAYOUT_OPT": None,
    "PT_HPU_ENABLE_CONV_RECOMPILATION": None,
    "PT_HPU_ENABLE_MATRIX_MUL_RECOMPILATION": None,
    "PT_HPU_ENABLE_BF16_CONVERSION": "train.precision=bf16-mixed, or torch.autocast('hpu', dtype=torch.bfloat16)",
    "PT_HPU_ENABLE_MIXED_PRECISION": "train.precision=bf16-mixed, or torch.autocast('hpu', dtype=torch.bfloat16)",
    "PT_HPU_ENABLE_ADVANCED_FUSION": None,
    "PT_HPU_FUSION_BUFFER_SIZE": None,
    "PT_HPU_ENABLE_DYNAMIC_FUSION": None,
    "PT_HPU_ENABLE_FLASH_ATTENTION_V2": "memory.attention=flash, or habana_frameworks.torch.hpex.kernels.FusedSDPA",
    "PT_HPU_ENABLE_HABANA_COLLECTIVE": None,
    "PT_HPU_COLLECTIVE_TIMEOUT": "train.collective_timeout",
    "PT_HPU_EFA_BUFFER_SIZE": None,
    "PT_HPU_EFA_WINDOW_SIZE": None,
    "PT_HPU_ENABLE_INFERENCE_CACHE": None,
}


@dataclass(frozen=True)
class Finding:
    """A variable that does not do what whoever set it believes."""

    name: str
    message: str


def check_environment(environment: Mapping[str, str]) -> list[Finding]:
    """What is set in the bridge's name and is unknown, retired, invented, or has a value that it does not take."""
    return [finding for name in sorted(environment) for finding in _check(name, environment[name])]


def on_gaudi(device: str = "auto") -> bool:
    """Whether a job with this `device` is meant for Gaudi cards, answered without torch and before it is imported."""
    if device == "auto":
        return bool(gaudi_cards()) or importlib.util.find_spec("habana_frameworks") is not None
    return device == "hpu"


def check_runtime(environment: Mapping[str, str]) -> list[Finding]:
    """What a process on a card lacks of the runtime's variables, which login shells have and units do not."""
    path = environment.get(KERNELS)
    if path and Path(path).is_file():
        return []
    fault = "is not set" if path is None else f"is {path!r}, which is no file"
    advice = f"give the process what {PROFILE} sets, as a login shell does"
    return [Finding(KERNELS, f"{KERNELS} {fault}, and without it no graph can be compiled on a card: {advice}.")]


def _check(name: str, value: str) -> Iterator[Finding]:
    if name in FLAGS:
        if name == "PT_HPU_LAZY_MODE" and value not in ("0", "1"):
            yield Finding(name, f"{name} is {value!r}: give 1 (lazy) or 0 (eager, compile).")
        if name == "PT_HPU_POOL_STRATEGY" and not value.isdigit():
            yield Finding(name, f"{name} is {value!r}: it is a number; leave it unset.")
    elif name in RETIRED:
        yield Finding(name, f"{name} is retired: set {RETIRED[name]} instead.")
    elif name in INVENTED:
        instead = INVENTED[name]
        advice = f"what it seems to promise is {instead}" if instead else "take it out"
        yield Finding(name, f"{name} does not exist in any release's sources, and nothing reads it: {advice}.")
    elif name.startswith(PREFIXES) and not name.startswith(FAMILIES):
        near = difflib.get_close_matches(name, FLAGS, n=1, cutoff=0.75)
        hint = f"did you mean {near[0]}?" if near else "`gaudi3-train environment` lists those that are known."
        yield Finding(name, f"{name} is not known to be read by anything: {hint}")


def lazy_mode(mode: str, environment: Mapping[str, str]) -> str:
    """The value of PT_HPU_LAZY_MODE for `train.mode`; always set, as releases and readers disagree on the default.

    It is read when torch loads the bridge, so this comes before `import torch`. ConfigError if the environment has
    another one.
    """
    from gaudi3_scale.errors import ConfigError

    wanted = "1" if mode == "lazy" else "0"  # `auto` compiles, which is a matter of eager mode
    found = environment.get("PT_HPU_LAZY_MODE")
    if found is not None and found != wanted:
        raise ConfigError(
            f"train.mode is {mode}, which is PT_HPU_LAZY_MODE={wanted}, and the environment has {found!r}: take the "
            "variable out, or set train.mode to what it says."
        )
    return wanted


def table() -> str:
    """All known variables as a Markdown table."""
    lines = ["| variable | default | meaning | source |", "|---|---|---|---|"]
    for flag in FLAGS.values():
        meaning = f"{flag.meaning} (internal: leave it alone)" if flag.internal else flag.meaning
        lines.append(f"| `{flag.name}` | {flag.default or 'unset'} | {meaning} | {flag.source} |")
    return "\n".join(lines) + "\n"
